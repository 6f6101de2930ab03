package serialbridge_test

import (
	"strings"
	"testing"
	"time"

	"sip2gate/serialbridge"
)

// V21: live keys are not found after sequence has changed; doubts are read at
// the wrong system after the address has.
func TestV21SettingsChange(t *testing.T) {
	for name, match := range map[string]bool{"ignore to match": false, "match to ignore": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				k := r.serial().loggedIn()
				k.send("F1")
				k.expect("R1", time.Second)
				r.stop()
				r.match = !match
				r.start()
				k = r.serial()
				k.send("F1")
				k.expect("R1", 15*time.Second)
				r.ils.want(item1, 1, 1, 0)
			}, func(r *rig) { r.match = match })
		})
	}
	t.Run("another ILS", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.ils.on(either(mute(1), unread))
			k := r.serial().loggedIn()
			k.send("F1")
			k.refused('1', "could not be confirmed", 15*time.Second)
			r.stop()
			r.ils.on(func(q *request) bool { // the test system knows of no loan
				switch {
				case q.is("63"):
					q.reply("R-PI-NONE")
				case q.is("17"):
					q.reply("R-II-IN")
				default:
					return false
				}
				return true
			})
			r.address = "test-system:6001"
			r.start()
			k = r.serial()
			after(5 * time.Minute)
			k.send("F1-DATE")
			k.refused('2', "ask staff", 15*time.Second)
			r.ils.want(item1, 1, 1, 0)
			if n := len(r.gate.Doubts()); n != 1 {
				t.Errorf("%d doubts", n)
			}
		})
	})
}

// V22: 11 → lent → BI=Y, which the ILS carries out as a plain 11, ok=1 → its
// key is ended → the next plain 11 is a second execution. And a BI=Y repeated
// while it is out is executed again.
func TestV22Cancel(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		k.send("F1")
		k.expect("R1", time.Second)
		r.ils.on(func(q *request) bool {
			if q.field("BI") == "Y" {
				after(2 * time.Second)
				q.reply(q.loan()) // and the loan stands
				return true
			}
			return false
		})
		k.send("F1-BIY")
		after(time.Second)
		k.send(seq(t, "F1-BIY", 3))
		k.expect(seq(t, "R1", 3), 5*time.Second)
		if n := r.ils.checkouts(item1); n != 2 {
			t.Errorf("%d 11s: the cancel was carried out twice", n)
		}
		k.send("F1-DATE")
		k.expect("R1-SEQ", 5*time.Second)
		r.ils.want(item1, 2, 1, 0)
	})
	t.Run("an ILS that cannot be read", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			k.send("F1")
			k.expect("R1", time.Second)
			k.send("F1-BIY")
			k.lends(item1, time.Second)
			k.send("F1-DATE")
			k.lends(item1, time.Second)
			if n := r.ils.checkouts(item1); n != 3 {
				t.Errorf("%d 11s, want the last one forwarded", n)
			}
		}, func(r *rig) { r.resolve = nil })
	})
}

// V19: waits without an answer rule. One deadline for each wait, from its
// newest transmission; where SIP2 has no negative answer, silence.
func TestV19OneDeadlineForEachWait(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool { return !q.is("93") })
		k := r.serial().loggedIn()
		k.send("F1")
		after(5 * time.Second)
		begin := time.Now() // given up: the next one has a wait of its own
		k.send("II")
		if got := k.read(14100 * time.Millisecond); !strings.HasPrefix(got, "1801") {
			t.Errorf("got %q", got)
		}
		if d := time.Since(begin); d > 14*time.Second {
			t.Errorf("answered after %v", d)
		}
		k.send("UNK")
		k.none(time.Minute)
		r.ils.want(item1, 1, 0, 0)
	})
	t.Run("an impatient kiosk", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.ils.on(func(q *request) bool { return !q.is("93") })
			k := r.serial().loggedIn()
			for n := byte(1); n <= 4; n++ { // it repeats every six seconds
				k.send(seq(t, "F1", n))
				after(6 * time.Second)
			}
			after(30 * time.Second)
			for len(k.got) > 0 { // what the old wait ended with
				k.read(time.Second)
			}
			begin := time.Now()
			k.send(seq(t, "F1", 5))
			k.refused('5', "", 6*time.Second)
			if d := time.Since(begin); d > 5*time.Second {
				t.Errorf("answered after %v", d)
			}
			r.event("station_impatient", 1)
		}, func(r *rig) { r.edit = func(c *serialbridge.Config) { c.Stations[0].Timeout = 30 * time.Second } })
	})
}
