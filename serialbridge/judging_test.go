package serialbridge_test

import (
	"strings"
	"testing"
	"time"
)

// oddly answers the nth 11 in its own way; it lends first.
func oddly(nth int, answer func(q *request)) func(q *request) bool {
	return func(q *request) bool {
		if !q.is("11") || q.nth != nth {
			return false
		}
		q.lend()
		answer(q)
		return true
	}
}

// numbered is a frame of the ILS's own with the number of the request.
func (q *request) numbered(frame string) string {
	return seq(q.m.t, frame, q.msg.Trailer.Seq-'0')
}

// What an ILS may send in place of the answer, and what becomes of it. Each
// time the loan of F3 exists, so that a read settles it.
func TestILSIsJudged(t *testing.T) {
	for _, c := range []struct {
		name      string
		answer    func(q *request)
		delivered string // as it came; "": the patron gets what a read shows
		doubts    int    // events
	}{
		{"right", func(q *request) { q.reply(q.loan()) }, "loan", 0},
		{"late 12 of an earlier item", func(q *request) { q.raw(q.numbered("R1")) }, "", 1},
		{"late 12 of an earlier item, and the right one", func(q *request) {
			q.raw(q.numbered("R1"))
			q.reply(q.loan())
		}, "", 1},
		{"halved", func(q *request) { q.raw("121NNY20261130 \r") }, "", 1},
		{"cut within a field", func(q *request) { q.raw("121NNY20261130    101501AOMAIN|AA2123\r") }, "", 1},
		{"wrong checksum where 12s were right", func(q *request) {
			q.raw(strings.Replace(q.numbered(of(q.m.t, item2, "R1")), "AJThe", "AJTho", 1))
		}, "", 1},
		{"no checksum where 12s had one", func(q *request) { q.raw(withoutTrailer(q.m.t, of(q.m.t, item2, "R1"))) }, "", 1},
		{"text", func(q *request) { q.raw("Reader One: session timed out\r") }, "", 1},
		{"silence", func(*request) {}, "", 1},
		{"another response", func(q *request) { q.raw(q.numbered("R-FEE-OK")) }, "", 1},
		{"98 without AY", func(q *request) { q.raw(withoutTrailer(q.m.t, "R-STAT-Y")) }, "", 1},
		{"98 with another AY, then the answer", func(q *request) {
			q.raw(seq(q.m.t, "R-STAT-Y", q.msg.Trailer.Seq-'0'+3))
			q.reply(q.loan())
		}, "loan", 0},
		{"another response, then the answer", func(q *request) {
			q.raw(q.numbered("R-FEE-OK"))
			q.reply(q.loan())
		}, "loan", 0},
		{"an item in another form", func(q *request) { q.reply(of(q.m.t, "MAIN-"+item2, "R1")) }, "prefixed", 0},
		{"a foreign item", func(q *request) { q.reply(of(q.m.t, "99999000000001", "R1")) }, "foreign", 1},
		{"no item", func(q *request) { q.reply(strings.Replace(q.loan(), "AB"+item2+"|", "", 1)) }, "bare", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(oddly(2, c.answer))
				k := r.serial().loggedIn()
				k.send("F1")
				k.expect("R1", time.Second)
				k.send("F3")
				mine := seq(t, of(t, item2, "R1"), 4)
				got := k.read(15 * time.Second)
				want := map[string]string{
					"loan":     mine,
					"prefixed": edited(t, mine, item2, "MAIN-"+item2),
					"foreign":  edited(t, mine, item2, "99999000000001"),
					"bare":     edited(t, mine, "AB"+item2+"|", ""),
				}[c.delivered]
				if c.delivered == "" {
					if !strings.HasPrefix(got, "121") || !strings.Contains(got, "AB"+item2+"|") || !strings.Contains(got, "Already on loan to you") {
						t.Errorf("got %q, want what the read shows", got)
					}
				} else if got != want {
					t.Errorf("got %q, want %q", got, want)
				}
				k.none(time.Minute)
				r.event("checkout_in_doubt", c.doubts)
				r.event("checkout_settled", c.doubts)
				k.send("STAT") // nothing is out of step afterwards
				k.expect("R-STAT-Y", 5*time.Second)
				r.ils.want(item2, 1, 2, 0)
				if strings.Contains(r.log.String(), "session timed out") {
					t.Error("the log shows the ILS's text")
				}
			})
		})
	}
}

// A wrong checksum of an ILS whose 12s were never right is its habit.
func TestILSWhoseChecksumsAreAlwaysWrong(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		bad := strings.Replace(string(frameOf(t, "R1")), "AZE683", "AZ0000", 1)
		r.ils.on(oddly(1, func(q *request) { q.raw(bad) }))
		k := r.serial().loggedIn()
		k.send("F1")
		k.expect(bad, time.Second)
		k.send("F1")
		k.expect(bad, time.Second)
		r.event("checkout_in_doubt", 0)
		r.ils.want(item1, 1, 1, 0)
	})
}

// An answer that comes twice is given once, and nothing is out of step.
func TestDoubledAnswer(t *testing.T) {
	for name, late := range map[string]time.Duration{"at once": 0, "a second later": time.Second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(oddly(1, func(q *request) {
					if late == 0 {
						q.raw(string(frameOf(t, "R1")) + string(frameOf(t, "R1")))
						return
					}
					q.reply("R1")
					after(late)
					q.reply("R1")
				}))
				k := r.serial().loggedIn()
				k.send("F1")
				k.expect("R1", time.Second)
				k.none(2 * time.Second)
				k.send("F3")
				k.expect(of(t, item2, seq(t, "R1", 4)), 5*time.Second)
				k.none(time.Minute)
				if n := r.ils.connections(); n != 2 {
					t.Errorf("%d connections, want the first one closed", n)
				}
				r.event("checkout_in_doubt", 0)
				r.ils.want(item1, 1, 2, 0)
				r.ils.want(item2, 1, 2, 0)
			})
		})
	}
}

// A 98 in place of the answer: only with the 11's own number, on a link that
// has echoed another one, does it say that the 11 was not carried out.
func TestStatusInPlaceOfAnAnswer(t *testing.T) {
	for _, c := range []struct {
		name    string
		login   bool // the link has echoed a number before
		trailer bool // the kiosk uses AY
		doubts  int
		elevens int
	}{
		{"same AY, another echoed before", true, true, 0, 2},
		{"same AY, the first on this link", false, true, 1, 1},
		{"a kiosk without AY", false, false, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(oddly(1, func(q *request) { q.reply("R-STAT-Y") }))
				k := r.serial()
				if c.login {
					k.loggedIn()
				}
				f := string(frameOf(t, "F1"))
				if !c.trailer {
					f = withoutTrailer(t, "F1")
				}
				k.send(f)
				if got := k.read(5 * time.Second); !strings.HasPrefix(got, "98Y") {
					t.Errorf("got %q, want the 98", got)
				}
				after(time.Second)
				k.send(f)
				k.lends(item1, 15*time.Second)
				r.event("checkout_in_doubt", c.doubts)
				if n := r.ils.checkouts(item1); n != c.elevens {
					t.Errorf("%d 11s, want %d", n, c.elevens)
				}
			})
		})
	}
}

// An ILS that always says the same number is never taken at its word.
func TestConstantSequenceNumber(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool {
			if !q.is("17") {
				return false
			}
			q.raw(seq(t, "R-II-IN", 4))
			return true
		})
		k := r.serial().loggedIn()
		for n := range byte(25) {
			k.send(seq(t, "II", n))
			k.expect(seq(t, "R-II-IN", n), time.Second)
		}
		if n := r.ils.connections(); n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// Numbers are compared once three different ones were echoed, and not any
// more after two wrong ones in a row.
func TestSequenceNumbersAreLearnt(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		wrong := 0 // so many wrong ones go in front of the right one
		off := byte(0)
		r.ils.on(func(q *request) bool {
			if !q.is("17") {
				return false
			}
			for range wrong {
				q.raw(seq(t, "R-II-LOAN", q.msg.Trailer.Seq-'0'+5))
			}
			q.raw(seq(t, "R-II-IN", q.msg.Trailer.Seq-'0'+off))
			return true
		})
		k := r.serial().loggedIn() // 0
		ask := func(n byte, want string) {
			t.Helper()
			k.send(seq(t, "II", n))
			k.expect(seq(t, want, n), time.Second)
		}
		ask(1, "R-II-IN")
		ask(2, "R-II-IN") // the third number
		wrong = 1
		ask(3, "R-II-IN") // the stray one is not delivered
		ask(4, "R-II-IN") // nor here: the right one in between counts
		wrong, off = 0, 3
		k.send(seq(t, "II", 5))
		k.none(9 * time.Second) // the only answer has another number
		if got := k.read(15 * time.Second); !strings.HasPrefix(got, "18") || strings.Contains(got, "|AH2026") {
			t.Errorf("got %q", got)
		}
		r.event("ils_stray_frame", 3)
	})
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool {
			if q.is("17") {
				q.raw(seq(t, "R-II-LOAN", q.msg.Trailer.Seq-'0'+5))
				q.raw(seq(t, "R-II-IN", q.msg.Trailer.Seq-'0'+5))
				return true
			}
			return false
		})
		k := r.serial().loggedIn()
		for n := byte(1); n <= 2; n++ {
			k.send(seq(t, "STAT", n))
			k.expect(seq(t, "R-STAT-Y", n), time.Second)
		}
		k.send(seq(t, "II", 3))
		k.expect(seq(t, "R-II-IN", 3), time.Second) // the second wrong one in a row
		k.send(seq(t, "II", 4))
		k.expect(seq(t, "R-II-LOAN", 4), time.Second) // not compared any more
	})
}
