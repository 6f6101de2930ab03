package serialbridge_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
)

// C-033: a repeat while the first is still on its way.
func TestC033RepeatInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(holding(8 * time.Second))
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

// C-034: a changed request while the first is in flight.
func TestC034ChangedRequestInFlight(t *testing.T) {
	for _, lend := range []bool{true, false} {
		t.Run("C-034 ILS lends "+strconv.FormatBool(lend), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(func(q *request) bool {
					if !q.is("11") || q.nth > 1 {
						return false
					}
					after(6 * time.Second)
					if lend {
						q.lend()
						q.reply("R1")
					} else {
						q.reply("R-FAIL")
					}
					return true
				})
				k, other := r.serial().loggedIn(), r.connect("192.0.2.7").loggedIn()
				begin := time.Now()
				k.send("F1")
				after(time.Second)
				other.send("F1-PIN")
				if lend {
					k.expect("R1", 6*time.Second)
					other.refused('2', "differs from one just made", 9*time.Second)
					r.event("checkout_conflict", 1)
					r.ils.want(item1, 1, 1, 0)
				} else {
					k.expect("R-FAIL", 6*time.Second)
					other.expect("R1-SEQ", 9*time.Second)
					r.event("checkout_conflict", 0)
					r.ils.want(item1, 2, 1, 0)
				}
				if d := time.Since(begin); d < 6*time.Second {
					t.Errorf("the second was answered after %v, before the first", d)
				}
				k.none(time.Minute)
				other.none(time.Minute)
			})
		})
	}
}

// C-035: killed between claim and forwarding.
func TestC035KilledBeforeForwarding(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		k.send("STAT")
		k.expect("R-STAT-Y", time.Second)
		r.ils.connecting(blackHole)
		r.cut()
		k.send("F1")
		after(time.Second)
		if n := len(r.gate.Doubts()); n != 0 {
			t.Fatalf("%d doubts before anything was sent", n)
		}
		r.crash(k)
		if n := len(r.gate.Doubts()); n != 1 {
			t.Fatalf("%d doubts after the start; the claim was not on the disk", n)
		}
		start := time.Now()
		k = r.serial()
		after(10 * time.Second)
		k.send("F1-DATE")
		k.refused('2', "ask staff", 15*time.Second)
		if time.Since(start) > 25*time.Second {
			t.Error("the refusal came too late")
		}
		if n := r.ils.checkouts(item1); n != 0 {
			t.Errorf("%d 11s before a negative read counts", n)
		}
		after(45*time.Second - time.Since(start))
		k.send(edited(t, "F1-DATE", "101530", "101610"))
		k.expect("R1-SEQ", 15*time.Second)
		r.ils.want(item1, 1, 1, 0)
	}, onFragile)
}

// C-036: killed after the request was sent.
func TestC036KilledAfterForwarding(t *testing.T) {
	for _, c := range []struct {
		name     string
		readable time.Duration // since F1: when the ILS begins to answer reads
		tries    []time.Duration
		refused  int // so many of the tries come before it can be settled
	}{
		{"readable", 0, []time.Duration{5 * time.Second, 40 * time.Second, 80 * time.Second}, 0},
		{"readable after a while", 100 * time.Second, []time.Duration{5 * time.Second, 95 * time.Second, 120 * time.Second}, 1},
	} {
		t.Run("C-036 "+c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				var begin time.Time
				r.ils.on(func(q *request) bool {
					switch {
					case q.is("11"):
						q.lend()
						return true
					case q.is("63"), q.is("17"):
						return time.Since(begin) < c.readable
					}
					return false
				})
				k := r.serial().loggedIn()
				begin = time.Now()
				k.send("F1")
				after(time.Second)
				r.kill(k)
				after(2 * time.Second)
				r.start()
				k = r.serial()
				for i, at := range c.tries {
					after(at - time.Since(begin))
					k.send("F1-SEQ")
					got := k.read(15 * time.Second)
					lent := strings.HasPrefix(got, "121") && strings.Contains(got, "AH20261221    235900|")
					refused := strings.HasPrefix(got, "120NUN")
					if i < c.refused && !refused || i > c.refused && !lent || !lent && !refused {
						t.Errorf("the try at %v got %q", at, got)
					}
				}
				after(3 * time.Minute)
				r.ils.want(item1, 1, 1, 0)
			}, onFragile)
		})
	}
}

// C-038: the edges of the window. (That a window of 0s is refused is the
// settings' affair.)
func TestC038WindowEdges(t *testing.T) {
	const window = 90 * time.Second
	for _, c := range []struct {
		at      time.Duration
		elevens int
	}{{window - time.Millisecond, 1}, {window, 2}, {window + time.Millisecond, 2}} {
		t.Run("C-038 "+c.at.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				k := r.serial().loggedIn()
				k.send("F1")
				k.expect("R1", time.Second)
				after(c.at)
				k.send("F1")
				k.expect("R1", 5*time.Second)
				r.ils.want(item1, c.elevens, 1, c.elevens-1)
			})
		})
	}
}

// C-041: a late connection must not carry a request that was given up, and a
// late answer must not be taken for another's.
func TestC041LateRequest(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		begin := time.Now()
		r.ils.connecting(func(ctx context.Context) error {
			select {
			case <-time.After(17*time.Second - time.Since(begin)):
				return nil
			case <-ctx.Done():
				return errors.New("no route")
			}
		})
		r.cut()
		k.send("F1")
		k.refused('1', "cannot be reached", 15*time.Second)
		after(2 * time.Minute)
		r.ils.want(item1, 0, 0, 0)
		if n := len(r.gate.Doubts()); n != 0 {
			t.Errorf("%d doubts; nothing was sent", n)
		}
		// The claim is released: the next try is new work.
		k.send("F1-DATE")
		k.expect("R1-SEQ", 15*time.Second)
		r.ils.want(item1, 1, 1, 0)
	})
}

func TestC041LateAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		closed := make(chan struct{})
		r.ils.on(func(q *request) bool {
			if q.is("11") {
				q.lend()
				after(12 * time.Second)
				q.reply("R1")
				close(closed)
				return true
			}
			if q.is("17") || q.is("63") {
				after(1900 * time.Millisecond) // the late 12 comes meanwhile
			}
			return false
		})
		k := r.serial().loggedIn()
		begin := time.Now()
		k.send("F1")
		got := k.lends(item1, 15*time.Second)
		if !strings.Contains(got, "AFAlready on loan to you|AY1") {
			t.Errorf("got %q, want what the read showed", got)
		}
		if d := time.Since(begin); d > 14*time.Second {
			t.Errorf("answered after %v", d)
		}
		<-closed
		k.none(20 * time.Second)
		k.send("STAT")
		k.expect("R-STAT-Y", 2*time.Second)
		r.ils.want(item1, 1, 1, 0)
		if n := r.ils.connections(); n != 2 {
			t.Errorf("%d connections, want a new one for the read", n)
		}
		r.event("checkout_settled", 1)
	})
}
