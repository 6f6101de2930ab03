package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRunWithABadFile: each fault is printed at its place, and nothing starts.
func TestRunWithABadFile(t *testing.T) {
	t.Parallel()
	g := newGate(t, setup{ils: "127.0.0.1:1"})
	g.write("[ils]\naddress = \"127.0.0.1:6001\"\ntimout = \"10s\"\n[[station]]\nname = \"k\"\nlisten = \"127.0.0.1:6002\"\nbaud = \"fast\"\n")
	g.launch()
	if code := g.exit(5 * time.Second); code != exitUnwell {
		t.Errorf("exit code %d", code)
	}
	said := g.log.String()
	for _, want := range []string{g.file + ":3:1: unknown key \"timout\"", "did you mean \"timeout\"?", g.file + ":7:8: "} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "gate_started") {
		t.Error("it has started")
	}

	missing := program(t, "run", filepath.Join(t.TempDir(), "none.toml"))
	out, err := missing.CombinedOutput()
	if missing.ProcessState.ExitCode() != exitUnwell || !strings.Contains(string(out), "none.toml") {
		t.Errorf("a file that is not there: %v: %s", err, out)
	}
	usage := program(t, "run")
	if out, err := usage.CombinedOutput(); usage.ProcessState.ExitCode() != exitUsage {
		t.Errorf("no file at all: %v: %s", err, out)
	}
}

// TestC080 starts a second gate on the same store. (C-080;
// numtide/treefmt#408)
func TestC080SecondGateOnTheSameStore(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		t.Run(string(persona), func(t *testing.T) {
			t.Parallel()
			ils := startILS(t, people(persona))
			addr := freePort(t)
			first := startGate(t, setup{ils: ils.Addr(), stations: []string{listen(addr)}})
			k := connect(t, addr)
			k.quiet()
			second := newGate(t, setup{ils: ils.Addr(), stations: []string{listen(freePort(t))},
				gate: fmt.Sprintf("state_dir = %q", first.state())})
			begun := time.Now()
			second.launch()
			if code := second.exit(patience); code != exitUnwell {
				t.Errorf("exit code %d", code)
			}
			if d := time.Since(begun); d > 5*time.Second {
				t.Errorf("it ended after %v", d)
			}
			store := filepath.Join(first.state(), "gate.db")
			if said := second.log.String(); !strings.Contains(said, store) || !strings.Contains(said, "in use") {
				t.Errorf("it does not name %s as in use:\n%s", store, said)
			}
			// By hand, with the very same file.
			same := program(t, "run", first.file)
			if out, _ := same.CombinedOutput(); same.ProcessState.ExitCode() != exitUnwell || !strings.Contains(string(out), store) {
				t.Errorf("the same file again: %s", out)
			}
			if m := k.borrow(reader1, item1, base(0)); !lent(m) {
				t.Errorf("the first gate was disturbed: %q", m.Raw)
			}
			if m := k.borrow(reader1, item1, base(0)); !lent(m) {
				t.Errorf("the first gate was disturbed: %q", m.Raw)
			}
			wantCount(t, ils, item1, oneLoan)
		})
	}
}
