package serialbridge_test

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sip2gate/dedup"
)

// The tests named V… are the traces by which a model of an earlier draft of
// the rules let a second loan, or a success without a loan, through. Each
// comment has the model's steps. Not here, since what they concern is yet to
// come: V6 (amnesia), V8 (resolve), V9 (rotation), V13 (a shared store).

// only is the one record in the store.
func (r *rig) only() dedup.Record {
	r.t.Helper()
	after(time.Millisecond) // a delivery is noted when it has been made
	var all []dedup.Record
	for rec := range r.store.All() {
		all = append(all, rec)
	}
	if len(all) != 1 {
		r.t.Fatalf("%d records, want one", len(all))
	}
	return all[0]
}

// V1: 11 → lent → 12 ok=1 → staff check it in at the desk → "try again" → 11
// within the window → ok=1 from memory.
func TestV01DeskCheckinThenTryAgain(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		k.send("F1")
		k.expect("R1", time.Second)
		after(20 * time.Second)
		r.ils.checkedIn(item1)
		k.send("F1-DATE")
		k.expect("R1-SEQ", 5*time.Second)
		r.ils.want(item1, 2, 2, 0)
		if r.ils.active() != 1 {
			t.Error("he walks out with a book that is not lent")
		}
	})
	// The first station hung up while the 11 was in flight; a new scan must not
	// join it and get the old 12.
	t.Run("the copy does not join", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.ils.on(func(q *request) bool {
				if !q.is("11") || q.nth > 1 {
					return false
				}
				q.lend()
				after(4 * time.Second)
				q.m.checkedIn(item1)
				after(time.Second)
				q.reply("R1")
				return true
			})
			k := r.connect("192.0.2.7").loggedIn()
			k.send("F1")
			after(time.Second)
			k.hangUp()
			k = r.connect("192.0.2.7").loggedIn()
			k.send("F1-DATE")
			k.expect("R1-SEQ", 10*time.Second)
			r.ils.want(item1, 2, 2, 0)
			if r.ils.active() != 1 {
				t.Error("he walks out with a book that is not lent")
			}
		})
	})
	// A night without power does not count, so the window is still open: what a
	// station sent before a start-up is not known.
	t.Run("after a night", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			k.send("F1")
			k.expect("R1", time.Second)
			r.restart()
			r.ils.checkedIn(item1)
			k = r.serial()
			k.send("F1-SEQ")
			k.expect("R1-SEQ", 10*time.Second)
			r.ils.want(item1, 2, 2, 0)
		})
	})
}

// V2: 11 → the kiosk is told "could not be confirmed", or hangs up → the ILS
// answers, or the doubt is settled as lent → the patron queues at the desk for
// three minutes, is told to try again → the key has expired → second 11.
func TestV02AnswerNobodyGot(t *testing.T) {
	for name, gone := range map[string]bool{"refused": false, "hung up": true} {
		for _, wait := range []time.Duration{3 * time.Minute, 24 * time.Hour} {
			t.Run(name+", back after "+wait.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					r.ils.on(func(q *request) bool {
						switch {
						case q.is("11") && q.nth == 1 && gone:
							return holding(5 * time.Second)(q)
						case q.is("11") && q.nth == 1:
							q.lend()
							return true
						case q.nth < 8 && !gone: // too late for the kiosk
							return unread(q)
						}
						return false
					})
					k := r.connect("192.0.2.7").loggedIn()
					k.send("F1")
					if gone {
						after(time.Second)
						k.hangUp()
						after(10 * time.Second)
						k = r.connect("192.0.2.7").loggedIn()
					} else {
						k.refused('1', "could not be confirmed", 15*time.Second)
					}
					after(wait)
					k.send("F1-DATE")
					k.lends(item1, 15*time.Second)
					r.ils.want(item1, 1, 1, 0)
				})
			})
		}
	}
}

// V3: the loan exists, the patron was told no → late 12, or a read that shows
// the loan → completed, and the list forgets it. It stays until a 12 ok=1 is
// delivered, the item is checked in, or lent to another.
func TestV03LentButToldNo(t *testing.T) {
	for name, end := range map[string]func(k *kiosk){
		"delivered": func(k *kiosk) {
			k.send("F1-DATE")
			k.lends(item1, 5*time.Second)
			if rec := k.r.only(); !rec.Delivered {
				k.r.t.Error("still on the list after the delivery")
			}
		},
		"checked in": func(k *kiosk) {
			k.send("CI")
			k.expect("R-CI", 5*time.Second)
			for rec := range k.r.store.All() {
				k.r.t.Errorf("still there after the checkin: %s", rec.State)
			}
		},
		"lent to another": func(k *kiosk) {
			k.r.ils.checkedIn(item1)
			k.send("F2")
			k.lends(item1, 5*time.Second)
			if rec := k.r.only(); !rec.Delivered {
				k.r.t.Error("the first one is still there")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(either(mute(1), unread))
				k := r.serial().loggedIn()
				k.send("F1")
				k.refused('1', "could not be confirmed", 15*time.Second)
				r.ils.on(nil)
				after(24 * time.Hour)
				if rec := r.only(); rec.State != dedup.Completed || rec.Delivered || rec.Expires-r.gate.Now() < 300*time.Hour {
					t.Errorf("the record is %s, delivered %v, ends in %v", rec.State, rec.Delivered, rec.Expires-r.gate.Now())
				}
				end(k)
			})
		})
	}
}

// lingering is a connection that shows how it was ended.
type lingering struct {
	net.Conn
	aborts *atomic.Int32
}

func (l *lingering) SetLinger(sec int) error {
	if sec == 0 {
		l.aborts.Add(1)
	}
	return nil
}

// V4: 11 into a black hole → link closed after the timeout → the kernel goes
// on sending, and the ILS gets the 11 after settle. A link with an unanswered
// request is aborted, and settle counts from then.
func TestV04LinkIsAborted(t *testing.T) {
	var aborts atomic.Int32
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool { return q.is("11") && q.nth == 1 }) // it does not arrive in time
		k := r.serial().loggedIn()
		begin := time.Now()
		k.send("F1")
		after(9 * time.Second)
		if n := aborts.Load(); n != 0 {
			t.Errorf("aborted %d times before the timeout", n)
		}
		k.refused('1', "could not be confirmed", 6*time.Second)
		if n := aborts.Load(); n != 1 {
			t.Errorf("aborted %d times, want once", n)
		}
		after(29*time.Second - time.Since(begin))
		k.send("F1-DATE")
		k.expect("R1-SEQ", 15*time.Second)
		if d := r.ils.sent("11")[1].at.Sub(begin); d < 10*time.Second+r.settle {
			t.Errorf("sent again after %v: settle counts from the abort", d)
		}
		r.ils.want(item1, 2, 1, 0)
	}, func(r *rig) {
		r.ils.wrap = func(c net.Conn) net.Conn { return &lingering{c, &aborts} }
	})
}

// V5: claim durable → connect and login take 10 s → 11 written → kill →
// restart → "settle since the claim" has passed too early → negative read →
// second 11 → the first one is executed.
func TestV05SettleCountsFromTheStart(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		k.send("STAT")
		k.expect("R-STAT-Y", time.Second)
		r.ils.on(func(q *request) bool {
			if q.is("93") && q.nth == 2 {
				after(5 * time.Second)
			}
			return q.is("11") && q.nth == 1
		})
		r.ils.connecting(slowly(5 * time.Second))
		r.cut()
		k.send("F1")
		after(10500 * time.Millisecond)
		r.crash(k)
		start := time.Now()
		if n := r.ils.checkouts(item1); n != 1 {
			t.Fatalf("%d 11s before the kill", n)
		}
		k = r.serial()
		for i := byte(2); r.ils.checkouts(item1) < 2 && time.Since(start) < 3*time.Minute; i++ {
			k.send(seq(t, "F1-DATE", i))
			if got := k.read(15 * time.Second); strings.HasPrefix(got, "121") {
				break
			}
			after(5 * time.Second)
		}
		r.ils.want(item1, 2, 1, 0)
		if d := r.ils.sent("11")[1].at.Sub(start); d < r.ilsTimeout+r.settle {
			t.Errorf("sent again %v after the start", d)
		}
	}, onFragile)
}
