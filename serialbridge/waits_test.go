package serialbridge_test

import (
	"testing"
	"time"
)

// A 97 while the answer is still to come is a transmission too: the kiosk's
// patience counts from it.
func TestResendExtendsTheWait(t *testing.T) {
	for _, c := range []struct {
		name string
		at   time.Duration // of the 97; 0: none
		want time.Duration
	}{{"none", 0, 14 * time.Second}, {"a 97 at 6 s", 6 * time.Second, 20 * time.Second}} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(func(q *request) bool { return q.is("17") }) // never answered
				k := r.serial().loggedIn()
				begin := time.Now()
				k.send("II")
				if c.at != 0 {
					after(c.at)
					k.send("97")
				}
				k.read(30 * time.Second)
				if d := time.Since(begin); d != c.want {
					t.Errorf("answered after %v, want %v", d, c.want)
				}
			}, func(r *rig) { r.ilsTimeout = time.Minute })
		})
	}
}

// Where the ILS cannot be read, nothing would settle a doubt: the answer is on
// the disk before the kiosk has it.
func TestAnswerIsOnTheDiskWhereNothingCanBeRead(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		k.send("F1")
		k.expect("R1", time.Second)
		r.crash(k)
		k = r.serial()
		k.send("F1-SEQ")
		k.expect("R1-SEQ", 5*time.Second)
		r.ils.want(item1, 1, 1, 0)
	}, onFragile, func(r *rig) { r.resolve = nil })
}
