package serialbridge_test

import (
	"strings"
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

// C-028: the answer is lost on the way to the kiosk.
func TestC028AnswerLostOnTheWay(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.connect("192.0.2.7").loggedIn()
		r.ils.on(func(q *request) bool {
			if q.is("11") {
				q.lend()
				k.hangUp()
				q.reply("R1")
				return true
			}
			return false
		})
		k.send("F1")
		after(100 * time.Millisecond)
		k = r.connect("192.0.2.7").loggedIn()
		k.send("F1-SEQ")
		k.expect("R1-SEQ", 5*time.Second)
		r.ils.want(item1, 1, 1, 0)
		r.event("duplicate_checkout_suppressed", 1)
		e := r.log.events("duplicate_checkout_suppressed")[0]
		if e["station"] != "S2" || e["sequence"] != "2" || e["item"] != item1 || !strings.HasPrefix(e["dedup_key"].(string), "sip2:checkout:") {
			t.Errorf("the event says %v", e)
		}
		for _, field := range []string{"patron", "AA", "AD"} {
			if _, there := e[field]; there {
				t.Errorf("the event has a field %s", field)
			}
		}
	})
}

// C-029: a repeat after the gate has died, at any moment of the first one.
func TestC029RepeatAfterARestart(t *testing.T) {
	for _, c := range []struct {
		name   string
		stored bool // the answer has reached the disk
		clean  bool // it was stopped, not killed
	}{{"stopped", true, true}, {"killed, answer on the disk", true, false}, {"killed, answer lost", false, false}} {
		t.Run("C-029 "+c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				k := r.serial().loggedIn()
				k.send("F1")
				k.expect("R1", time.Second)
				if c.stored {
					r.store.(*fragile).written()
				}
				if c.clean {
					r.restart()
				} else {
					r.crash(k)
				}
				k = r.serial()
				k.send("F1-SEQ")
				if c.stored {
					k.expect("R1-SEQ", 14*time.Second)
				} else {
					got := k.lends(item1, 14*time.Second)
					if !strings.Contains(got, "AJThe Long Rain|") || !strings.Contains(got, "AH20261221    235900|") {
						t.Errorf("got %q, want title and due date as the ILS shows them", got)
					}
				}
				after(2 * time.Minute)
				r.ils.want(item1, 1, 1, 0)
			}, onFragile)
		})
	}
	for ms := time.Duration(0); ms <= 200; ms += 10 {
		bubble(t, func(t *testing.T, r *rig) {
			r.ils.on(holding(100 * time.Millisecond))
			k := r.serial().loggedIn()
			k.send("F1")
			after(ms * time.Millisecond)
			r.crash(k)
			k = r.serial()
			k.send("F1-SEQ")
			k.lends(item1, 14*time.Second)
			r.ils.want(item1, 1, 1, 0)
		}, onFragile)
	}
}

// C-031: a 97 gets the last message of this station only.
func TestC031ResendToItsOwnStation(t *testing.T) {
	for name, answer := range map[string]string{"plain": "R1", "ISO 8859-1 title": "R-LATIN1"} {
		t.Run("C-031 "+name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(func(q *request) bool {
					if q.is("11") {
						q.lend()
						q.reply(answer)
						return true
					}
					return false
				})
				k, other := r.serial().loggedIn(), r.connect("192.0.2.7").loggedIn()
				k.send("F1")
				k.expect(answer, time.Second)
				other.send("STAT")
				other.expect("R-STAT-Y", time.Second)
				before := len(r.ils.sent(""))
				k.send("97")
				k.expect(answer, time.Second)
				other.send("97")
				other.expect("R-STAT-Y", time.Second)
				k.send("97")
				k.expect(answer, time.Second)
				k.send("F1-SEQ")
				k.expect(seq(t, answer, 2), time.Second)
				k.send("97")
				k.expect(seq(t, answer, 2), time.Second)
				k.none(time.Minute)
				if n := len(r.ils.sent("")) - before; n != 0 {
					t.Errorf("%d frames went to the ILS", n)
				}
				r.ils.want(item1, 1, 1, 0)
			})
		})
	}
}

// C-121: a resend request while the answer is still on its way.
func TestC121ResendWhileOutstanding(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		k.send("F1")
		k.expect("R1", time.Second)
		r.ils.on(holding(3 * time.Second))
		begin := time.Now()
		k.send("F3")
		after(time.Second)
		k.send("97AZ0000\r") // never judged by its trailer
		k.expect(of(t, item2, seq(t, "R1", 4)), 3*time.Second)
		if d := time.Since(begin); d != 3*time.Second {
			t.Errorf("answered after %v", d)
		}
		k.none(time.Minute)
		k.send("97")
		k.expect(of(t, item2, seq(t, "R1", 4)), time.Second)
		k.none(time.Minute)
		if n := len(r.ils.sent("97")); n != 0 {
			t.Errorf("%d 97s at the ILS", n)
		}
		r.ils.want(item2, 1, 2, 0)
	})
}

// C-127: an ACS status instead of a checkout response.
func TestC127StatusInsteadOfAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool {
			if q.is("11") && q.nth == 1 {
				q.reply("R-STAT-Y")
				return true
			}
			return false
		})
		k := r.serial().loggedIn()
		k.send("F1")
		k.expect(seq(t, "R-STAT-Y", 1), time.Second)
		k.send("F1")
		k.expect("R1", time.Second)
		k.send("F1-SEQ")
		k.expect("R1-SEQ", time.Second)
		r.ils.want(item1, 2, 1, 0)
	})
}
