package serialbridge_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// C-052: the ILS closes the connection while it is idle.
func TestC052ClosedWhileIdle(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		k.send("STAT")
		k.expect("R-STAT-Y", time.Second)
		after(time.Minute)
		r.cut()
		after(15 * time.Second)
		before := len(r.ils.sent(""))
		k.send("F1")
		k.expect("R1", 5*time.Second)
		var codes []string
		for _, f := range r.ils.sent("")[before:] {
			if f.conn != 2 {
				t.Errorf("connection %d was used", f.conn)
			}
			codes = append(codes, f.raw[:2])
		}
		if got := strings.Join(codes, " "); got != "93 99 11" {
			t.Errorf("the ILS got %s on the new connection", got)
		}
		r.event("checkout_in_doubt", 0)
		r.ils.want(item1, 1, 1, 0)
	})
}

// C-054: a connection that is half open.
func TestC054HalfOpen(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		k.send("STAT")
		k.expect("R-STAT-Y", time.Second)
		r.ils.on(func(*request) bool { return true }) // what is sent goes into the void
		r.ils.connecting(blackHole)
		begin := time.Now()
		k.send("F1")
		k.refused('1', "could not be confirmed", 15*time.Second)
		after(15*time.Second - time.Since(begin))
		r.event("ils_down", 1)
		k.send("STAT")
		if got := k.read(2 * time.Second); !strings.HasPrefix(got, "98N") {
			t.Errorf("STAT got %q, want a 98 with on-line N", got)
		}
		r.ils.on(nil)
		r.ils.connecting(nil)
		after(time.Minute)
		r.event("checkout_settled", 1)
		if n := len(r.gate.Doubts()); n != 0 {
			t.Errorf("%d doubts after the reads", n)
		}
		for _, f := range r.ils.sent("") {
			if f.conn == 1 && f.at.Sub(begin) > 10*time.Second {
				t.Errorf("the old connection was used again, %v after F1", f.at.Sub(begin))
			}
		}
		r.ils.want(item1, 1, 0, 0) // it got lost on the way
	})
}

// C-055: an ILS that reads nothing of one station. (The write that is stuck
// is tested in package ils.)
func TestC055StopsReading(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		other := r.connect("192.0.2.7").loggedIn()
		r.ils.on(func(q *request) bool { return q.n == 1 })
		k.send("F-LONG")
		for range 14 {
			begin := time.Now()
			other.send("STAT")
			other.expect("R-STAT-Y", time.Second)
			after(time.Second - time.Since(begin))
		}
		k.refused('4', "", time.Second)
		if n := len(r.gate.Doubts()); n != 1 {
			t.Errorf("%d doubts, want one", n)
		}
		r.ils.want(item1, 1, 0, 0)
	})
}

// C-057: one bound on all that a wait waits for.
func TestC057LongerThanTheKiosk(t *testing.T) {
	for _, c := range []struct {
		name    string
		connect time.Duration
		login   time.Duration
		elevens int
	}{{"given up before it was written", 9 * time.Second, 9 * time.Second, 0},
		{"given up after", 3 * time.Second, 3 * time.Second, 1}} {
		t.Run("C-057 "+c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				k := r.serial().loggedIn()
				r.ils.connecting(func(ctx context.Context) error {
					select {
					case <-time.After(c.connect):
						return nil
					case <-ctx.Done():
						return errors.New("no route")
					}
				})
				r.ils.on(func(q *request) bool {
					switch {
					case q.is("93"):
						after(c.login)
					case q.is("11"):
						return holding(9 * time.Second)(q)
					}
					return false
				})
				r.cut()
				k.send("F1")
				text := "cannot be reached"
				if c.elevens == 1 {
					text = "could not be confirmed"
				}
				k.refused('1', text, 15*time.Second)
				k.none(2 * time.Minute)
				r.ils.want(item1, c.elevens, c.elevens, 0)
				if n := len(r.gate.Doubts()); n != 0 {
					t.Errorf("%d doubts at the end", n)
				}
			})
		})
	}
}
