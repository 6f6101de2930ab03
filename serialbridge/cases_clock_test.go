package serialbridge_test

import (
	"testing"
	"time"

	"sip2gate/serialbridge"
)

// wall is a wall clock that can be set.
type wall struct{ off time.Duration }

func (w *wall) set(r *rig) {
	r.edit = func(c *serialbridge.Config) {
		c.Clock = func() (time.Time, bool) { return time.Now().Add(w.off), true }
	}
}

// C-087, C-088: the wall clock jumps, and no window does. (The event of a step
// is the gate clock's.)
func TestWallClockJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{
		"C-087 an hour forward": time.Hour,
		"C-087 a year forward":  365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			w := &wall{}
			bubble(t, func(t *testing.T, r *rig) {
				k := r.serial().loggedIn()
				k.send("F1")
				k.expect("R1", time.Second)
				after(10 * time.Second)
				w.off += jump
				after(10 * time.Second)
				k.send("F1-SEQ")
				k.expect("R1-SEQ", time.Second)
				r.ils.want(item1, 1, 1, 0)
			}, w.set)
		})
	}
	t.Run("C-088 two hours back", func(t *testing.T) {
		w := &wall{}
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			k.send("F3")
			k.read(time.Second)
			k.send("F1")
			k.expect("R1", time.Second)
			after(10 * time.Second)
			w.off -= 2 * time.Hour
			after(90 * time.Second)
			k.send("F1-PIN")
			k.expect("R1-SEQ", 5*time.Second)
			r.ils.want(item1, 2, 2, 1)
			after(10 * time.Minute) // the window, and the longest wait that may have begun in it
			for rec := range r.store.All() {
				t.Errorf("a record of %s is still kept", rec.Label)
			}
		}, w.set)
	})
}

// C-091: seconds for milliseconds. A restart opens the window anew, or once
// more if it had passed.
func TestC091WindowIsInSeconds(t *testing.T) {
	for _, c := range []struct {
		at                 time.Duration
		elevens, restarted int
	}{
		{1 * time.Second, 1, 1}, {60 * time.Second, 1, 1}, {89 * time.Second, 1, 1},
		{91 * time.Second, 2, 1}, {120 * time.Second, 2, 1}, {4 * time.Minute, 2, 2},
	} {
		for _, restart := range []bool{false, true} {
			name, elevens := "C-091 "+c.at.String(), c.elevens
			if restart {
				name += " with a restart"
				elevens = c.restarted
			}
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					k := r.serial().loggedIn()
					k.send("F1")
					k.expect("R1", time.Second)
					if restart {
						after(c.at / 2)
						r.restart()
						k = r.serial()
						after(c.at - c.at/2)
					} else {
						after(c.at)
					}
					k.send("F1-DATE")
					k.expect("R1-SEQ", 5*time.Second)
					if n := r.ils.checkouts(item1); n != elevens {
						t.Errorf("%d 11s, want %d", n, elevens)
					}
				})
			})
		}
	}
}
