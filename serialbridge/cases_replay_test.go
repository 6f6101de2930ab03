package serialbridge_test

import (
	"testing"
	"time"
)

func TestRepeatIsAnsweredFromMemory(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		k.send("F1")
		k.expect("R1", time.Second)
		after(5 * time.Second)
		k.send("F1")
		k.expect("R1", time.Second)
		k.send("F1-SEQ")
		k.expect("R1-SEQ", time.Second)
		r.ils.want(item1, 1, 1, 0)
		if n := len(r.ils.sent("63")); n != 0 {
			t.Errorf("%d reads for the machine's own repeats", n)
		}
	})
}

// C-033: a repeat while the first is still on its way.
func TestC033RepeatInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool {
			if !q.is("11") {
				return false
			}
			q.lend()
			after(8 * time.Second)
			q.reply("R1")
			return true
		})
		k := r.serial().loggedIn()
		begin := time.Now()
		k.send("F1")
		after(3 * time.Second)
		k.send("F1")
		after(3 * time.Second)
		k.send("F1-SEQ")
		k.expect("R1-SEQ", 3*time.Second)
		if d := time.Since(begin); d != 8*time.Second {
			t.Errorf("answered after %v, want 8s", d)
		}
		k.none(time.Minute)
		r.ils.want(item1, 1, 1, 0)
	})
}
