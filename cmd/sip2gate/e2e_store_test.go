package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sip2gate/serialbridge/sim"
)

// storeDamages are what a power cut may leave of a store. They return what was
// there before.
var storeDamages = []struct {
	name   string
	damage func(data []byte) []byte
}{
	{"random from 8192", func(data []byte) []byte {
		r := rand.New(rand.NewPCG(1, 2))
		for i := 8192; i < len(data); i++ {
			data[i] = byte(r.Uint32())
		}
		return data
	}},
	{"cut to half", func(data []byte) []byte { return data[:len(data)/2] }},
	{"both metas zero", func(data []byte) []byte {
		const pages = 2 * 1024 // of the store's page size
		return append(make([]byte, pages), data[pages:]...)
	}},
	{"empty", func([]byte) []byte { return nil }},
}

// TestC079 damages the store between two runs. (C-079;
// etcd-io/bbolt#325, #446, #537). Of the surfaces only the log is looked at.
func TestC079DamagedStore(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		for _, tt := range storeDamages {
			t.Run(string(persona)+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				ils := startILS(t, people(persona))
				addr := freePort(t)
				g := startGate(t, setup{ils: ils.Addr(), link: hastyLink, stations: []string{listen(addr)}})
				k := connect(t, addr)
				first := k.CheckoutFrame(reader1, item1, base(0))
				if m := answer(k.ask(first)); !lent(m) {
					t.Fatalf("before the damage: %q", m.Raw)
				}
				for n := range 40 { // or there would be nothing to damage
					k.lendsOnce(itemNumber(n), base(n))
				}
				g.stop()
				store := filepath.Join(g.state(), "gate.db")
				data, err := os.ReadFile(store)
				if err != nil {
					t.Fatal(err)
				}
				damaged := tt.damage(data)
				if err := os.WriteFile(store, damaged, 0o600); err != nil {
					t.Fatal(err)
				}

				begun := time.Now()
				mark := g.log.len()
				g.supervise()
				if d := time.Since(begun); d > 10*time.Second {
					t.Errorf("ready after %v", d)
				}
				// A run that dies of a damaged page may do so when it has just set
				// the file aside and has not yet said so: the next one finds
				// that the file has gone, and says that.
				if len(g.log.events(mark, "store_set_aside"))+len(g.log.events(mark, "store_forgot")) != 1 {
					t.Error("the loss is not told, or told twice")
				}
				aside, err := filepath.Glob(store + ".*" + time.Now().UTC().Format("20060102") + "*")
				if err != nil || len(aside) != 1 {
					t.Fatalf("set aside under a dated name: %q, %v", aside, err)
				}
				if left, err := os.ReadFile(aside[0]); err != nil || string(left) != string(damaged) {
					t.Errorf("what was set aside is not there as it was: %v", err)
				}
				other := connect(t, addr)
				other.lendsTwice(ils, item2, base(1))
				again := connect(t, addr)
				m := answer(again.ask(restamped(first, '7')))
				if refused(m) { // until a negative read would count: ask staff
					m = again.borrow(reader1, item1, base(30))
				}
				if !lent(m) {
					t.Errorf("the repeat: %q", m.Raw)
				}
				wantCount(t, ils, item1, oneLoan)
			})
		}
	}
}

// TestC082 fills the disk under a running gate. (C-082;
// syslog-ng/syslog-ng#716). Of the surfaces only the log is looked at.
func TestC082DiskFull(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		t.Run(string(persona), func(t *testing.T) {
			t.Parallel()
			disk := smallDisk(t, 4<<20)
			ils := startILS(t, people(persona))
			addr := freePort(t)
			g := startGate(t, setup{ils: ils.Addr(), gate: fmt.Sprintf("state_dir = %q", filepath.Join(disk, "state")),
				stations: []string{listen(addr)}})
			pid := g.pid()
			k := connect(t, addr)
			k.login("kiosk1", password1)
			ballast := filepath.Join(disk, "ballast")
			fill(t, ballast)
			k.quiet()
			for n := range 60 { // the store has room of its own for some
				k.lendsTwice(ils, itemNumber(n), base(n%60))
			}
			g.event("store_degraded")
			k.quiet()
			k.lendsTwice(ils, item1, base(0))

			mark := g.log.len()
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			g.eventAfter(mark, "store_durable")
			if g.pid() != pid || len(g.log.events(0, "gate_started")) != 1 {
				t.Error("it was started again")
			}
			frame := k.CheckoutFrame(reader1, item2, base(1))
			if m := answer(k.ask(frame)); !lent(m) {
				t.Errorf("after the disk has room again: %q", m.Raw)
			}
			<-time.After(2 * time.Second)
			g.restart()
			again := connect(t, addr)
			again.login("kiosk1", password1)
			if m := again.borrow(reader1, item2, base(31)); !lent(m) {
				t.Errorf("the repeat after kill -9: %q", m.Raw)
			}
			g.event("duplicate_checkout_suppressed", "item", item2)
			wantCount(t, ils, item2, oneLoan)
			wantCount(t, ils, item1, oneLoan)
		})
	}
}

// supervise starts the gate as systemd does: again if it dies at once. bbolt
// faults on a damaged page, in a goroutine of its own; it may do so once, and
// the next start must find out before it opens the store.
func (g *gateProcess) supervise() {
	g.t.Helper()
	for range 2 {
		g.launch()
		started := make(chan bool, 1)
		go func(begun int) { // ends with the event, or with patience
			_, ok := g.log.await(begun, patience, "station_up")
			started <- ok
		}(g.begun)
		select {
		case ok := <-started:
			if !ok {
				g.t.Fatalf("it neither starts nor ends:\n%s", g.log)
			}
			return
		case <-g.ended:
			g.cmd, g.crashed = nil, true
		}
	}
	g.t.Fatalf("it dies of a damaged store again and again:\n%s", g.log)
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{64 << 10, 512, 1} {
		block := make([]byte, size)
		for {
			if _, err := f.Write(block); err != nil {
				break
			}
		}
	}
}

// TestUnpluggedBlocksNobody: stations whose line is missing, or whose terminal
// server is off, stand beside one that works, from the start and later.
func TestUnpluggedBlocksNobody(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		t.Run(string(persona), func(t *testing.T) {
			t.Parallel()
			ils := startILS(t, people(persona))
			a := adapter(t)
			addr := freePort(t)
			g := newGate(t, setup{ils: ils.Addr(), stations: []string{
				serial("/dev/serial/by-id/never-there"), serial(a.Link),
				fmt.Sprintf("dial = %q", freePort(t)), listen(addr),
			}})
			g.launch()
			g.up(4)
			for n := range 3 {
				g.event("station_down", "station", fmt.Sprintf("kiosk-%d", n+1))
			}
			k := connect(t, addr)
			k.lendsTwice(ils, item1, base(0))
			mark := g.log.len()
			line := plug(t, a)
			g.eventAfter(mark, "station_up", "station", "kiosk-2")
			line.lendsTwice(ils, item2, base(1))
			mark = g.log.len()
			if err := a.Pull(); err != nil {
				t.Fatal(err)
			}
			g.eventAfter(mark, "station_down", "station", "kiosk-2")
			begun := time.Now()
			k.lendsTwice(ils, itemNumber(1), base(2))
			if d := time.Since(begun); d > 2*time.Second {
				t.Errorf("served after %v", d)
			}
		})
	}
}

// TestLoginOfTheSettings: kiosks that don't log in, before an ILS that hangs up
// on whoever does not.
func TestLoginOfTheSettings(t *testing.T) {
	t.Parallel()
	options := people(sim.Koha)
	options.Accounts = map[string]string{"branch": password1}
	for _, tt := range []struct {
		name, password string
		works          bool
	}{{"right", password1, true}, {"wrong", password2, false}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ils := startILS(t, options)
			addr := freePort(t)
			file := filepath.Join(t.TempDir(), "password")
			if err := os.WriteFile(file, []byte(tt.password+"\r\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			g := startGate(t, setup{ils: ils.Addr(), stations: []string{listen(addr)},
				link: fmt.Sprintf("login_user = \"branch\"\nlogin_password_file = %q\nlocation = \"Main desk\"", file)})
			k := connect(t, addr)
			m := k.borrow(reader1, item1, base(0))
			if lent(m) != tt.works {
				t.Errorf("checkout: %q", m.Raw)
			}
			frames := ils.Frames()
			if want := "9300CNbranch|CO" + tt.password + "|CPMain desk|"; !strings.HasPrefix(string(frames[0]), want) {
				t.Errorf("the first frame is %q", frames[0])
			}
			if !tt.works {
				e := g.event("ils_down")
				if !strings.Contains(e.text("error"), "refused the login") {
					t.Errorf("the reason is not named: %v", e)
				}
				wantCount(t, ils, item1, count{})
				return
			}
			again := connect(t, addr) // each connection has a link, and each link logs in
			again.lendsTwice(ils, item2, base(1))
			if n := ils.Received("93"); n != 2 {
				t.Errorf("%d logins", n)
			}
			wantCount(t, ils, item1, oneLoan)
		})
	}
}
