package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"sip2gate/serialbridge/sim"
	"sip2gate/serialbridge/sip2"
)

// TestC063 asks for the status before it logs in. (C-063;
// evergreen-library-system/SIPServer LP#1338731). The simulated Koha hangs up
// on it, as the real one does, where accounts are set; here none are.
func TestC063StatusBeforeLogin(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/together=%v", persona, together), func(t *testing.T) {
				t.Parallel()
				ils := startILS(t, people(persona))
				addr := freePort(t)
				startGate(t, setup{ils: ils.Addr(), stations: []string{listen(addr)}})
				k := connect(t, addr)
				frames := [][]byte{
					sip2.AppendTrailer([]byte("9900802.00"), true, '2'),
					sip2.AppendTrailer([]byte("9300CNkiosk1|CO"+password1+"|CPMAIN|"), true, '0'),
					restamped(k.CheckoutFrame(reader1, item1, base(0)), '1'),
				}
				var got [][]byte
				if together {
					k.send(append(bytes.Join(frames, []byte{'\r'}), '\r'))
				}
				for _, f := range frames {
					if !together {
						k.send(append(f, '\r'))
					}
					got = append(got, k.read())
				}
				for i, want := range []string{"98 2", "94 0", "12 1"} {
					m := answer(got[i])
					if s := m.Code.String() + " " + string(m.Trailer.Seq); s != want || !m.Trailer.Valid {
						t.Errorf("answer %d: %q, want %s", i+1, got[i], want)
					}
				}
				k.quiet()
				var codes []string
				for _, e := range ils.Journal() {
					if e.Event == sim.EventFrame {
						codes = append(codes, e.Code)
					}
				}
				if s := strings.Join(codes, " "); s != "99 93 11 99" {
					t.Errorf("the ILS received %s", s)
				}
				wantCount(t, ils, item1, oneLoan)
			})
		}
	}
}

// TestC066 logs in with a wrong password where the right one is known.
// (C-066; folio-org/edge-sip2 SIP2-222)
func TestC066WrongPassword(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		t.Run(string(persona), func(t *testing.T) {
			t.Parallel()
			options := people(persona)
			options.Accounts = map[string]string{"kiosk1": password1}
			ils := startILS(t, options)
			p := newPTY(t)
			addr := freePort(t)
			g := startGate(t, setup{ils: ils.Addr(), stations: []string{serial(p.Path), listen(addr)}})
			right := sip2.AppendTrailer([]byte("9300CNkiosk1|CO"+password1+"|CPMAIN|"), true, '0')
			wrong := sip2.AppendTrailer([]byte("9300CNkiosk1|CO"+password2+"|CPMAIN|"), true, '0')
			login := func(k *testKiosk, frame []byte, want string) {
				t.Helper()
				if got := k.ask(frame); !bytes.HasPrefix(got, []byte(want)) {
					t.Errorf("login of %v: %q, want %s", k.conn != nil, got, want)
				}
			}
			s1, s2 := onLine(t, p), connect(t, addr)
			login(s1, right, "941")
			login(s2, wrong, "940")
			conns := ils.Connections()
			if m := s1.borrow(reader1, item1, base(0)); !lent(m) {
				t.Errorf("S1's session: %q", m.Raw)
			}
			if ils.Connections() != conns {
				t.Error("S1's session was touched")
			}

			fault(t, ils, sim.Fault{Kind: sim.Refuse})
			ils.HangUp(true)
			waitILS(t, ils, "the end of the links", func(s sim.Snapshot) bool { return s.OpenConnections() == 0 })
			login(connect(t, addr), wrong, "940")
			login(connect(t, addr), right, "940") // this station has never been let in
			login(s1, wrong, "940")
			login(s1, right, "941")

			clearFaults(t, ils)
			login(connect(t, addr), wrong, "940")
			if m := s1.borrow(reader1, item2, base(0)); !lent(m) {
				t.Errorf("S1 once the line is up again: %q", m.Raw)
			}
			wantCount(t, ils, item1, oneLoan)
			wantCount(t, ils, item2, oneLoan)
			g.noPatron()
		})
	}
}

// TestC077 leaves a connection standing, as a pulled cable does, and comes
// back on a new one while the ILS still works. (C-077;
// cminyard/ser2net#33)
func TestC077CableLost(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		t.Run(string(persona), func(t *testing.T) {
			t.Parallel()
			ils := startILS(t, people(persona))
			addr := freePort(t)
			g := startGate(t, setup{ils: ils.Addr(), stations: []string{listen(addr)}})
			answered := make(chan struct{})
			fault(t, ils, sim.Fault{Kind: sim.Late, Code: "11", Times: 1, Until: answered})
			old := connect(t, addr)
			old.login("kiosk1", password1)
			frame := restamped(old.CheckoutFrame(reader1, item1, base(0)), '1')
			old.send(append(frame, '\r'))
			waitILS(t, ils, "the loan", func(s sim.Snapshot) bool { return s.Loans(item1) == 1 })

			again := connect(t, addr)
			begun := time.Now()
			again.login("kiosk1", password1)
			if d := time.Since(begun); d > 5*time.Second {
				t.Errorf("the new connection was served after %v", d)
			}
			again.send(append(restamped(frame, '2'), '\r'))
			g.event("checkout_joined")
			close(answered)
			m := answer(again.read())
			if !lent(m) || m.Trailer.Seq != '2' || !m.Trailer.Valid {
				t.Errorf("the repeat: %q", m.Raw)
			}
			again.quiet() // no stray frame
			wantCount(t, ils, item1, oneLoan)
		})
	}
}

// TestC113 opens 2,000 connections that say nothing or half a frame.
// (C-113; evergreen-library-system/SIPServer LP#1042850). That a
// connection without a frame is closed after a minute is shown in
// serialbridge, on a clock that does not make us wait.
func TestC113ConnectionsThatSayNothing(t *testing.T) {
	t.Parallel()
	ils := startILS(t, people(sim.Naive))
	addr := freePort(t)
	p := newPTY(t)
	g := startGate(t, setup{ils: ils.Addr(), stations: []string{listen(addr), serial(p.Path)}})
	s1 := onLine(t, p)
	s1.quiet()
	files, kib := len(descriptors(t, g.pid())), memory(t, g.pid(), "VmRSS")

	const storm = 2000
	var conns []net.Conn
	for n := range storm {
		c, err := net.DialTimeout("tcp", addr, patience)
		if err != nil {
			t.Fatalf("connection %d: %v", n+1, err)
		}
		defer c.Close()
		if n%2 == 1 {
			if _, err := c.Write([]byte("11YN")); err != nil && n >= storm-32 {
				t.Errorf("connection %d: %v", n+1, err) // older ones may be closed by now
			}
		}
		conns = append(conns, c)
	}
	begun := time.Now()
	s2 := connectFrom(t, addr, "127.0.0.2")
	s2.login("kiosk1", password1)
	if m := s2.borrow(reader1, item1, base(0)); !lent(m) {
		t.Errorf("S2 in the storm: %q", m.Raw)
	}
	if m := s1.borrow(reader2, item2, sim.CheckoutOptions{PIN: pin2}); !lent(m) {
		t.Errorf("S1 in the storm: %q", m.Raw)
	}
	if d := time.Since(begun); d > 5*time.Second {
		t.Errorf("served after %v", d)
	}
	if more := len(descriptors(t, g.pid())) - files; more > 40 {
		t.Errorf("%d descriptors more in the storm", more) // 32 connections, S2, its link
	}
	if more := memory(t, g.pid(), "VmRSS") - kib; more > 64<<10 {
		t.Errorf("%d KiB more in the storm", more)
	}
	for _, c := range conns {
		c.Close()
	}
	s2.quiet()
	s2.conn.Close()
	waitILS(t, ils, "the end of S2's link", func(s sim.Snapshot) bool { return s.OpenConnections() == 1 })
	deadline := time.Now().Add(patience)
	for len(descriptors(t, g.pid())) > files {
		if time.Now().After(deadline) {
			t.Errorf("descriptors lost after the storm: %d, before %d", len(descriptors(t, g.pid())), files)
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	wantCount(t, ils, item1, oneLoan)
	wantCount(t, ils, item2, oneLoan)
}

// TestStuckKioskBlocksNobody: a kiosk that never reads fills its line.
func TestStuckKioskBlocksNobody(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"tcp", "serial"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			ils := startILS(t, people(sim.Naive))
			addr, other := freePort(t), freePort(t)
			s := setup{ils: ils.Addr(), stations: []string{listen(addr), listen(other)}}
			var stuck *testKiosk
			if way == "serial" {
				p := newPTY(t)
				s.stations = append(s.stations, serial(p.Path))
				stuck = onLine(t, p)
			}
			g := startGate(t, s)
			if way == "tcp" {
				stuck = connect(t, addr)
				if err := stuck.conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
					t.Fatal(err)
				}
			}
			// A 64 with a long list fills a line sooner than a 98.
			for n := range 400 {
				ils.Lend(itemNumber(n), reader2, time.Time{})
			}
			ctx, enough := context.WithCancel(t.Context())
			full := make(chan struct{})
			go func() { // waited for below
				defer close(full)
				for n := 1; ctx.Err() == nil; n++ {
					// No two alike: the gate would join them.
					_, err := fmt.Fprintf(stuck.line, "63001%s  Y       AOMAIN|AA%s|AC%d|AD%s|\r", sipTime(someDate(0)), reader2, n, pin2)
					if err != nil || ils.WaitFor(ctx, func(s sim.Snapshot) bool { return s.Answered("64") >= n }) != nil {
						return
					}
				}
			}()
			g.event("answer_not_written") // it takes ten seconds
			begun := time.Now()
			for n, a := range []string{addr, other} {
				k := connect(t, a)
				if m := k.borrow(reader1, itemNumber(1000+n), base(n)); !lent(m) {
					t.Errorf("another kiosk: %q", m.Raw)
				}
				wantCount(t, ils, itemNumber(1000+n), oneLoan)
			}
			if d := time.Since(begun); d > 5*time.Second {
				t.Errorf("others were served after %v", d)
			}
			enough()
			if stuck.conn != nil {
				stuck.conn.Close()
			}
			<-full
		})
	}
}
