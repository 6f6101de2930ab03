package serialbridge_test

import (
	"strings"
	"testing"
	"time"
)

// A request that differs in what makes a transaction is never answered with
// what was stored for another one.
func TestChangedRequestIsNotAnsweredFromMemory(t *testing.T) {
	const unlike = "AH20270202    235900"
	for _, c := range []struct {
		name, from, to string
		forwarded      bool
	}{
		{"PIN", "|AD4711|", "|AD4712|", false},
		{"no PIN", "|AD4711|", "|", false},
		{"empty PIN", "|AD4711|", "|AD|", false},
		{"fee acknowledged", "|BON|", "|BOY|", false},
		{"patron", patron1, patron2, true},
		{"item", item1, item2, true},
		{"institution", "AOMAIN", "AOBRANCH2", true},
		{"cancel", "|BIN|", "|BIY|", true},
	} {
		for _, when := range []string{"completed", "in flight"} {
			t.Run(c.name+", "+when, func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					r.ils.on(func(q *request) bool {
						if !q.is("11") {
							return false
						}
						q.lend()
						if q.nth > 1 {
							q.reply(strings.ReplaceAll(q.loan(), "AH20261221    235900", unlike))
							return true
						}
						after(2 * time.Second)
						q.reply("R1")
						return true
					})
					k, o := r.serial().loggedIn(), r.connect("192.0.2.7").loggedIn()
					k.send("F1")
					if when == "completed" {
						k.expect("R1", 3*time.Second)
					}
					after(time.Second)
					for _, kiosk := range []*kiosk{o, k} {
						if kiosk == k && when == "in flight" {
							k.expect("R1", 3*time.Second)
						}
						kiosk.send(seq(t, edited(t, "F1", c.from, c.to), 2))
						got := kiosk.read(15 * time.Second)
						if strings.Contains(got, "AH20261221") {
							t.Errorf("answered with the stored 12: %q", got)
						}
						if lent := strings.Contains(got, unlike); lent != c.forwarded {
							t.Errorf("got %q, want it forwarded: %v", got, c.forwarded)
						}
					}
				})
			})
		}
	}
}

// Staff have checked the item in at a desk that the gate does not see.
func TestDeskCheckinTheGateNeverSaw(t *testing.T) {
	for _, c := range []struct {
		name, then string
		from       string // which station scans again
		reads      bool
	}{
		{"scanned again", "F1-DATE", "S1", true},
		{"scanned at the other kiosk", "F1-SEQ", "S2", true},
		{"the machine's own repeat", "F1-SEQ", "S1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				k := r.serial().loggedIn()
				k.send("F1")
				k.expect("R1", time.Second)
				after(5 * time.Second)
				r.ils.checkedIn(item1)
				if c.from == "S2" {
					k = r.connect("192.0.2.7").loggedIn()
				}
				k.send(c.then)
				k.expect("R1-SEQ", 5*time.Second)
				switch n := r.ils.reads(); {
				case c.reads:
					r.ils.want(item1, 2, 2, 0)
					if n == 0 || r.ils.active() != 1 {
						t.Errorf("%d reads, %d loans at the end", n, r.ils.active())
					}
				default: // nobody walks that fast
					r.ils.want(item1, 1, 1, 0)
					if n != 0 {
						t.Errorf("%d reads for the machine's own repeat", n)
					}
				}
			})
		})
	}
}

// Which repeat is the machine's own: no other request in between but 93, 97
// and 99, the same date, within (retries + 1) × timeout.
func TestMachinesOwnRepeat(t *testing.T) {
	between := func(frames ...string) func(k *kiosk) {
		return func(k *kiosk) {
			for _, f := range frames {
				k.send(f)
				k.read(2 * time.Second)
			}
		}
	}
	wait := func(d time.Duration) func(k *kiosk) { return func(*kiosk) { after(d) } }
	const horizon = 45 * time.Second
	for _, c := range []struct {
		name    string
		between func(k *kiosk)
		then    string
		own     bool
	}{
		{"at once", nil, "F1-SEQ", true},
		{"same AY", nil, "F1", true},
		{"after 99, 97, 93", between("STAT", "97", "LOGIN"), "F1-SEQ", true},
		{"another date", nil, "F1-DATE", false},
		{"another date, same AY", nil, "F1-DATE-SAMEAY", false},
		{"after a 63", between("PI"), "F1-SEQ", false},
		{"after a 17", between("II"), "F1-SEQ", false},
		{"after a 35", between("END"), "F1-SEQ", false},
		{"after a 37", between("FEE"), "F1-SEQ", false},
		{"after a 29", between("RENEW"), "F1-SEQ", false},
		{"after an unknown code", between("UNK"), "F1-SEQ", false},
		{"after another checkout", between("F3"), "F1-SEQ", false},
		{"after a 63 and a repeat of the 11", func(k *kiosk) {
			between("PI", "F1-SEQ")(k)
			k.r.ils.mu.Lock()
			defer k.r.ils.mu.Unlock()
			k.r.ils.frames = nil // its read is not this one's
		}, "F1-SEQ", true},
		{"at the end of the horizon", wait(horizon), "F1-SEQ", true},
		{"after the horizon", wait(horizon + time.Millisecond), "F1-SEQ", false},
		{"the horizon runs from the last transmission", func(k *kiosk) {
			after(40 * time.Second)
			k.send("F1-SEQ")
			k.expect("R1-SEQ", time.Second)
			after(40 * time.Second)
		}, "F1-SEQ", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				k := r.serial().loggedIn()
				k.send("F1")
				k.expect("R1", time.Second)
				if c.between != nil {
					c.between(k)
				}
				reads := r.ils.reads()
				k.send(c.then)
				got := k.lends(item1, 5*time.Second)
				if !strings.Contains(got, "AH20261221    235900") {
					t.Errorf("got %q", got)
				}
				if own := r.ils.reads() == reads; own != c.own {
					t.Errorf("answered without asking: %v, want %v", own, c.own)
				}
				if n := r.ils.checkouts(item1); n > 1 {
					t.Errorf("%d 11s", n)
				}
			})
		})
	}
}

// A kiosk whose connection broke comes back while its 11 is in flight: the
// repeat joins, and the old connection gets nothing.
func TestJoinAcrossConnections(t *testing.T) {
	for _, c := range []struct {
		name, address string
		then          string
		joins         bool
	}{
		{"same address", "192.0.2.7", "F1-SEQ", true},
		{"same address, another date", "192.0.2.7", "F1-DATE", false},
		{"another address", "192.0.2.8", "F1-SEQ", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(holding(5 * time.Second))
				old := r.connect("192.0.2.7").loggedIn()
				old.send("F1")
				after(time.Second)
				k := r.connect(c.address).loggedIn()
				k.send("STAT") // 93 and 99 do not count
				k.expect("R-STAT-Y", time.Second)
				k.send(c.then)
				if c.joins {
					k.expect("R1-SEQ", 5*time.Second)
					old.none(20 * time.Second)
				} else {
					old.expect("R1", 5*time.Second)
					k.expect("R1-SEQ", 5*time.Second)
				}
				k.none(20 * time.Second)
				r.ils.want(item1, 1, 1, 0)
				if read := r.ils.reads() > 0; read == c.joins {
					t.Errorf("%d reads", r.ils.reads())
				}
				joined := 0
				if c.joins {
					joined = 1
				}
				r.event("checkout_joined", joined)
			})
		})
	}
	t.Run("the old one hung up", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.ils.on(holding(5 * time.Second))
			k := r.connect("192.0.2.7").loggedIn()
			k.send("F1")
			after(time.Second)
			k.hangUp()
			k = r.connect("192.0.2.7").loggedIn()
			k.send("F1-SEQ")
			k.expect("R1-SEQ", 5*time.Second)
			k.send("F1-SEQ") // delivered: no need to ask
			k.expect("R1-SEQ", time.Second)
			r.ils.want(item1, 1, 1, 0)
			if n := r.ils.reads(); n != 0 {
				t.Errorf("%d reads", n)
			}
		})
	})
	t.Run("only one of two new ones", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.ils.on(holding(5 * time.Second))
			old := r.connect("192.0.2.7").loggedIn()
			old.send("F1")
			after(time.Second)
			k, other := r.connect("192.0.2.7").loggedIn(), r.connect("192.0.2.7").loggedIn()
			k.send("F1")
			after(time.Second)
			other.send("F1-SEQ")
			other.expect("R1-SEQ", 5*time.Second)
			k.none(20 * time.Second)
			old.none(time.Second)
			r.ils.want(item1, 1, 1, 0)
		})
	})
	t.Run("a serial line that was away", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.ils.on(holding(5 * time.Second))
			k := r.serial().loggedIn()
			k.send("F1")
			after(time.Second)
			k.hangUp()
			k = r.serial()
			k.send("F1-SEQ")
			k.expect("R1-SEQ", 5*time.Second)
			r.ils.want(item1, 1, 1, 0)
		})
	})
}
