package serialbridge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sip2gate/serialbridge/sip2"
)

// slowly is a connect that takes d.
func slowly(d time.Duration) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return errors.New("no route")
		}
	}
}

// since are the codes that the ILS has got from the nth frame on.
func (m *mock) since(n int) string {
	var out []string
	for _, f := range m.sent("")[n:] {
		out = append(out, f.raw[:2])
	}
	return strings.Join(out, " ")
}

// An 11 with less than 3 s of the wait left is not written: the wait is 14 s.
func TestNotWrittenInTheLastSeconds(t *testing.T) {
	for connect, elevens := range map[time.Duration]int{
		10900 * time.Millisecond: 1,
		11100 * time.Millisecond: 0,
	} {
		t.Run(connect.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.connecting(slowly(connect))
				k := r.serial()
				k.send("F1")
				if elevens == 1 {
					k.expect("R1", 15*time.Second)
				} else {
					k.refused('1', "cannot be reached", 15*time.Second)
				}
				k.none(time.Minute)
				r.ils.want(item1, elevens, elevens, 0)
				if n := len(r.gate.Doubts()); n != 0 {
					t.Errorf("%d doubts", n)
				}
			}, func(r *rig) { r.ilsTimeout = 13 * time.Second })
		})
	}
	// The same where the time went by behind another checkout of the item.
	t.Run("behind another's", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.ils.on(func(q *request) bool {
				if q.is("11") && q.nth == 1 {
					after(12500 * time.Millisecond)
					q.reply("R-FAIL")
					return true
				}
				return false
			})
			k, o := r.serial().loggedIn(), r.connect("192.0.2.7").loggedIn()
			k.send("F1")
			after(time.Second)
			o.send("F2") // at 12.5 s it has 2.5 s left
			k.expect("R-FAIL", 15*time.Second)
			o.refused('3', "", 15*time.Second)
			o.none(time.Minute)
			r.ils.want(item1, 1, 0, 0)
		}, func(r *rig) { r.ilsTimeout = 13 * time.Second })
	})
}

// No checkout on a cold link.
func TestColdLink(t *testing.T) {
	for _, c := range []struct {
		name   string
		quiet  time.Duration
		frame  string
		others string // what the ILS gets
	}{
		{"20 s", 20 * time.Second, "F1", "11"},
		{"more than 20 s", 20*time.Second + time.Millisecond, "F1", "99 11"},
		{"an hour", time.Hour, "F1", "99 11"},
		{"a 17 needs no 99", time.Hour, "II", "17"},
		{"a 09 needs no 99", time.Hour, "CI", "09"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				k := r.serial().loggedIn()
				n := len(r.ils.sent(""))
				after(c.quiet)
				k.send(c.frame)
				k.read(time.Second)
				if got := r.ils.since(n); got != c.others {
					t.Errorf("the ILS got %s, want %s", got, c.others)
				}
				k.none(time.Minute)
			})
		})
	}
	t.Run("a 63 goes before", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			n := len(r.ils.sent(""))
			after(time.Hour)
			k.send("PI")
			k.read(time.Second)
			after(20 * time.Second)
			k.send("F1")
			k.expect("R1", time.Second)
			if got := r.ils.since(n); got != "63 11" {
				t.Errorf("the ILS got %s", got)
			}
		})
	})
	t.Run("black hole", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			k.send("STAT")
			k.expect("R-STAT-Y", time.Second)
			after(time.Hour)
			n := len(r.ils.sent(""))
			r.ils.on(func(q *request) bool { return q.n == 1 }) // a firewall has forgotten it
			begin := time.Now()
			k.send("F1")
			k.expect("R1", 5*time.Second)
			if d := time.Since(begin); d > 3*time.Second {
				t.Errorf("answered after %v", d)
			}
			if got := r.ils.since(n); got != "99 93 99 11" {
				t.Errorf("the ILS got %s", got)
			}
			r.event("checkout_in_doubt", 0)
			r.ils.want(item1, 1, 1, 0)
		})
	})
	t.Run("ended while idle", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			after(time.Second)
			r.cut()
			n := len(r.ils.sent(""))
			k.send("F1")
			k.expect("R1", time.Second)
			if got := r.ils.since(n); got != "93 11" {
				t.Errorf("the ILS got %s", got)
			}
			r.event("checkout_in_doubt", 0)
			r.ils.want(item1, 1, 1, 0)
		})
	})
}

// demanding is an ILS that wants each number to be the last plus one.
func demanding(t *testing.T, then func(q *request) bool) func(q *request) bool {
	last := make(map[int]byte)
	return func(q *request) bool {
		seq := q.msg.Trailer.Seq
		switch was, there := last[q.n]; {
		case !q.msg.Trailer.HasSeq || !q.msg.Trailer.Valid:
			t.Errorf("%q has no right trailer", q.msg.Raw)
		case there && seq != '0'+(was-'0'+1)%10:
			t.Errorf("%q follows AY%c", q.msg.Raw, was)
		}
		last[q.n] = seq
		return then != nil && then(q)
	}
}

// Through all that the gate swallows and adds, its ILS sees last + 1 and its
// kiosk its own numbers.
func TestNumbersFollowOnBothSides(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(demanding(t, nil))
		k := r.serial().loggedIn() // 0
		n := byte(0)
		ask := func(frame, want string) {
			t.Helper()
			n++
			k.send(seq(t, frame, n))
			k.expect(seq(t, want, n), 15*time.Second)
		}
		lends := func(item, frame string) {
			t.Helper()
			n++
			k.send(seq(t, frame, n))
			if got := k.lends(item, 15*time.Second); sip2.ReadTrailer([]byte(strings.TrimSuffix(got, "\r"))).Seq != '0'+n%10 {
				t.Errorf("answered with %q", got)
			}
		}
		ask("STAT", "R-STAT-Y")
		ask("F1", "R1")
		ask("F1", "R1") // swallowed
		ask("F1", "R1")
		ask("II", "R-II-LOAN")
		ask("F1-DATE", "R1") // read first
		ask("STAT", "R-STAT-Y")
		after(time.Minute)
		lends(item2, "F3") // a 99 goes first
		k.send("97")       // swallowed, and without a number
		k.read(time.Second)
		ask("II", "R-II-LOAN")
		k.send("F1-BADAZ") // sent back
		k.expect("96", time.Second)
		ask("II", "R-II-LOAN")
		ask("CI", "R-CI")
		r.cut()
		ask("II", "R-II-IN") // 93 and 99 go first
		ask("F1", "R1")
		ask("STAT", "R-STAT-Y")
		// A doubt: the link is aborted, logged in anew, and read.
		silent := false
		r.ils.on(demanding(t, func(q *request) bool {
			if q.is("11") && !silent {
				silent = true
				q.lend()
				return true
			}
			return false
		}))
		lends(item3, of(t, item3, "F1"))
		ask("STAT", "R-STAT-Y")
		r.ils.want(item1, 2, 4, 0)
	})
}

// Where nothing was swallowed, what passes is byte for byte the kiosk's.
func TestNumbersAreTheKiosksOwn(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		for _, f := range []string{"F1", "F3", "STAT", "END"} { // 1, 4, 2, 6
			k.send(f)
			k.read(time.Second)
			got := r.ils.sent("")
			if want := strings.TrimSuffix(string(frameOf(t, f)), "\r"); got[len(got)-1].raw != want {
				t.Errorf("the ILS got %q, want %q", got[len(got)-1].raw, want)
			}
		}
	})
}

// Half-duplex: a different request while one is outstanding means that the
// kiosk has given up. The late answer is the gate's, not the wire's.
func TestDifferentRequestWhileOneIsOutstanding(t *testing.T) {
	for _, then := range []struct{ frame, answer, code string }{
		{"STAT", "R-STAT-Y", "99"}, {"II", "R-II-LOAN", "17"}, {"F3", "", "11"}, {"CI", "R-CI", "09"}, {"LOGIN", "R-LOGIN-Y", "93"},
	} {
		t.Run(then.frame, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(func(q *request) bool {
					return q.is("11") && q.nth == 1 && holding(5*time.Second)(q)
				})
				k := r.serial().loggedIn()
				begin := time.Now()
				k.send("F1")
				after(2 * time.Second)
				n := len(r.ils.sent(""))
				k.send(then.frame)
				if then.answer == "" {
					then.answer = of(t, item2, seq(t, "R1", 4))
				}
				k.expect(then.answer, 5*time.Second)
				if d := time.Since(begin); d != 5*time.Second {
					t.Errorf("answered after %v", d)
				}
				k.none(20 * time.Second)
				for _, f := range r.ils.sent("")[n:] {
					if f.at.Sub(begin) < 5*time.Second {
						t.Errorf("%s was pipelined", f.raw[:2])
					}
				}
				// The late answer was kept: the next 11 is a repeat (or, after
				// the checkin, new).
				elevens, made := 1, len(r.ils.sent("11"))
				if then.frame == "CI" {
					elevens, made = 2, 2
				}
				k.send("F1-DATE")
				k.expect("R1-SEQ", 5*time.Second)
				r.ils.want(item1, elevens, made, 0)
			})
		})
	}
}

// The same request again while it is outstanding joins it, whatever it is.
func TestEqualRequestJoins(t *testing.T) {
	for _, f := range []struct{ frame, code, answer string }{
		{"II", "17", "R-II-IN"}, {"CI", "09", "R-CI"}, {"FEE", "37", "R-FEE-OK"}, {"F1-BIY", "11", "R1"},
	} {
		t.Run(f.frame, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(func(q *request) bool { after(3 * time.Second); return false })
				k := r.serial()
				k.send(seq(t, f.frame, 1))
				after(time.Second)
				again := seq(t, f.frame, 2)
				if f.frame == "CI" {
					again = edited(t, again, "09N20261130    101540", "09N20261130    101541") // another date
				}
				k.send(again)
				k.expect(seq(t, f.answer, 2), 5*time.Second)
				k.none(time.Minute)
				if n := len(r.ils.sent(f.code)); n != 1 {
					t.Errorf("%d at the ILS", n)
				}
			})
		})
	}
}

// Frames that came in one read are answered in order, one at a time.
func TestFramesOfOneRead(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool { after(time.Second); return false })
		k := r.serial()
		k.send(seq(t, "STAT", 1), seq(t, "II", 2), seq(t, "F1", 3), seq(t, "F3", 4))
		for i, want := range []string{"R-STAT-Y", "R-II-IN", "R1", of(t, item2, "R1")} {
			k.expect(seq(t, want, byte(i+1)), 1100*time.Millisecond)
		}
		if got := fmt.Sprint(r.ils.codes()); got != "11 11" {
			t.Errorf("the ILS got %s", got)
		}
		k.none(time.Minute)
		r.ils.want(item1, 1, 2, 0)
	})
}
