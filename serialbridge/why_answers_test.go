package serialbridge_test

import (
	"strings"
	"testing"
	"time"
)

// V14: an ILS without AY → a doubled 98 after the 11 was written is taken for
// "not carried out" → the repeat is sent → second 11.
func TestV14LateStatus(t *testing.T) {
	for name, trailer := range map[string]bool{"without AY": false, "with the wrong AY": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(func(q *request) bool {
					if q.is("11") && q.nth == 1 {
						f := "R-STAT-Y" // AY2: that of the 99 before
						if !trailer {
							f = withoutTrailer(t, f)
						}
						q.raw(string(frameOf(t, f)))
						q.lend()
						after(time.Second)
						q.reply(q.loan())
						return true
					}
					return false
				})
				k := r.serial()
				of := func(f string) string {
					if trailer {
						return f
					}
					return withoutTrailer(t, f)
				}
				k.send(of("LOGIN"))
				k.read(time.Second)
				k.send(of("STAT"))
				k.read(time.Second)
				k.send(of("F1"))
				if got := k.read(15 * time.Second); trailer == strings.HasPrefix(got, "98") {
					t.Errorf("got %q", got)
				}
				after(time.Second)
				k.send(of("F1"))
				k.lends(item1, 15*time.Second)
				r.ils.want(item1, 1, 1, 0)
			})
		})
	}
}

// V15: an ILS that always says AY4 → the kiosk's counter passes 4 → "it echoes
// numbers" → nine of ten answers are thrown away, the reads' too.
func TestV15ConstantNumber(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool {
			var f string
			switch {
			case q.is("11"):
				q.lend()
				f = q.loan()
			case q.is("63"):
				f = q.patron() + "AY0AZ0000"
			case q.is("17"):
				f = "R-II-LOAN"
			case q.is("99"):
				f = "R-STAT-Y"
			default:
				f = "R-LOGIN-Y"
			}
			q.raw(seq(t, f, 4))
			return true
		})
		k := r.serial().loggedIn()
		for n := byte(1); n <= 12; n++ {
			item := "3123400000" + string('0'+n/10) + string('0'+n%10) + "00"
			k.send(seq(t, of(t, item, "F1"), n))
			k.expect(seq(t, of(t, item, "R1"), n), time.Second)
			r.ils.want(item, 1, int(n), 0)
			k.send(seq(t, of(t, item, "F1-DATE"), n)) // read first
			k.expect(seq(t, of(t, item, "R1"), n), time.Second)
		}
		r.event("checkout_in_doubt", 0)
		if r.ils.reads() != 12 || strings.Contains(r.log.String(), "read_unclear") {
			t.Errorf("%d reads\n%s", r.ils.reads(), r.log)
		}
	})
}

// V16: 11 for book B in flight → noise, the kiosk sends 97 → it gets the 12
// ok=1 of book A from memory, and the real 12 goes to the next request.
func TestV16ResendWhileOutstanding(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		k.send("F1")
		k.expect("R1", time.Second)
		r.ils.on(holding(3 * time.Second))
		k.send("F3")
		after(time.Second)
		k.send("97")
		k.expect(of(t, item2, seq(t, "R1", 4)), 3*time.Second)
		k.send("STAT")
		k.expect("R-STAT-Y", time.Second)
		k.none(time.Minute)
	})
	t.Run("no last answer", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.connect("192.0.2.7").loggedIn()
			k.send("F1")
			k.expect("R1", time.Second)
			k.hangUp()
			k = r.connect("192.0.2.7")
			k.send("97") // a new connection has none
			if got := k.read(time.Second); !strings.HasPrefix(got, "96") {
				t.Errorf("got %q", got)
			}
			s := r.serial().loggedIn()
			s.send("F3")
			s.read(time.Second)
			r.restart()
			s = r.serial()
			s.send("97") // nor has a start-up
			if got := s.read(time.Second); !strings.HasPrefix(got, "96") {
				t.Errorf("got %q", got)
			}
		})
	})
	t.Run("it answered another request", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.ils.on(func(q *request) bool { return q.is("XS") })
			k := r.serial().loggedIn()
			k.send("F1")
			k.expect("R1", time.Second)
			k.send("UNK") // which ends in silence
			k.none(15 * time.Second)
			k.send("97")
			k.expect("96", time.Second)
		})
	})
}

// V17: a 12 with another item's AB is delivered: the kiosk has an ok=1 for the
// wrong book.
func TestV17ShiftedAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool {
			if !q.is("11") || q.nth == 1 {
				return false
			}
			if q.nth == 2 { // lends nothing; says what it said before
				q.reply("R1")
				return true
			}
			return false
		})
		k := r.serial().loggedIn()
		k.send("F1")
		k.expect("R1", time.Second)
		k.send("F3")
		k.refused('4', "could not be confirmed", 15*time.Second)
		k.none(time.Minute) // settled as not lent meanwhile
		r.event("checkout_in_doubt", 1)
		k.send("F3")
		k.expect(of(t, item2, seq(t, "R1", 4)), 15*time.Second)
		r.ils.want(item2, 2, 2, 0)
	})
}

// V18: on loan to P from before → P scans to renew → the 11 is lost → the read
// shows the loan → ok=1 with the old date. Unavoidable; the answer says so.
// Its flags are those of the ILS's own last ok=1.
func TestV18NoOpSaysSo(t *testing.T) {
	for name, flags := range map[string]string{"no ok=1 before": "121NUY", "after one": "121NYN", "a refusal does not count": "121NYN"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				k := r.serial().loggedIn()
				if flags != "121NUY" {
					r.ils.on(oddly(1, func(q *request) { q.reply(edited(t, q.loan(), "121NNY", "121YYN")) }))
					k.send("F3")
					k.lends(item2, time.Second)
				}
				if name == "a refusal does not count" {
					r.ils.on(func(q *request) bool {
						if q.is("11") {
							q.reply("R-FAIL")
						}
						return q.is("11")
					})
					k.send(of(t, item3, "F1"))
					k.expect("R-FAIL", time.Second)
				}
				r.ils.lent(item1, patron1)
				r.ils.on(func(q *request) bool { return q.is("11") })
				loans := len(r.log.events("loan_committed"))
				k.send("F1")
				got := k.lends(item1, 15*time.Second)
				if !strings.HasPrefix(got, flags) || !strings.Contains(got, "AFAlready on loan to you|") || !strings.Contains(got, "AH20261221") {
					t.Errorf("got %q, want %s", got, flags)
				}
				r.event("loan_committed", loans) // never logged as a new loan
				r.event("checkout_settled", 1)
			})
		})
	}
}

// V20: claim made, link slow → the station hangs up, or is refused at its
// deadline → then the write: a loan for nobody.
func TestV20SentForNobody(t *testing.T) {
	for name, hangUp := range map[string]bool{"hung up": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(func(q *request) bool {
					if q.is("93") && q.n > 1 {
						after(8 * time.Second)
					}
					return false
				})
				k := r.serial().loggedIn()
				r.ils.connecting(slowly(8 * time.Second))
				r.cut()
				k.send("F1")
				if hangUp {
					after(time.Second)
					k.hangUp()
				} else {
					k.refused('1', "cannot be reached", 15*time.Second)
				}
				after(2 * time.Minute)
				r.ils.want(item1, 0, 0, 0)
				for rec := range r.store.All() {
					t.Errorf("a record is left: %s", rec.State)
				}
			})
		})
	}
	// Somebody else waits for the same one: then it is sent.
	t.Run("hung up, and come back", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.connect("192.0.2.7").loggedIn()
			r.ils.connecting(slowly(5 * time.Second))
			r.cut()
			k.send("F1")
			after(time.Second)
			k.hangUp()
			k = r.connect("192.0.2.7")
			k.send("F1-SEQ")
			k.expect("R1-SEQ", 15*time.Second)
			r.ils.want(item1, 1, 1, 0)
		})
	})
}
