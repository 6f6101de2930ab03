package serialbridge_test

import (
	"testing"
	"time"
)

// V10: 11 in doubt → the upload of the same checkout (no-block, with a due
// date, without PIN) triggers the read → lent → "decide again" → other
// fingerprint → refused, though the loan exists.
func TestV10UploadIsNoConflict(t *testing.T) {
	upload := func(t *testing.T) string {
		f := edited(t, "F1-DATE", "11YN20261130    101530                  ", "11YY20261130    10153020261221    235900")
		return edited(t, f, "AD4711|", "")
	}
	for name, doubt := range map[string]bool{"in doubt": true, "completed": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				k := r.serial().loggedIn()
				if doubt {
					r.ils.on(either(mute(1), unread))
					k.send("F1")
					k.refused('1', "could not be confirmed", 15*time.Second)
					r.ils.on(nil)
				} else {
					k.send("F1")
					k.expect("R1", time.Second)
				}
				k.send(upload(t))
				k.lends(item1, 15*time.Second)
				r.event("checkout_conflict", 0)
				r.ils.want(item1, 1, 1, 0)
			})
		})
	}
	t.Run("the fee is still compared", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			k.send("F1")
			k.expect("R1", time.Second)
			k.send(edited(t, upload(t), "BON", "BOY"))
			k.refused('2', "differs", 15*time.Second)
			r.ils.want(item1, 1, 1, 0)
		})
	})
}

// V11a: 12 ok=1 stored → 09 answered → its ending is not yet on the disk →
// kill → 11 → ok=1 from memory. Also killed between the 09 and its 10.
func TestV11aCheckinAndPowerCut(t *testing.T) {
	for name, answered := range map[string]bool{"after the 10": true, "before the 10": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(func(q *request) bool {
					if q.is("09") && !answered {
						r.ils.checkedIn(item1)
						return true
					}
					return false
				})
				k := r.serial().loggedIn()
				k.send("F1")
				k.expect("R1", time.Second)
				r.store.(*fragile).written()
				k.send("CI")
				if answered {
					k.expect("R-CI", time.Second)
				} else {
					after(time.Second)
				}
				r.crash(k)
				if rec := r.only(); !rec.Marked {
					t.Error("the mark was not on the disk before the 09 left")
				}
				k = r.serial()
				k.send("F1-DATE") // within settle + timeout of the start
				k.refused('2', "ask staff", 15*time.Second)
				after(30 * time.Second)
				k.send(edited(t, "F1-DATE", "101530", "101600"))
				k.expect("R1-SEQ", 15*time.Second)
				r.ils.want(item1, 2, 2, 0)
				if r.ils.active() != 1 {
					t.Error("he walks out with a book that is not lent")
				}
			}, onFragile)
		})
	}
}

// V11b: K1's 11 in flight → K1 hangs up → 09 at K2 answered → then the 12: the
// key is completed for an item that is already back.
func TestV11bCheckinOverlaps(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool {
			return q.is("11") && q.nth == 1 && holding(5*time.Second)(q)
		})
		k, desk := r.connect("192.0.2.7").loggedIn(), r.serial().loggedIn()
		k.send("F1")
		after(time.Second)
		k.hangUp()
		desk.send(edited(t, "CI", "AOMAIN", "AOSORTER"))
		desk.expect("R-CI", time.Second)
		after(10 * time.Second)
		if rec := r.only(); !rec.Marked {
			t.Error("completed as if nothing had happened")
		}
		k = r.connect("192.0.2.7").loggedIn()
		k.send("F1-SEQ")
		k.expect("R1-SEQ", 5*time.Second)
		r.ils.want(item1, 2, 2, 0)
		if r.ils.active() != 1 {
			t.Error("he walks out with a book that is not lent")
		}
	})
}

// V11c: 09 unanswered → executed late → undoes the loan that was made after
// it. For settle after it nothing of the item is sent.
func TestV11cCheckinIsLate(t *testing.T) {
	for name, lent := range map[string]bool{"lent before": true, "not lent before": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(func(q *request) bool {
					if q.is("09") {
						go func() { after(25 * time.Second); q.m.checkedIn(q.field("AB")) }()
						return true
					}
					return false
				})
				k := r.serial().loggedIn()
				if lent {
					k.send("F1")
					k.expect("R1", time.Second)
				}
				begin := time.Now()
				k.send("CI")
				k.read(15 * time.Second)
				k.send("F1-DATE")
				k.refused('2', "ask staff", 15*time.Second)
				if n := len(r.ils.sent("11")); lent && n != 1 || !lent && n != 0 {
					t.Errorf("%d 11s while the 09 may still be carried out", n)
				}
				after(41*time.Second - time.Since(begin))
				k.send(edited(t, "F1-DATE", "101530", "101610"))
				k.expect("R1-SEQ", 15*time.Second)
				if r.ils.active() != 1 {
					t.Error("he walks out with a book that is not lent")
				}
			})
		})
	}
}

// V12: P's 11 unanswered → ok=0 → another card Q, ok=1 → P's 11 is executed
// late and takes the item away: Q walks out with a book lent to P.
func TestV12AnothersCheckoutWhileInDoubt(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool {
			if q.is("11") && q.nth == 1 {
				go func() { after(35 * time.Second); q.lend() }()
				return true
			}
			return false
		})
		k := r.serial().loggedIn()
		begin := time.Now()
		k.send("F1")
		k.refused('1', "could not be confirmed", 15*time.Second)
		k.send("F2")
		k.refused('3', "ask staff", 15*time.Second)
		if n := r.ils.checkouts(item1); n != 1 {
			t.Errorf("%d 11s after %v", n, time.Since(begin))
		}
		// Once the first can no longer be at work, the ILS decides.
		after(31*time.Second - time.Since(begin))
		k.send("F2")
		k.lends(item1, 15*time.Second)
		if d := r.ils.sent("11")[1].at.Sub(begin); d < 35*time.Second {
			t.Errorf("the second patron's 11 was sent after %v, before the first one was carried out", d)
		}
	})
	// An ok=1 ends the other patron's completed key; a doubt and a flight of
	// his stay.
	t.Run("an ok=1 ends what was completed", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			k.send("F1")
			k.expect("R1", time.Second)
			r.ils.checkedIn(item1)
			k.send("F2")
			k.lends(item1, 5*time.Second)
			reads := r.ils.reads()
			k.send("F1-DATE")
			k.lends(item1, 5*time.Second)
			if n := r.ils.reads() - reads; n != 0 || r.ils.checkouts(item1) != 3 {
				t.Errorf("%d reads, %d 11s: the first patron's key was not ended", n, r.ils.checkouts(item1))
			}
		})
	})
	t.Run("an ok=0 leaves a mark", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.ils.on(func(q *request) bool {
				if q.is("11") && q.field("AA") == patron2 {
					q.reply("R-FAIL")
					return true
				}
				return false
			})
			k, o := r.serial().loggedIn(), r.connect("192.0.2.7").loggedIn()
			k.send("F1")
			k.expect("R1", time.Second)
			o.send("F2")
			o.read(time.Second)
			k.send("F1")
			k.expect("R1", 5*time.Second)
			if r.ils.reads() == 0 {
				t.Error("answered without asking")
			}
			if r.ils.checkouts(item1) != 2 {
				t.Errorf("%d 11s", r.ils.checkouts(item1))
			}
		})
	})
	// A doubt settled as lent ends the other patron's completed key, as an
	// ok=1 does.
	t.Run("settled as lent", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			k.send("F1")
			k.expect("R1", time.Second)
			r.ils.checkedIn(item1)
			r.ils.on(func(q *request) bool {
				if q.is("11") && q.nth == 2 {
					q.lend()
					return true
				}
				return false
			})
			k.send("F2")
			k.lends(item1, 15*time.Second)
			if rec := r.only(); rec.Station != "S1" || rec.State.String() != "completed" {
				t.Errorf("left is %+v", rec)
			}
		})
	})
}

// A proof without reads: a 09, or another patron's 11, that left later than
// settle after the doubtful 11 and got ok=1, ends that doubt.
func TestDoubtEndsWithoutReads(t *testing.T) {
	for name, c := range map[string]struct {
		frame string
		early bool // it left before settle was over
		fails bool // ok=0
		left  int  // doubts
	}{
		"checkin":                 {"CI", false, false, 0},
		"checkin too early":       {"CI", true, false, 1},
		"checkin refused":         {"CI", false, true, 1},
		"another's 11":            {"F2", false, false, 0},
		"another's 11, refused":   {"F2", false, true, 1},
		"another's 11, too early": {"F2", true, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(func(q *request) bool {
					switch {
					case q.is("11") && q.nth == 1:
						q.lend()
						return true
					case c.fails && q.is("09"):
						return denyCheckin(q)
					case c.fails && q.is("11"):
						q.reply("R-FAIL")
						return true
					}
					return false
				})
				k := r.serial().loggedIn()
				k.send("F1")
				k.refused('1', "could not be confirmed", 15*time.Second)
				if !c.early {
					after(time.Minute)
				}
				k.send(c.frame)
				k.read(15 * time.Second)
				if n := len(r.gate.Doubts()); n != c.left {
					t.Errorf("%d doubts, want %d", n, c.left)
				}
				if n := r.ils.reads(); n != 0 {
					t.Errorf("%d reads", n)
				}
			}, func(r *rig) { r.resolve = nil })
		})
	}
}
