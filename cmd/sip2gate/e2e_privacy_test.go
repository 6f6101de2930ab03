package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sip2gate/serialbridge/sim"
	"sip2gate/serialbridge/sip2"
)

// TestNoPatronAnywhere has a busy day on a gate that logs all it can: every
// message that names a patron, mistakes, faults, doubts and restarts. Not one
// line of the log and no file of the state folder may show a patron, PIN,
// password, name or title: newGate looks at the end of every test, this one
// looks in between too. (C-110; Libki/libki-server#351)
func TestNoPatronAnywhere(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		for _, form := range []string{"json", "text"} {
			t.Run(string(persona)+"/"+form, func(t *testing.T) {
				t.Parallel()
				options := people(persona)
				options.Accounts = map[string]string{"kiosk1": password1}
				options.Items[itemNumber(7)] = sim.Item{Title: title1, Fee: "1.50"}
				ils := startILS(t, options)
				addr := freePort(t)
				g := newGate(t, setup{ils: ils.Addr(), link: hastyLink,
					log:      fmt.Sprintf("level = \"debug\"\nformat = %q", form),
					stations: []string{listen(addr, hastyStation)}})
				for day := range 2 {
					g.launch()
					g.said("gate_started")
					g.said("station_up")
					busy(t, ils, g, addr, day)
					g.noPatron()
					if day == 0 {
						g.kill()
					} else {
						g.stop()
					}
					g.noPatron()
				}
				if leaks([]byte("AA"+reader1)) == nil {
					t.Error("the search finds nothing at all")
				}
			})
		}
	}
}

// said waits for a word in the log of this run, of either form.
func (g *gateProcess) said(word string) {
	g.t.Helper()
	if !g.log.awaitAny(patience, func() bool {
		return strings.Contains(strings.Join(g.log.after(g.begun), "\n"), word)
	}) {
		g.t.Fatalf("the log does not say %s:\n%s", word, g.log)
	}
}

// busy is one day of a kiosk; items are new each day.
func busy(t *testing.T, ils *sim.ILS, g *gateProcess, addr string, day int) {
	k := connect(t, addr)
	ctx, cancel := k.within()
	defer cancel()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := k.Login(ctx, "kiosk1", password2, "MAIN")
	must("a wrong login", err)
	k = connect(t, addr)
	k.login("kiosk1", password1)
	k.quiet()
	_, err = k.PatronStatus(ctx, reader1, pin2)
	must("a PIN typo", err)
	_, err = k.PatronInformation(ctx, reader1, pin1)
	must("patron information", err)
	item := itemNumber(100 * day)
	k.borrow(reader1, item, sim.CheckoutOptions{PIN: pin2, Date: someDate(0)}) // a typo: refused
	k.lendsOnce(item, base(0))
	k.borrow(reader1, item, sim.CheckoutOptions{PIN: pin2, Date: someDate(0)}) // a conflict
	k.borrow(reader2, item, sim.CheckoutOptions{PIN: pin2, Date: someDate(1)}) // another patron
	if day == 0 {
		fee := sim.CheckoutOptions{PIN: pin1, Date: someDate(2)}
		k.borrow(reader1, itemNumber(7), fee)
		fee.FeeAccepted = true
		k.borrow(reader1, itemNumber(7), fee)
	}
	_, err = k.FeePaid(ctx, reader1, "1.50", "pay-77")
	must("a fee", err)
	_, err = k.Renew(ctx, reader1, item)
	must("a renewal", err)
	_, err = k.Checkin(ctx, item)
	must("a checkin", err)

	// A damaged frame, three times, and a frame with a field too many.
	bad := k.CheckoutFrame(reader1, item, base(3))
	bad[len(bad)-1] ^= 1
	for range 3 {
		k.ask(bad)
	}
	k.ask(sip2.AppendTrailer([]byte("11YN"+sipTime(someDate(4))+strings.Repeat(" ", 18)+
		"AOMAIN|AA"+reader1+"|AA"+reader2+"|AB"+item+"|AD"+pin1+"|"), true, '5'))
	k.send([]byte("\xff\xfd\x01AA" + reader1 + "|AD" + pin1 + "|junk that is no frame\r")) // may be answered, or not
	k = connect(t, addr)
	k.login("kiosk1", password1)

	// An answer with a mail address, a text for an answer, a frame that names
	// another item, an unanswered request: doubts, and their settlements.
	ils.Script(func(_ int, m sip2.Message) ([]byte, bool) {
		if m.Code.String() != "63" || len(field(m, "AC")) == 0 {
			return nil, false
		}
		return []byte("64              001" + sipTime(someDate(5)) + "000000000000000000000000AOMAIN|AA" + reader1 +
			"|AE" + name1 + "|BE" + mail1 + "|BD" + name1 + "|BLY|CQY|"), true
	})
	k.ask(k.Frame([]byte("63001" + sipTime(someDate(5)) + "  Y       AOMAIN|AA" + reader1 + "|ACterm|AD" + pin1 + "|")))
	ils.Script(nil)
	for n, f := range []sim.Fault{
		{Kind: sim.Lost, Code: "11", Times: 1}, {Kind: sim.CutAfter, Code: "11", Times: 1},
		{Kind: sim.OtherItem, Code: "11", Times: 1}, {Kind: sim.Halved, Code: "11", Times: 1},
		{Kind: sim.Text, Code: "11", Times: 1, Text: "Fatal: no " + name1 + " with " + reader1 + " and " + pin1},
		{Kind: sim.BadChecksum, Code: "11", Times: 1}, {Kind: sim.Doubled, Code: "11", Times: 1},
	} {
		fault(t, ils, f)
		k.borrow(reader1, itemNumber(100*day+20+n), base(10+n))
	}
	fault(t, ils, sim.Fault{Kind: sim.Refuse})
	ils.HangUp(true)
	k.borrow(reader2, itemNumber(100*day+40), sim.CheckoutOptions{PIN: pin2})
	clearFaults(t, ils)
	k.borrow(reader2, itemNumber(100*day+40), sim.CheckoutOptions{PIN: pin2})
	_, err = k.EndSession(ctx, reader1)
	must("the end of a session", err)
	// The day ends with a doubt.
	fault(t, ils, sim.Fault{Kind: sim.Lost, Code: "11", Times: 1})
	before := ils.Received("11")
	k.send(append(k.CheckoutFrame(reader1, itemNumber(100*day+50), base(50)), '\r'))
	waitILS(t, ils, "the last checkout", func(s sim.Snapshot) bool { return s.Received("11") == before+1 })
}

func (k *testKiosk) lendsOnce(item string, o sim.CheckoutOptions) {
	k.t.Helper()
	if m := k.borrow(reader1, item, o); !lent(m) {
		k.t.Errorf("checkout of %s: %q", item, m.Raw)
	}
}

// TestC112 sends control characters in an item and an institution. (after
// C-112; Libki/libki-server#422)
func TestC112ControlCharacters(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"json", "text"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			ils := startILS(t, people(sim.Naive))
			addr := freePort(t)
			g := newGate(t, setup{ils: ils.Addr(), log: fmt.Sprintf("level = \"debug\"\nformat = %q", form), stations: []string{listen(addr)}})
			g.launch()
			g.said("station_up")
			begun := g.log.len()
			k := connect(t, addr)
			control := "312\x1b[2J\x14\n99"
			frame := k.CheckoutFrame(reader1, control, base(0))
			if m := answer(k.ask(frame)); !lent(m) {
				t.Errorf("control characters in the item: %q", m.Raw)
			}
			if got := ils.Frames(); string(got[len(got)-1]) != string(frame) {
				t.Errorf("forwarded as %q\n want %q", got[len(got)-1], frame)
			}
			wantCount(t, ils, control, oneLoan)
			forged := changed(k.CheckoutFrame(reader1, item2, base(1)), "AOMAIN|", "AOMAIN\n2026-11-30 level=info event=settled|")
			if m := answer(k.ask(forged)); !lent(m) {
				t.Errorf("a line in the institution: %q", m.Raw)
			}
			g.stop()
			said := strings.Join(g.log.after(begun), "\n")
			for _, c := range []string{"\x1b", "\x14"} {
				if strings.Contains(said, c) {
					t.Errorf("the log shows %q", c)
				}
			}
			for _, line := range g.log.after(begun) {
				var e event
				if form == "json" && json.Unmarshal([]byte(line), &e) != nil || form == "text" && !strings.HasPrefix(line, "time=") {
					t.Errorf("not one record: %q", line)
				}
			}
			if n := strings.Count(said, "loan_committed"); n != 2 {
				t.Errorf("%d loans in the log", n)
			}
		})
	}
}
