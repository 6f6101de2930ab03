package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sip2gate/serialbridge/pty"
	"sip2gate/serialbridge/sim"
)

func serial(path string, more ...string) string {
	return fmt.Sprintf("serial = %q\n%s", path, strings.Join(more, "\n"))
}

// plug plugs an adapter in, or skips the test.
func plug(t *testing.T, a *pty.Adapter) *testKiosk {
	t.Helper()
	p, err := a.Plug()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, os.ErrPermission) {
		t.Skipf("there are no pseudo-terminals: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return onLine(t, p)
}

func adapter(t *testing.T) *pty.Adapter {
	a := &pty.Adapter{Link: filepath.Join(devFolder(t), "usb-adapter")}
	t.Cleanup(func() { _ = a.Pull() })
	return a
}

// TestC068 kills the gate; the serial kiosk does not log in again, since it
// has seen nothing. (C-068; mcoia/evergreen_sip_proxy). What the
// status page says is not looked at here.
func TestC068SerialKioskDoesNotLogInAgain(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		for _, tt := range []struct {
			name   string
			kiosk  bool // it logs in itself
			ending func(g *gateProcess)
		}{
			{"its own login, kill -9", true, (*gateProcess).kill},
			{"its own login, SIGTERM", true, (*gateProcess).stop},
			{"account of the settings", false, (*gateProcess).kill},
		} {
			t.Run(string(persona)+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				options := people(persona)
				options.Accounts = map[string]string{"kiosk1": password1}
				ils := startILS(t, options)
				p := newPTY(t)
				s := setup{ils: ils.Addr(), stations: []string{serial(p.Path)}}
				if !tt.kiosk {
					file := filepath.Join(t.TempDir(), "password")
					if err := os.WriteFile(file, []byte(password1+"\n"), 0o600); err != nil {
						t.Fatal(err)
					}
					s.link = fmt.Sprintf("login_user = \"kiosk1\"\nlogin_password_file = %q\nlocation = \"MAIN\"", file)
				}
				g := startGate(t, s)
				k := onLine(t, p)
				if tt.kiosk {
					k.login("kiosk1", password1)
					// What is kept is written behind; a claim's commit takes
					// it along.
					if m := k.borrow(reader2, item2, sim.CheckoutOptions{PIN: pin2}); !lent(m) {
						t.Fatalf("before the end: %q", m.Raw)
					}
				}
				tt.ending(g)
				g.noPatron()
				before := ils.Connections()
				g.start()
				k.quiet() // a 99, and its 98
				if m := k.borrow(reader1, item1, base(0)); !lent(m) {
					t.Errorf("the checkout: %q", m.Raw)
				}
				wantCount(t, ils, item1, oneLoan)
				var codes []string
				for _, e := range ils.Journal() {
					if e.Event == sim.EventFrame && e.Conn == before+1 {
						codes = append(codes, e.Code)
					}
				}
				if len(codes) == 0 || codes[0] != "93" || ils.Connections() != before+1 {
					t.Errorf("the new connection got %q, %d connections", codes, ils.Connections()-before)
				}
			})
		}
	}
}

// TestC070 pulls the adapter in the middle of a frame; it comes back under
// another name behind the same link. (C-070;
// philippoo66/optolink-splitter#236). What the status page says is not looked
// at here.
func TestC070AdapterComesBackUnderAnotherName(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		t.Run(string(persona), func(t *testing.T) {
			t.Parallel()
			ils := startILS(t, people(persona))
			a := adapter(t)
			k := plug(t, a)
			g := startGate(t, setup{ils: ils.Addr(), stations: []string{serial(a.Link)}})
			k.quiet()
			pid := g.pid()
			for range 3 {
				frame := k.CheckoutFrame(reader1, item1, base(0))
				k.send(frame[:62])
				mark := g.log.len()
				if err := a.Pull(); err != nil {
					t.Fatal(err)
				}
				pulled := time.Now()
				g.eventAfter(mark, "station_down", "station", "kiosk-1")
				if d := time.Since(pulled); d > 2*time.Second {
					t.Errorf("noticed after %v", d)
				}
				if open := terminals(t, pid); len(open) > 0 {
					t.Errorf("still open: %q", open)
				}
				k = plug(t, a)
				back := time.Now()
				g.eventAfter(mark, "station_up", "station", "kiosk-1")
				if d := time.Since(back); d > 5*time.Second {
					t.Errorf("opened after %v", d)
				}
			}
			if m := k.borrow(reader1, item1, base(0)); !lent(m) {
				t.Errorf("the whole frame: %q", m.Raw)
			}
			k.quiet()
			wantCount(t, ils, item1, oneLoan)
			if g.pid() != pid {
				t.Error("it was started again")
			}
		})
	}
}

// TestC072 sends a frame in the pieces in which an FTDI adapter hands it over.
// (C-072; avrdudes/avrdude#1245)
func TestC072FramesInPieces(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		t.Run(string(persona), func(t *testing.T) {
			t.Parallel()
			ils := startILS(t, people(persona))
			p := newPTY(t)
			startGate(t, setup{ils: ils.Addr(), stations: []string{serial(p.Path)}})
			k := onLine(t, p)
			k.quiet()
			frame := append(k.CheckoutFrame(reader1, item1, base(0)), '\r')
			pieces := func(size int, pause time.Duration) []byte {
				for at := 0; at < len(frame); at += size {
					if at > 0 {
						<-time.After(pause)
					}
					k.send(frame[at:min(at+size, len(frame))])
				}
				return k.read()
			}
			first := pieces(15, 16*time.Millisecond) // 16 ms at 9600 baud
			if !lent(answer(first)) {
				t.Errorf("in pieces of 16 ms: %q", first)
			}
			same(t, pieces(1, time.Millisecond), first)
			same(t, pieces(62, 400*time.Millisecond), first)
			same(t, pieces(62, 400*time.Millisecond), first)
			k.quiet()
			wantCount(t, ils, item1, oneLoan)
		})
	}
}

// TestC073 pulls the adapter for a while, and then twenty times in the middle
// of a frame. (C-073; tarm/serial#100, bugst/go-serial#55). Three
// seconds stand for the ten minutes; what the status page says is not looked
// at here.
func TestC073Unplugged(t *testing.T) {
	t.Parallel()
	ils := startILS(t, people(sim.Naive))
	a := adapter(t)
	k := plug(t, a)
	g := startGate(t, setup{ils: ils.Addr(), stations: []string{serial(a.Link)}})
	pid := g.pid()
	k.quiet()

	mark := g.log.len()
	if err := a.Pull(); err != nil {
		t.Fatal(err)
	}
	g.eventAfter(mark, "station_down", "station", "kiosk-1")
	before := processorTime(t, pid)
	const gone = 3 * time.Second
	<-time.After(gone)
	if used := processorTime(t, pid) - before; used > gone/20 {
		t.Errorf("%v of processor time in %v", used, gone)
	}
	if down := g.log.events(mark, "station_down"); len(down) != 1 {
		t.Errorf("one event expected: %v", down)
	}
	k = plug(t, a)
	g.eventAfter(mark, "station_up", "station", "kiosk-1")

	for n := range 20 {
		frame := k.CheckoutFrame(reader1, itemNumber(n), base(n))
		k.send(frame[:30])
		mark := g.log.len()
		k = plug(t, a) // pulls first
		g.eventAfter(mark, "station_up", "station", "kiosk-1")
		if m := answer(k.ask(frame)); !lent(m) || field(m, "AB") != itemNumber(n) {
			t.Errorf("item %d: %q", n, m.Raw)
		}
		wantCount(t, ils, itemNumber(n), oneLoan)
	}
	if g.pid() != pid || ils.Received("11") != 20 {
		t.Errorf("%d checkouts at the ILS", ils.Received("11"))
	}
}

// TestC074 gives one device to two stations, and to two programs.
// (C-074; Klipper3d/klipper#1210)
func TestC074TwoStationsOnOneDevice(t *testing.T) {
	t.Parallel()
	t.Run("known at the start", func(t *testing.T) {
		t.Parallel()
		p := newPTY(t)
		link := filepath.Join(devFolder(t), "by-path")
		if err := os.Symlink(p.Path, link); err != nil {
			t.Fatal(err)
		}
		g := newGate(t, setup{ils: "127.0.0.1:1", stations: []string{serial(p.Path), serial(link)}})
		g.launch()
		if code := g.exit(patience); code != exitUnwell {
			t.Errorf("exit code %d", code)
		}
		said := g.log.String()
		lines := settingsLines(t, g.file, "serial =")
		want := fmt.Sprintf("%s:%d:", g.file, lines[1])
		first := fmt.Sprintf("see %s:%d:", g.file, lines[0])
		if !strings.Contains(said, want) || !strings.Contains(said, "is on the same device as") || !strings.Contains(said, first) {
			t.Errorf("%s and %s are not named:\n%s", want, first, said)
		}
	})
	t.Run("found when it is opened", func(t *testing.T) {
		t.Parallel()
		ils := startILS(t, people(sim.Naive))
		p := newPTY(t)
		link := filepath.Join(devFolder(t), "by-path")
		g := newGate(t, setup{ils: ils.Addr(), stations: []string{serial(p.Path), serial(link)}})
		g.launch()
		g.up(1)
		k := onLine(t, p)
		mark := g.log.len()
		if err := os.Symlink(p.Path, link); err != nil {
			t.Fatal(err)
		}
		e := g.eventAfter(mark, "station_down", "station", "kiosk-2")
		if !strings.Contains(e.text("error"), "in use") {
			t.Errorf("the reason is not named: %v", e)
		}
		if m := k.borrow(reader1, item1, base(0)); !lent(m) {
			t.Errorf("the first station: %q", m.Raw)
		}
		wantCount(t, ils, item1, oneLoan)
		if up := g.log.events(g.begun, "station_up", "station", "kiosk-2"); len(up) > 0 {
			t.Error("the second station works too")
		}
	})
	t.Run("two gates", func(t *testing.T) {
		t.Parallel()
		ils := startILS(t, people(sim.Naive))
		p := newPTY(t)
		first := startGate(t, setup{ils: ils.Addr(), stations: []string{serial(p.Path)}})
		second := newGate(t, setup{ils: ils.Addr(), stations: []string{serial(p.Path)}})
		second.launch()
		e := second.event("station_down", "station", "kiosk-1")
		if !strings.Contains(e.text("error"), "in use") {
			t.Errorf("the reason is not named: %v", e)
		}
		k := onLine(t, p)
		if m := k.borrow(reader1, item1, base(0)); !lent(m) {
			t.Errorf("the first gate: %q", m.Raw)
		}
		first.event("loan_committed", "item", item1)
		wantCount(t, ils, item1, oneLoan)
		// The line is free when its holder is killed, and only then.
		if up := second.log.events(0, "station_up"); len(up) > 0 {
			t.Error("two gates share a line")
		}
		first.kill()
		second.up(1)
		if m := k.borrow(reader1, item2, base(0)); !lent(m) {
			t.Errorf("the second gate: %q", m.Raw)
		}
	})
}

// settingsLines are the numbers of the lines that begin so.
func settingsLines(t *testing.T, file, begin string) []int {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for i, line := range strings.Split(string(data), "\n") {
		if strings.HasPrefix(line, begin) {
			found = append(found, i+1)
		}
	}
	return found
}

// devFolder is a folder for names of devices: where the settings want them.
func devFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "sip2gate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
