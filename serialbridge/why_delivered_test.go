package serialbridge_test

import (
	"strings"
	"testing"
	"time"
)

// 5A: 12 seen → re-scan at the end of the window, read, the stored 12 is lost →
// the machine's repeat finds the key expired → second 11. The window runs from
// the newest delivery.
func TestV5AWindowRunsFromTheDelivery(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		k.send("F1")
		k.expect("R1", time.Second)
		after(88 * time.Second)
		k.send("F1-DATE")
		k.expect("R1-SEQ", 5*time.Second) // lost on the line
		after(15 * time.Second)
		k.send("F1-DATE")
		k.expect("R1-SEQ", 5*time.Second)
		after(89 * time.Second)
		k.send("F1")
		k.expect("R1", 5*time.Second)
		r.ils.want(item1, 1, 1, 0)
		after(90 * time.Second)
		k.send("F1") // and it does end
		k.expect("R1", 5*time.Second)
		r.ils.want(item1, 2, 1, 1)
	})
}

// 5B: the window ends while a repeat waits for a read. Whether it has is
// decided when the repeat arrives.
func TestV5BWindowEndsDuringTheRead(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		k.send("F1")
		k.expect("R1", time.Second)
		r.ils.on(func(q *request) bool {
			if q.is("63") {
				after(2900 * time.Millisecond)
			}
			return false
		})
		after(89 * time.Second)
		k.send("F1-DATE")
		k.expect("R1-SEQ", 5*time.Second)
		r.ils.want(item1, 1, 1, 0)
	})
	t.Run("and a sweep comes by at 100 s", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			after(8 * time.Second)
			k.send("F1")
			k.expect("R1", time.Second) // its window ends at 98 s
			r.ils.on(unread)
			after(89900 * time.Millisecond)
			k.send("F1-DATE")
			k.expect("R1-SEQ", 5*time.Second)
			r.ils.want(item1, 1, 1, 0)
		})
	})
}

// 5C: lent → 09 executed, its answer lost → settle over → 11 → marked, the read
// is unknown → stored 12. A marked key whose read is unknown is for staff.
func TestV5CMarkedAndUnknown(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool {
			if q.is("09") {
				r.ils.checkedIn(item1)
				return true
			}
			return unread(q)
		})
		k := r.serial().loggedIn()
		k.send("F1")
		k.expect("R1", time.Second)
		k.send("CI")
		k.read(15 * time.Second)
		after(31 * time.Second)
		k.send("F1-DATE")
		k.refused('2', "ask staff", 15*time.Second)
		r.ils.want(item1, 1, 1, 0)
	})
}

// 5D: 09 unanswered → re-scan, read positive, mark cleared, 12 lost → the late
// 09 is executed → the machine's repeat from memory. No read clears a mark for
// settle, and every 11 of the item waits.
func TestV5DNoReadClearsAMarkInThatTime(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		begin := time.Now()
		r.ils.on(func(q *request) bool {
			if q.is("09") {
				go func() { after(38 * time.Second); q.m.checkedIn(item1) }()
				return true
			}
			return false
		})
		k := r.serial().loggedIn()
		k.send("F1")
		k.expect("R1", time.Second)
		k.send("CI")
		k.read(15 * time.Second) // at 10 s: nothing is believed until 40 s
		for range 2 {            // a repeat waits as well
			k.send("F1-DATE")
			k.refused('2', "ask staff", 15*time.Second)
		}
		k.send("F1-DATE") // at 38 s: it is read when the time is over
		k.expect("R1-SEQ", 15*time.Second)
		if d := time.Since(begin); d < 38*time.Second || r.ils.active() != 1 {
			t.Errorf("after %v there are %d loans", d, r.ils.active())
		}
		r.ils.want(item1, 2, 2, 0)
	})
}

// 5E: doubt → read sampled "charged" → desk checkin → new scan → that old read
// counts → ok=1. Only one begun after the transmission arrived does.
func TestV5EReadSampledBefore(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool {
			switch {
			case q.is("11") && q.nth == 1:
				q.lend()
				return true
			case q.is("63") && q.nth == 1:
				f := q.patron() // sampled now
				after(2 * time.Second)
				r.ils.checkedIn(item1)
				after(2500 * time.Millisecond)
				q.reply(f + "AY0AZ0000")
				return true
			}
			return false
		})
		k, o := r.serial().loggedIn(), r.connect("192.0.2.7").loggedIn()
		k.send("F1")
		after(13 * time.Second)
		o.send("F1-DATE")
		o.expect("R1-SEQ", 15*time.Second)
		r.ils.want(item1, 2, 2, 0)
		if r.ils.active() != 1 {
			t.Error("he walks out with a book that is not lent")
		}
	})
	// Read sampled while a 09 is out → 10 ok=1 → the verdict completes the key
	// unmarked.
	t.Run("while a checkin is out", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.ils.on(func(q *request) bool {
				switch {
				case q.is("11") && q.nth == 1:
					q.lend()
					return true
				case q.is("63") && q.nth == 1:
					f := q.patron()
					after(3500 * time.Millisecond)
					q.reply(f + "AY0AZ0000")
					return true
				}
				if q.is("09") {
					after(time.Second)
				}
				return false
			})
			k, desk := r.serial().loggedIn(), r.connect("192.0.2.7").loggedIn()
			k.send("F1")
			after(9500 * time.Millisecond)
			desk.send("CI")
			desk.expect("R-CI", 5*time.Second)
			if got := k.read(10 * time.Second); strings.HasPrefix(got, "121") && r.ils.active() != 1 {
				t.Errorf("got %q for a book that is checked in", got)
			}
			k.send("F1")
			k.lends(item1, 15*time.Second)
			if r.ils.active() != 1 {
				t.Error("he walks out with a book that is not lent")
			}
		})
	})
}

// 5F: 11 at K1, hang-up → 09 at K2 → the ILS does the 09, then the 11 →
// completed → the 10 ok=1 ends it. A 09 ends what was completed before it left.
func TestV5FCheckinOvertakes(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool {
			switch {
			case q.is("11") && q.nth == 1:
				after(3 * time.Second) // the 09 is carried out meanwhile
				q.lend()
				q.reply("R1")
				return true
			case q.is("09"):
				r.ils.takeBack(item1)
				after(5 * time.Second)
				q.reply("R-CI")
				return true
			}
			return false
		})
		k, desk := r.connect("192.0.2.7").loggedIn(), r.serial().loggedIn()
		k.send("F1")
		after(time.Second)
		k.hangUp()
		desk.send("CI")
		desk.expect("R-CI", 10*time.Second)
		if rec := r.only(); rec.State.String() != "completed" || !rec.Marked {
			t.Errorf("the key is %s, marked %v", rec.State, rec.Marked)
		}
		k = r.connect("192.0.2.7").loggedIn()
		k.send("F1-SEQ")
		k.expect("R1-SEQ", 5*time.Second)
		r.ils.want(item1, 1, 1, 0)
	})
}
