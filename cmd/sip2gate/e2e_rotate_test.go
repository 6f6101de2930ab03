package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sip2gate/serialbridge/sim"
)

// secretFiles are those of the secrets, the current one first.
func (g *gateProcess) secretFiles() []string {
	g.t.Helper()
	files, err := filepath.Glob(filepath.Join(g.state(), "secret*"))
	if err != nil {
		g.t.Fatal(err)
	}
	for _, f := range files {
		if fi, err := os.Stat(f); err != nil || fi.Mode().Perm() != 0o600 {
			g.t.Errorf("%s: %v, %v", filepath.Base(f), fi.Mode(), err)
		}
	}
	return files
}

// TestC126SecretRotated replaces the secret while one checkout is in doubt and
// another completed, and then asks for both again; with restarts in between or
// without. (C-126; design review)
func TestC126SecretRotated(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		for _, restart := range []string{"", "in order", "kill -9", "rotated while stopped"} {
			t.Run(fmt.Sprintf("%s/%s", persona, restart), func(t *testing.T) {
				t.Parallel()
				ils := startILS(t, people(persona))
				addr := freePort(t)
				// To what is in doubt ten minutes are no more than these few
				// seconds: no window ends it.
				g := startGate(t, setup{ils: ils.Addr(), link: hastyLink, stations: []string{listen(addr, hastyStation)}})
				k := connect(t, addr)
				completed := k.borrow(reader1, item2, base(10))
				if !lent(completed) {
					t.Fatalf("the first: %q", completed.Raw)
				}
				fault(t, ils, sim.Fault{Kind: sim.Lost, Code: "11", Times: 1})
				fault(t, ils, sim.Fault{Kind: sim.Drop, Code: "63"})
				fault(t, ils, sim.Fault{Kind: sim.Drop, Code: "17"})
				k = connect(t, addr)
				if m := k.borrow(reader1, item1, base(0)); !refused(m) {
					t.Fatalf("the one that nobody answers: %q", m.Raw)
				}
				b := g.awaitBooks(1)[0]
				if restart == "rotated while stopped" {
					g.stop()
				}
				before, err := os.ReadFile(filepath.Join(g.state(), "secret"))
				if err != nil {
					t.Fatal(err)
				}
				g.tells("secret", "rotate")
				after, err := os.ReadFile(filepath.Join(g.state(), "secret"))
				if err != nil || bytes.Equal(before, after) || len(g.secretFiles()) != 2 {
					t.Errorf("the secret is the same, or the one before is not kept: %v", err)
				}
				switch restart {
				case "in order":
					g.stop()
					g.start()
				case "kill -9":
					g.restart()
				case "rotated while stopped":
					g.start()
				}
				if now := g.books(); len(now) != 1 || now[0].ID != b.ID {
					t.Errorf("the list has changed: %+v", now)
				}
				g.noPatron()
				// Still nobody can say. Under the new secret it would be new work.
				k = connect(t, addr)
				if m := k.borrow(reader1, item1, base(30)); !refused(m) {
					t.Errorf("what is in doubt: %q", m.Raw)
				}
				clearFaults(t, ils)
				k = connect(t, addr)
				if m := k.borrow(reader1, item2, base(10)); !lent(m) || field(m, "AH") != field(completed, "AH") {
					t.Errorf("what was completed: %q\nwant %q", m.Raw, completed.Raw)
				}
				k = connect(t, addr)
				if m := k.borrow(reader1, item1, base(40)); !lent(m) {
					t.Errorf("what was in doubt: %q", m.Raw)
				}
				wantCount(t, ils, item1, oneLoan)
				wantCount(t, ils, item2, oneLoan)
				if files := g.secretFiles(); len(files) != 2 {
					t.Errorf("the old secret is still needed: %q", files)
				}
				if c := g.checks(); !c.OK || c.Records != 2 {
					t.Errorf("the store after it all: %+v", c)
				}
			})
		}
	}
}

// TestOldSecretIsErased: once nothing that was remembered under it is left, the
// secret before goes; what was remembered since can be read without it.
func TestOldSecretIsErased(t *testing.T) {
	t.Parallel()
	ils := startILS(t, people(sim.Naive))
	addr := freePort(t)
	g := startGate(t, setup{ils: ils.Addr(), stations: []string{listen(addr)}})
	k := connect(t, addr)
	k.lendsOnce(item1, base(0))
	g.tells("secret", "rotate")
	k.lendsOnce(item2, base(1))
	ctx, cancel := k.within()
	defer cancel()
	if m, err := k.Checkin(ctx, item1); err != nil || string(m.Fixed("ok")) != "1" {
		t.Fatalf("the checkin: %q, %v", m.Raw, err)
	}
	const sweeps = 90 * time.Second // more than three of them
	if _, ok := g.log.await(g.begun, sweeps, "secret_erased"); !ok {
		t.Fatal("the old secret stays")
	}
	if files := g.secretFiles(); len(files) != 1 {
		t.Errorf("files: %q", files)
	}
	frame, first := k.lendsTwice(ils, itemNumber(100), base(2))
	g.stop()
	g.start()
	if found := g.log.events(g.begun, "store_set_aside"); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	if c := g.checks(); !c.OK {
		t.Errorf("%+v", c)
	}
	if got := connect(t, addr).ask(frame); !lent(answer(got)) {
		t.Errorf("got %q, want %q", got, first)
	}
	wantCount(t, ils, itemNumber(100), oneLoan)
}

// checks examines the store.
func (g *gateProcess) checks() (c checked) {
	g.t.Helper()
	said := g.tell("store", "check", "--json")
	if err := json.Unmarshal([]byte(said.out), &c); err != nil {
		g.t.Fatalf("%+v: %v", said, err)
	}
	return c
}

// TestSequenceChangedWithinTheWindow restarts the gate with the other mode:
// what was claimed under the one is found under the other. (C-126)
func TestSequenceChangedWithinTheWindow(t *testing.T) {
	t.Parallel()
	for _, change := range [][2]string{{"ignore", "match"}, {"match", "ignore"}} {
		t.Run(change[0]+" to "+change[1], func(t *testing.T) {
			t.Parallel()
			ils := startILS(t, people(sim.Naive))
			addr, status := freePort(t), freePort(t)
			s := setup{ils: ils.Addr(), link: hastyLink, stations: []string{listen(addr, hastyStation)}}
			s.gate = fmt.Sprintf("sequence = %q", change[0])
			g := startGate(t, s)
			k := connect(t, addr)
			done := k.CheckoutFrame(reader1, item2, base(10))
			if m := answer(k.ask(done)); !lent(m) {
				t.Fatalf("the first: %q", m.Raw)
			}
			fault(t, ils, sim.Fault{Kind: sim.Lost, Code: "11", Times: 1})
			doubtful := k.CheckoutFrame(reader1, item1, base(0))
			k.send(append(doubtful, '\r'))
			waitILS(t, ils, "the loan", func(l sim.Snapshot) bool { return l.Loans(item1) == 1 })
			g.kill()
			s.gate = fmt.Sprintf("sequence = %q", change[1])
			g.write(s.toml(status))
			g.start()
			for _, frame := range [][]byte{done, doubtful} {
				m := answer(connect(t, addr).ask(frame))
				if !lent(m) {
					t.Errorf("%q\n got %q", frame, m.Raw)
				}
			}
			wantCount(t, ils, item1, oneLoan)
			wantCount(t, ils, item2, oneLoan)
		})
	}
}

// TestStoreWhileTheGateRuns: the store is examined and written anew under a
// gate that goes on lending.
func TestStoreWhileTheGateRuns(t *testing.T) {
	t.Parallel()
	ils := startILS(t, people(sim.Naive))
	addr := freePort(t)
	g := startGate(t, setup{ils: ils.Addr(), stations: []string{listen(addr)}})
	k := connect(t, addr)
	frame, first := k.lendsTwice(ils, item1, base(0))
	for n := range 40 {
		k.lendsOnce(itemNumber(200+n), base(n))
	}
	if c := g.checks(); !c.OK || c.Records != 41 {
		t.Errorf("checked: %+v", c)
	}
	var size compacted
	if err := json.Unmarshal([]byte(g.tells("store", "compact", "--json")), &size); err != nil || size.After == 0 || size.After > size.Before {
		t.Errorf("compacted: %+v, %v", size, err)
	}
	k.lendsTwice(ils, item2, base(1))
	var st storeStats
	if err := json.Unmarshal([]byte(g.tells("store", "stats", "--json")), &st); err != nil || !st.Running || !st.Durable || st.Records != 42 || st.Completed != 42 {
		t.Errorf("%+v, %v", st, err)
	}
	g.restart()
	same(t, connect(t, addr).ask(frame), first)
	wantCount(t, ils, item1, oneLoan)

	g.stop()
	if c := g.checks(); !c.OK || c.Records != 42 {
		t.Errorf("checked while stopped: %+v", c)
	}
	g.tells("store", "compact")
	if err := json.Unmarshal([]byte(g.tells("store", "stats", "--json")), &st); err != nil || st.Running || st.Records != 42 {
		t.Errorf("while stopped: %+v, %v", st, err)
	}
	store := filepath.Join(g.state(), "gate.db")
	data, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(store, data[:len(data)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if said := g.tell("store", "check"); said.code != exitUnwell || said.out != "" {
		t.Errorf("half a store is sound: %+v", said)
	}
	if left, err := filepath.Glob(store + ".check*"); err != nil || len(left) > 0 {
		t.Errorf("copies are left: %q, %v", left, err)
	}
	if now, err := os.ReadFile(store); err != nil || len(now) != len(data)/2 {
		t.Errorf("the check has changed the store: %d bytes, %v", len(now), err)
	}
}
