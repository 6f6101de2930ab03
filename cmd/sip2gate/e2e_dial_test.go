package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sip2gate/serialbridge/sim"
)

// terminalServer finds a program, or skips the test.
func terminalServer(t *testing.T, name string) string {
	t.Helper()
	for _, path := range []string{name, "/usr/sbin/" + name} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	t.Skipf("%s is not installed", name)
	return ""
}

// begin starts a program that ends with the test at the latest.
func begin(t *testing.T, cmd *exec.Cmd) (kill func()) {
	t.Helper()
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.WaitDelay = time.Second // a child of its own may hold these open
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	return kill
}

// TestDialStation reaches a kiosk through a real terminal server, which
// reboots in between.
func TestDialStation(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		command func(t *testing.T, port, device string) *exec.Cmd
	}{
		{"ser2net", func(t *testing.T, port, device string) *exec.Cmd {
			path := terminalServer(t, "ser2net")
			config := filepath.Join(t.TempDir(), "ser2net.yaml")
			text := fmt.Sprintf("%%YAML 1.1\n---\nconnection: &kiosk\n  accepter: tcp,127.0.0.1,%s\n  connector: serialdev,%s,9600n81,local\n", port, device)
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return exec.Command(path, "-n", "-u", "-c", config)
		}},
		{"socat", func(t *testing.T, port, device string) *exec.Cmd {
			return exec.Command(terminalServer(t, "socat"),
				"TCP-LISTEN:"+port+",bind=127.0.0.1,reuseaddr", device+",raw,echo=0")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, persona := range everyPersona {
				t.Run(string(persona), func(t *testing.T) {
					t.Parallel()
					dialStation(t, persona, tt.command)
				})
			}
		})
	}
}

func dialStation(t *testing.T, persona sim.Persona, command func(t *testing.T, port, device string) *exec.Cmd) {
	p := newPTY(t)
	// A wire does not hang up when the terminal server dies; a
	// pseudo-terminal does, unless somebody keeps it open.
	wire, err := os.OpenFile(p.Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer wire.Close()
	ils := startILS(t, people(persona))
	addr := freePort(t)
	_, port, _ := net.SplitHostPort(addr)
	kill := begin(t, command(t, port, p.Path))
	g := startGate(t, setup{ils: ils.Addr(), stations: []string{fmt.Sprintf("dial = %q", addr)}})
	k := onLine(t, p)
	frame, first := k.lendsTwice(ils, item1, base(0))

	mark := g.log.len()
	kill()
	g.eventAfter(mark, "station_down", "station", "kiosk-1")
	begin(t, command(t, port, p.Path))
	g.eventAfter(mark, "station_up", "station", "kiosk-1")
	same(t, k.ask(frame), first)
	k.lendsTwice(ils, item2, base(1))
	wantCount(t, ils, item1, oneLoan)
}
