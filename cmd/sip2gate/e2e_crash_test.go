package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"sip2gate/serialbridge/sim"
)

// itemNumber makes items for runs that need many.
func itemNumber(n int) string { return fmt.Sprintf("3123400000%04d", n) }

// TestC029 kills the gate 20 times, 0 to 190 ms after the ILS has answered.
// (C-029; novuhq/novu#12451)
func TestC029ReplayAfterKill(t *testing.T) {
	t.Parallel()
	const groups, runs = 4, 5
	for group := range groups {
		t.Run(fmt.Sprint(group), func(t *testing.T) {
			t.Parallel()
			ils := startILS(t, people(everyPersona[group%len(everyPersona)]))
			addr := freePort(t)
			g := startGate(t, setup{ils: ils.Addr(), stations: []string{listen(addr)}})
			for run := range runs {
				after := time.Duration(10*(group+groups*run)) * time.Millisecond
				item := itemNumber(run)
				k := connect(t, addr)
				k.login("kiosk1", password1)
				first := k.CheckoutFrame(reader1, item, base(run))
				k.send([]byte(string(first) + "\r"))
				waitILS(t, ils, "the answer", func(s sim.Snapshot) bool { return s.Answered("12") == run+1 })
				<-time.After(after)
				g.kill()
				got := k.rest()

				g.start()
				again := connect(t, addr)
				again.login("kiosk1", password1)
				frame := again.ask(restamped(first, '7'))
				m := answer(frame)
				_, due, ok := ils.ActiveLoan(item)
				if !ok || !lent(m) || !m.Trailer.Valid || m.Trailer.Seq != '7' ||
					field(m, "AB") != item || field(m, "AH") != sipTime(due) || !strings.Contains(field(m, "AJ"), item) {
					t.Errorf("%v: answer %q, loan due %v", after, frame, due)
				}
				settled := len(g.log.events(g.begun, "checkout_settled", "item", item, "outcome", "lent"))
				if settled == 0 && got != "" {
					same(t, frame, restamped([]byte(got), '7'))
				}
				if settled > 1 {
					t.Errorf("%v: settled %d times", after, settled)
				}
				wantCount(t, ils, item, oneLoan)
			}
		})
	}
}

// rest is what still comes before the end of the connection: at most one
// frame, without its terminator.
func (k *testKiosk) rest() string {
	k.t.Helper()
	ctx, cancel := k.within()
	defer cancel()
	var all []string
	for {
		frame, err := k.Read(ctx)
		if err != nil {
			break
		}
		all = append(all, string(frame))
	}
	if ctx.Err() != nil || len(all) > 1 {
		k.t.Errorf("after the end of the gate: %q", all)
	}
	return strings.Join(all, "\n")
}

// hasty are settings under which a doubt is settled within seconds.
const (
	hastyLink    = "timeout = \"1s\"\nsettle = \"1s\""
	hastyStation = "timeout = \"5s\"\nretries = 0"
)

// TestC035 kills the gate while it has claimed and only just logs in again: no
// byte of the 11 has left. (C-035;
// aws-powertools/powertools-lambda-python#1038)
func TestC035KilledBetweenClaimAndForwarding(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		t.Run(string(persona), func(t *testing.T) {
			t.Parallel()
			options := people(persona)
			options.Accounts = map[string]string{"kiosk1": password1}
			ils := startILS(t, options)
			p := newPTY(t)
			g := startGate(t, setup{ils: ils.Addr(), link: hastyLink,
				stations: []string{fmt.Sprintf("serial = %q\n%s", p.Path, hastyStation)}})
			k := onLine(t, p)
			k.login("kiosk1", password1)
			fault(t, ils, sim.Fault{Kind: sim.Drop, Code: "93"})
			ils.HangUp(false)
			waitILS(t, ils, "the end of the link", func(s sim.Snapshot) bool { return s.OpenConnections() == 0 })
			k.send(append(k.CheckoutFrame(reader1, item1, base(0)), '\r'))
			waitILS(t, ils, "the gate's own login", func(s sim.Snapshot) bool { return s.Received("93") == 2 })
			g.event("checkout_admitted", "item", item1)
			g.kill()
			wantCount(t, ils, item1, count{})
			clearFaults(t, ils)

			g.start()
			m := k.borrow(reader1, item1, base(30))
			if refused(m) {
				m = k.borrow(reader1, item1, base(60))
			}
			if !lent(m) {
				t.Errorf("the second try: %q", m.Raw)
			}
			g.event("checkout_settled", "item", item1, "outcome", "not lent")
			wantCount(t, ils, item1, oneLoan)
		})
	}
}

// TestC036 kills the gate after the request was sent; the ILS lends and stays
// silent. In the second run it answers no reads for longer than the window
// lasts. (C-036; aws-powertools/powertools-lambda-python#8049)
func TestC036KilledAfterTheRequestWasSent(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		for _, blind := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/blind=%v", persona, blind), func(t *testing.T) {
				t.Parallel()
				ils := startILS(t, people(persona))
				addr := freePort(t)
				g := startGate(t, setup{ils: ils.Addr(), gate: `window = "1s"`, link: hastyLink, stations: []string{listen(addr, hastyStation)}})
				fault(t, ils, sim.Fault{Kind: sim.Lost, Code: "11", Times: 1})
				k := connect(t, addr)
				k.send(append(k.CheckoutFrame(reader1, item1, base(0)), '\r'))
				waitILS(t, ils, "the loan", func(s sim.Snapshot) bool { return s.Loans(item1) == 1 })
				g.kill()
				if blind {
					fault(t, ils, sim.Fault{Kind: sim.Drop, Code: "63"})
					fault(t, ils, sim.Fault{Kind: sim.Drop, Code: "17"})
				}
				g.start()
				if blind {
					// One wait lasts longer than the window, settle and the
					// timeout together.
					again := connect(t, addr)
					if m := again.borrow(reader1, item1, base(0)); !refused(m) {
						t.Errorf("before any read is answered: %q", m.Raw)
					}
					if m := again.borrow(reader1, item1, base(30)); !refused(m) {
						t.Errorf("before any read is answered, much later: %q", m.Raw)
					}
					wantCount(t, ils, item1, oneLoan)
					clearFaults(t, ils)
				}
				again := connect(t, addr)
				m := again.borrow(reader1, item1, base(60))
				_, due, _ := ils.ActiveLoan(item1)
				if !lent(m) || field(m, "AH") != sipTime(due) || field(m, "AJ") != title1 {
					t.Errorf("after the settlement: %q, due %v", m.Raw, due)
				}
				wantCount(t, ils, item1, oneLoan)
			})
		}
	}
}

// TestC049 kills the gate and nobody repeats the checkout: it is settled all
// the same. That the store shows no patron before and after is looked at in
// passing. Five minutes without power change nothing for a process.
// (C-049; NYPL-Simplified/circulation#24)
func TestC049SettledThoughNobodyRepeats(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		t.Run(string(persona), func(t *testing.T) {
			t.Parallel()
			options := people(persona)
			options.Accounts = map[string]string{"kiosk1": password1}
			ils := startILS(t, options)
			p := newPTY(t)
			g := startGate(t, setup{ils: ils.Addr(), stations: []string{fmt.Sprintf("serial = %q", p.Path)}})
			k := onLine(t, p)
			k.login("kiosk1", password1)
			fault(t, ils, sim.Fault{Kind: sim.Lost, Code: "11", Times: 1})
			k.send(append(k.CheckoutFrame(reader1, item1, base(0)), '\r'))
			waitILS(t, ils, "the loan", func(s sim.Snapshot) bool { return s.Loans(item1) == 1 })
			g.kill()
			g.noPatron()
			g.start()
			g.event("checkout_settled", "item", item1, "outcome", "lent")
			g.noPatron()
			k.quiet() // the station's next message is no repeat
			if m := k.borrow(reader1, item1, base(30)); !lent(m) {
				t.Errorf("the patron comes back: %q", m.Raw)
			}
			wantCount(t, ils, item1, oneLoan)
		})
	}
}

// TestTerminatedDuringAnExchange: the answer that is on its way when SIGTERM
// comes is given, and stored.
func TestTerminatedDuringAnExchange(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		t.Run(string(persona), func(t *testing.T) {
			t.Parallel()
			ils := startILS(t, people(persona))
			addr := freePort(t)
			g := startGate(t, setup{ils: ils.Addr(), stations: []string{listen(addr)}})
			answered := make(chan struct{})
			fault(t, ils, sim.Fault{Kind: sim.Late, Code: "11", Until: answered})
			k, idle := connect(t, addr), connect(t, addr)
			idle.quiet()
			frame := k.CheckoutFrame(reader1, item1, base(0))
			k.send(append(frame, '\r'))
			waitILS(t, ils, "the loan", func(s sim.Snapshot) bool { return s.Loans(item1) == 1 })
			g.terminate()
			if got := idle.rest(); got != "" { // closed: the gate has seen the signal
				t.Errorf("a kiosk that waits for nothing got %q", got)
			}
			close(answered)
			first := k.read()
			if code := g.exit(patience); code != exitOK {
				t.Errorf("exit code %d", code)
			}
			g.event("loan_committed", "item", item1)

			g.start()
			again := connect(t, addr)
			if !lent(answer(first)) {
				t.Errorf("the answer under way: %q", first)
			}
			same(t, again.ask(frame), first)
			g.event("duplicate_checkout_suppressed", "item", item1)
			if found := g.log.events(g.begun, "checkout_settled"); len(found) > 0 {
				t.Errorf("it was a doubt: %v", found)
			}
			wantCount(t, ils, item1, oneLoan)
		})
	}
}

// TestC110 kills a busy gate with SIGABRT: the dump of all its goroutines
// shows no patron. What the log shows is TestNoPatronAnywhere's affair.
// (C-110; Libki/libki-server#351)
func TestC110NoPINInACrash(t *testing.T) {
	t.Parallel()
	ils := startILS(t, people(sim.Naive))
	addr := freePort(t)
	g := newGate(t, setup{ils: ils.Addr(), stations: []string{listen(addr)}})
	g.env = []string{"GOTRACEBACK=all"}
	g.start()
	g.crashed = true
	fault(t, ils, sim.Fault{Kind: sim.Lost, Code: "11"})
	for n := range 8 {
		k := connect(t, addr)
		k.login("kiosk1", password1)
		k.send(append(k.CheckoutFrame(reader1, itemNumber(n), base(n)), '\r'))
	}
	waitILS(t, ils, "the loans", func(s sim.Snapshot) bool { return s.Received("11") == 8 })
	if err := g.cmd.Process.Signal(syscall.SIGABRT); err != nil {
		t.Fatal(err)
	}
	if code := g.exit(patience); code == exitOK {
		t.Error("it did not crash")
	}
	if said := g.log.String(); !strings.Contains(said, "SIGABRT") || !strings.Contains(said, "goroutine ") {
		t.Error("there is no dump")
	}
	g.start() // and all of it is in doubt, and can be settled
	clearFaults(t, ils)
	k := connect(t, addr)
	for n := range 8 {
		if m := k.borrow(reader1, itemNumber(n), base(n)); !lent(m) {
			t.Errorf("item %d: %q", n, m.Raw)
		}
		wantCount(t, ils, itemNumber(n), oneLoan)
	}
}
