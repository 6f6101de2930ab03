package serialbridge_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"sip2gate/dedup"
)

// answering is an ILS that answers reads with fixed frames.
func answering(item, patron string, elevens func(q *request) bool) func(q *request) bool {
	return func(q *request) bool {
		switch {
		case q.is("17") && item != "":
			q.reply(item)
		case q.is("63") && patron != "":
			q.reply(patron)
		default:
			return elevens(q)
		}
		return true
	}
}

// C-042: silence after the request, and the loan exists.
func TestC042SilenceLoanExists(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(answering("R-II-LOAN", "R-PI-HAS", mute(1)))
		k := r.serial().loggedIn()
		begin := time.Now()
		k.send("F1")
		want := func(got string) {
			t.Helper()
			if !strings.Contains(got, "AH20261221    235900|") || !strings.Contains(got, "AJThe Long Rain|") || strings.Count(got, "|AH") != 1 {
				t.Errorf("got %q", got)
			}
		}
		want(k.lends(item1, 15*time.Second))
		after(20*time.Second - time.Since(begin))
		k.send("F1-SEQ")
		want(k.lends(item1, 5*time.Second))
		r.ils.want(item1, 1, 1, 0)
		r.event("checkout_in_doubt", 1)
		r.event("checkout_settled", 1)
	})
}

// C-043: silence after the request, and there is no loan.
func TestC043SilenceNoLoan(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool {
			if q.is("11") && q.nth == 1 {
				q.close()
				return true
			}
			return false
		})
		k := r.serial().loggedIn()
		begin := time.Now()
		k.send("F1")
		k.refused('1', "could not be confirmed", 15*time.Second)
		after(22*time.Second - time.Since(begin))
		k.send("F1-DATE")
		k.expect("R1-SEQ", 14*time.Second)
		k.none(2 * time.Minute)
		sent := r.ils.sent("11")
		r.ils.want(item1, 2, 1, 0)
		if d := sent[1].at.Sub(begin); d < 30*time.Second {
			t.Errorf("the second 11 came after %v", d)
		}
	})
}

// C-044, C-047: lists that prove nothing. (The list on the status page is left
// to whoever builds it.)
func TestListsThatProveNothing(t *testing.T) {
	for name, c := range map[string]struct{ patron, why string }{
		"C-044 cut short":                     {"R-PI-CUT", "shorter than its own count"},
		"C-047 titles instead of identifiers": {"R-PI-TITLE", "no known identifiers (AU)"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(answering("R-II-LOAN", c.patron, mute(1)))
				k := r.serial().loggedIn()
				k.send("F1")
				k.refused('1', "could not be confirmed", 15*time.Second)
				for range 3 { // the last one after settle and the window
					after(30 * time.Second)
					k.send("F1-DATE")
					before := r.ils.reads()
					k.refused('2', "ask staff", 15*time.Second)
					if n := r.ils.reads() - before; n > 20 {
						t.Errorf("%d reads in one wait", n)
					}
				}
				r.ils.want(item1, 1, 1, 0)
				if n := len(r.gate.Doubts()); n != 1 {
					t.Errorf("%d doubts, want one", n)
				}
				events := r.log.events("read_unclear")
				if len(events) == 0 || !strings.Contains(events[0]["why"].(string), c.why) {
					t.Errorf("the reads were logged as %v, want %q", events, c.why)
				}
			})
		})
	}
}

// C-049: what was in doubt when the gate died is settled without anybody
// asking, and shows no patron before or after.
func TestC049SettledAfterARestart(t *testing.T) {
	const pin = "48151623"
	noPatron := func(t *testing.T, r *rig) {
		t.Helper()
		for rec := range r.store.All() {
			for _, b := range [][]byte{rec.Request, rec.Answer, []byte(rec.Label), []byte(rec.Scope), []byte(rec.Station)} {
				if bytes.Contains(b, []byte(patron1)) || bytes.Contains(b, []byte(pin)) {
					t.Errorf("the store shows the patron: %q", b)
				}
			}
		}
		if strings.Contains(r.log.String(), pin) {
			t.Error("the log shows the PIN")
		}
	}
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(answering("R-II-LOAN", "R-PI-HAS", mute(1)))
		k := r.serial().loggedIn()
		k.send(edited(t, "F1", "4711", pin))
		after(time.Second)
		noPatron(t, r)
		r.kill(k)
		after(5 * time.Minute)
		for rec := range r.store.All() { // what the start finds
			if rec.State != dedup.Claimed {
				t.Fatalf("the checkout is %s after the kill", rec.State)
			}
		}
		r.start()
		after(15 * time.Second)
		r.event("checkout_settled", 1)
		for rec := range r.store.All() {
			if rec.State.String() != "completed" || rec.Request != nil {
				t.Errorf("the checkout is %s, its request kept: %v", rec.State, rec.Request != nil)
			}
		}
		if !strings.Contains(r.ils.sent("63")[0].raw, "AD"+pin+"|") {
			t.Error("the read went without the PIN of that checkout")
		}
		noPatron(t, r)
		r.ils.want(item1, 1, 1, 0)
	}, onFragile)
}

// C-050: the loan is older than the request.
func TestC050OlderLoan(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.lent(item1, patron1)
		r.ils.on(answering(edited(t, "R-II-LOAN", "20261221", "20261210"), "R-PI-HAS", func(q *request) bool {
			if q.is("11") && q.nth == 1 {
				q.close() // unread
				return true
			}
			return false
		}))
		k := r.serial().loggedIn()
		k.send("F1")
		got := k.lends(item1, 15*time.Second)
		if !strings.Contains(got, "|AH20261210    235900|") || !strings.Contains(got, "AFAlready on loan to you|") {
			t.Errorf("got %q", got)
		}
		after(20 * time.Second)
		k.send("F1-DATE")
		if got := k.lends(item1, 15*time.Second); !strings.Contains(got, "|AH20261210    235900|") {
			t.Errorf("got %q", got)
		}
		r.ils.want(item1, 1, 0, 0)
	})
}

// C-123: a patron record that knows nobody is no proof.
func TestC123UnknownPatronIsNoProof(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		elevens := mute(1)
		r.ils.on(answering("", "R-PI-BAD", func(q *request) bool {
			if q.is("99") {
				q.reply(edited(t, "R-STAT-Y", "BXYYYYYYYYYYYNYYYY", "BXYYYYYYYYYYNNYYYY"))
				return true
			}
			return elevens(q)
		}))
		k := r.serial().loggedIn()
		k.send("STAT")
		k.read(time.Second)
		begin := time.Now()
		k.send("F1")
		k.refused('1', "could not be confirmed", 15*time.Second)
		after(50*time.Second - time.Since(begin))
		k.send("F1-SEQ")
		k.refused('2', "could not be confirmed", 15*time.Second)
		after(5 * time.Minute)
		if n := len(r.gate.Doubts()); n != 1 || len(r.ils.sent("17")) != 0 {
			t.Errorf("%d doubts, %d 17s; want 1 and none", n, len(r.ils.sent("17")))
		}
		r.ils.want(item1, 1, 1, 0)
	})
}
