package serialbridge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sip2gate/serialbridge"
)

// mainStatus is what the gate says in place of R-STAT-Y.
var mainStatus = status98{ao: "MAIN", am: "Main Library", bx: "YYYYYYYYYYYNYYYY", version: "2.00", seq: "2"}

// C-058: line down, the gateway answers for itself.
func TestC058LineDown(t *testing.T) {
	for name, connect := range map[string]func(*rig){"port closed": portClosed, "no answer": nothingBack} {
		for _, listen := range []bool{false, true} {
			t.Run(fmt.Sprintf("C-058 answer, %s, TCP %v", name, listen), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					k := r.serialOr(listen).loggedIn()
					k.send("STAT")
					k.expect("R-STAT-Y", time.Second)
					r.down(connect)
					k.send("STAT")
					k.ownStatus(mainStatus)
					k.send("F1")
					k.refused('1', "cannot be reached", 14*time.Second)
					for _, f := range []string{"CI", "END"} {
						k.send(f)
						k.negative(f, 14*time.Second)
					}
					r.ils.connecting(nil)
					k.upAgain(10 * time.Second)
					k.send("F1-DATE")
					k.expect("R1-SEQ", time.Second)
					k.none(time.Minute)
					r.ils.want(item1, 1, 1, 0)
					if n := len(r.ils.sent("09")) + len(r.ils.sent("35")); n != 0 {
						t.Errorf("%d of the frames that were answered have been sent", n)
					}
				})
			})
			for _, mode := range []serialbridge.WANDown{serialbridge.Silent, serialbridge.Close} {
				t.Run(fmt.Sprintf("C-058 %s, %s, TCP %v", mode, name, listen), func(t *testing.T) {
					bubble(t, func(t *testing.T, r *rig) {
						k := r.serialOr(listen).loggedIn()
						k.send("STAT")
						k.expect("R-STAT-Y", time.Second)
						r.down(connect)
						for _, f := range []string{"STAT", "F1", "CI", "END"} {
							k.send(f)
							if mode == serialbridge.Close && listen {
								k.closed(15 * time.Second)
								k = r.connect("192.0.2.7")
								continue
							}
							k.none(15 * time.Second)
						}
						r.ils.connecting(nil)
						if mode == serialbridge.Silent || !listen {
							after(10 * time.Second) // the attempt under way has ended by then
						}
						k.send("STAT")
						k.expect("R-STAT-Y", time.Second)
						k.send("F1-DATE")
						k.expect("R1-SEQ", time.Second)
						r.ils.want(item1, 1, 1, 0)
					}, wanDown(mode))
				})
			}
		}
	}
}

// upAgain asks for the status until it is the ILS's own, for d at most.
func (k *kiosk) upAgain(d time.Duration) {
	k.r.t.Helper()
	for begin := time.Now(); ; after(500 * time.Millisecond) {
		k.send("STAT")
		if k.read(d) == string(frameOf(k.r.t, "R-STAT-Y")) {
			return
		}
		if time.Since(begin) > d {
			k.r.t.Fatalf("no 98 of the ILS within %v\n%s", d, k.r.log)
		}
	}
}

// C-061: a 98 from the gateway with a wrong clock. (The status page is a later
// matter.)
func TestC061WrongClock(t *testing.T) {
	boot := time.Date(1970, 1, 1, 0, 0, 20, 0, time.UTC)
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		clock func() (time.Time, bool)
		date  string
	}{
		"no clock":                 {nil, ""},
		"1970":                     {func() (time.Time, bool) { return boot, false }, ""},
		"the last shutdown's time": {func() (time.Time, bool) { return noon, false }, ""},
		"known to be right":        {func() (time.Time, bool) { return noon, true }, "20261130    120000"},
	} {
		t.Run("C-061 "+name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				before := status98{version: "2.00", bx: noMessages, seq: "2", date: c.date}
				r.down(portClosed)
				k := r.serial()
				k.send("STAT")
				k.ownStatus(before)
				r.ils.connecting(nil)
				after(time.Minute)
				k.send("STAT")
				k.expect("R-STAT-Y", time.Second)
				r.down(portClosed)
				k.send("STAT")
				want := mainStatus
				want.date = c.date
				k.ownStatus(want)
				if strings.Contains(k.heard(), "1970") {
					t.Errorf("the kiosk was told 1970: %q", k.heard())
				}
			}, func(r *rig) {
				r.edit = func(cfg *serialbridge.Config) { cfg.Clock = c.clock }
			})
		})
	}
}

// C-064: a 98 of the wrong institution.
func TestC064StatusOfItsOwnInstitution(t *testing.T) {
	branch := status98{ao: "BRANCH2", am: "Branch Two", bx: "YYYNNNNNNNNNYYYY", version: "2.00", seq: "2"}
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("C-064 restart ", restart), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				account := make(map[int]string) // of a connection; only its own goroutine asks for its own
				r.ils.on(func(q *request) bool {
					switch {
					case q.is("93"):
						r.ils.mu.Lock()
						account[q.n] = q.field("CP")
						r.ils.mu.Unlock()
						return false
					case q.is("99"):
						r.ils.mu.Lock()
						who := account[q.n]
						r.ils.mu.Unlock()
						if who == "BRANCH2" {
							q.reply("R-STAT-BR2")
							return true
						}
					}
					return false
				})
				s1, s2 := r.serial().loggedIn(), r.connect("192.0.2.7")
				s2.send("LOGIN2")
				s2.expect("R-LOGIN-Y", time.Second)
				for range 2 {
					s1.send("STAT")
					s2.send("STAT")
					s1.expect("R-STAT-Y", time.Second)
					s2.expect("R-STAT-BR2", time.Second)
				}
				r.down(portClosed)
				if restart {
					r.restart()
					s1, s2 = r.serial(), r.connect("192.0.2.7")
				}
				s1.send("STAT")
				s1.ownStatus(mainStatus)
				s2.send("STAT")
				s2.ownStatus(branch)
			})
		})
	}
}

// C-069: protocol version 2.0E.
func TestC069OtherVersion(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool {
			if q.is("99") {
				q.reply("R-STAT-NOPIPE")
			}
			return q.is("99")
		})
		k := r.serial().loggedIn()
		k.send("STAT-20E")
		k.expect("R-STAT-NOPIPE", time.Second)
		if got, want := r.ils.wire(1), frames(t, "LOGIN", "STAT-20E"); got != want {
			t.Errorf("the ILS got %q, want %q", got, want)
		}
		r.down(portClosed)
		k.send("STAT-20E")
		k.ownStatus(status98{ao: "MAIN", emptyAM: true, bx: "YYYYYYYYNYYNNNYY", version: "2.00", seq: "2"})
	})
}

// The last 98 is kept over a restart, and so are the logins: a kiosk that logs
// in again while the line is down is let in if the ILS let it in last time.
func TestDownLoginAndStatusAfterRestart(t *testing.T) {
	for _, listen := range []bool{false, true} {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serialOr(listen).loggedIn()
			k.send("STAT")
			k.expect("R-STAT-Y", time.Second)
			r.ils.connecting(refuse)
			r.restart()
			k = r.serialOr(listen)
			k.send("LOGIN")
			k.expect("R-LOGIN-Y", 14*time.Second)
			k.send("STAT")
			k.ownStatus(mainStatus)
			k.send("LOGIN-BADPW")
			k.expect("R-LOGIN-N", 14*time.Second)
			k.send(withoutTrailer(t, "LOGIN2")) // by AY and AZ it would be sent back
			k.expect("96", time.Second)
			k.send("LOGIN2")
			k.expect("R-LOGIN-N", 14*time.Second)
			k.send(edited(t, "LOGIN", "AY0", "AY5"))
			k.expect(edited(t, "R-LOGIN-Y", "AY0", "AY5"), 14*time.Second)
		})
	}
}
