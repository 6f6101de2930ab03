package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"sip2gate/serialbridge/sim"
)

// told is what a command of staff has answered.
type told struct {
	code       int
	out, words string
}

// tell runs a command of staff against the gate, as a process of its own. What
// it prints must show no patron.
func (g *gateProcess) tell(args ...string) told {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	defer cancel()
	built := program(g.t, append(args, "--file", g.file)...)
	cmd := exec.CommandContext(ctx, built.Path, built.Args[1:]...)
	cmd.Env = built.Env
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		g.t.Fatal(err)
	}
	said := told{cmd.ProcessState.ExitCode(), out.String(), words.String()}
	if found := leaks(append(out.Bytes(), words.Bytes()...)); found != nil {
		g.t.Errorf("%q shows %q:\n%s%s", args, found, said.out, said.words)
	}
	return said
}

// tells is tell where it must succeed.
func (g *gateProcess) tells(args ...string) string {
	g.t.Helper()
	said := g.tell(args...)
	if said.code != exitOK || said.words != "" {
		g.t.Fatalf("%q: code %d\n%s%s", args, said.code, said.out, said.words)
	}
	return said.out
}

// refuses is tell where it must not succeed, and must say why.
func (g *gateProcess) refuses(why string, args ...string) string {
	g.t.Helper()
	said := g.tell(args...)
	if said.code != exitUnwell || said.out != "" || !strings.Contains(said.words, why) {
		g.t.Errorf("%q: code %d, want %q\n%s%s", args, said.code, why, said.out, said.words)
	}
	return said.words
}

// books is the list for staff.
func (g *gateProcess) books() []book {
	g.t.Helper()
	var l bookList
	if err := json.Unmarshal([]byte(g.tells("store", "list", "--json")), &l); err != nil {
		g.t.Fatal(err)
	}
	return l.Books
}

// awaitBooks asks for the list until it has n entries.
func (g *gateProcess) awaitBooks(n int) []book {
	g.t.Helper()
	deadline := time.After(patience)
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		l := g.books()
		if len(l) == n {
			return l
		}
		select {
		case <-again.C:
		case <-deadline:
			g.t.Fatalf("the list has %d entries, want %d: %+v", len(l), n, l)
		}
	}
}

// unreadable is a gate before an ILS that cannot be read and has not answered
// a checkout of item1, which it carried out or not: staff must decide.
func unreadable(t *testing.T, p sim.Persona, lends bool, link string) (*sim.ILS, *gateProcess, string) {
	t.Helper()
	options := people(p)
	options.NoReads = true
	ils := startILS(t, options)
	addr := freePort(t)
	g := startGate(t, setup{ils: ils.Addr(), link: link, stations: []string{listen(addr, hastyStation)}})
	kind := sim.Drop
	if lends {
		kind = sim.Lost
	}
	fault(t, ils, sim.Fault{Kind: kind, Code: "11", Times: 1})
	k := connect(t, addr)
	k.quiet() // BX has been seen
	if m := k.borrow(reader1, item1, base(0)); !refused(m) {
		t.Fatalf("the checkout that nobody answers: %q", m.Raw)
	}
	return ils, g, addr
}

// TestStoreListShowsADoubt is what a librarian reads about a book of which the
// library system never said whether it was lent.
func TestStoreListShowsADoubt(t *testing.T) {
	t.Parallel()
	_, g, _ := unreadable(t, sim.Naive, true, "timeout = \"1s\"\nsettle = \"40s\"")
	b := g.awaitBooks(1)[0]
	if b.Item != item1 || b.Institution != "MAIN" || b.Station != "kiosk-1" || b.Why != whyUnconfirmed || b.WaitSeconds < 20 || b.WaitSeconds > 40 {
		t.Errorf("the book: %+v", b)
	}
	if at, err := time.Parse(time.RFC3339, b.Since); b.Since != "unknown" && (err != nil || time.Since(at) > time.Minute) {
		t.Errorf("since: %q", b.Since)
	}
	list := g.tells("store", "list")
	for _, want := range []string{
		"Please check this book.\n", b.ID + "  item " + item1 + ", institution MAIN, station kiosk-1, ",
		"sip2gate store resolve --lent " + b.ID + "\n", "sip2gate store resolve --not-lent " + b.ID + "   (not before ",
	} {
		if !strings.Contains(list, want) {
			t.Errorf("the list has no %q:\n%s", want, list)
		}
	}
	for _, word := range []string{"doubt", "token", "dedup", "claim", "key"} {
		if strings.Contains(strings.ToLower(list), word) {
			t.Errorf("no librarian knows what %q is:\n%s", word, list)
		}
	}
	for _, args := range [][]string{{"store", "resolve", "--not-lent", b.ID}, {"store", "forget", item1}} {
		words := g.refuses("it is too early to say so: for another", args...)
		if !regexp.MustCompile(`another [1-4]?[0-9] seconds`).MatchString(words) {
			t.Errorf("%q: the seconds left: %s", args, words)
		}
	}
	g.refuses(`there is no book to check by the number "ffffff"`, "store", "resolve", "--lent", "ffffff")
	if said := g.tell("store", "resolve", b.ID); said.code != exitUsage {
		t.Errorf("neither --lent nor --not-lent: %+v", said)
	}
	if len(g.books()) != 1 {
		t.Error("a refusal took the book off the list")
	}

	g.stop()
	stopped := g.tells("store", "list")
	if !strings.Contains(stopped, b.ID) || !strings.Contains(stopped, "The gate is stopped. Start it") {
		t.Errorf("while the gate is stopped:\n%s", stopped)
	}
	g.refuses("the gate is not running", "store", "resolve", "--lent", b.ID)
}

// TestNotLentLetsTheNextOneThrough: the library system has not lent, staff say
// so, and the patron borrows the book; once.
func TestNotLentLetsTheNextOneThrough(t *testing.T) {
	t.Parallel()
	for _, way := range [][]string{{"store", "resolve", "--not-lent"}, {"store", "forget"}} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/killed=%v", way[len(way)-1], killed), func(t *testing.T) {
				t.Parallel()
				ils, g, addr := unreadable(t, sim.Naive, false, hastyLink)
				if killed {
					g.restart()
				}
				b := g.awaitBooks(1)[0]
				if words := g.tell(append(way, b.ID)...); words.code != exitOK {
					// Right after the restart it is too early.
					if !killed || !strings.Contains(words.words, "too early") {
						t.Fatalf("%+v", words)
					}
					g.awaitWait(b.ID)
					g.tells(append(way, b.ID)...)
				}
				k := connect(t, addr)
				frame := k.CheckoutFrame(reader1, item1, base(30))
				first := k.ask(frame)
				if !lent(answer(first)) {
					t.Errorf("after staff have decided: %q", first)
				}
				same(t, k.ask(frame), first)
				wantCount(t, ils, item1, count{checkouts: 2, loans: 1, open: 1}) // the one dropped, and this one
				g.awaitBooks(0)
			})
		}
	}
}

// awaitWait waits until a book can be said to be not lent.
func (g *gateProcess) awaitWait(id string) {
	g.t.Helper()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		for _, b := range g.awaitBooks(1) {
			if b.ID == id && b.WaitSeconds == 0 {
				return
			}
		}
		<-again.C
	}
}

// TestLentNeverSendsAgain: the library system has lent, staff say so; from then
// on no checkout of it is sent. Where it cannot be read, the patron is sent to
// staff: nobody has shown an answer. A checkin ends it.
func TestLentNeverSendsAgain(t *testing.T) {
	t.Parallel()
	ils, g, addr := unreadable(t, sim.Naive, true, hastyLink)
	b := g.awaitBooks(1)[0]
	if said := g.tells("store", "resolve", "--lent", item1); !strings.Contains(said, "sip2gate store forget "+b.ID) {
		t.Errorf("how to take it back: %s", said)
	}
	g.event("checkout_settled", "item", item1, "outcome", "lent", "by", "staff")
	for n := range 2 {
		k := connect(t, addr)
		frame := k.CheckoutFrame(reader1, item1, base(30+n))
		for range 2 {
			if m := answer(k.ask(frame)); !refused(m) {
				t.Errorf("an answer that nobody gave: %q", m.Raw)
			}
		}
		g.restart()
	}
	wantCount(t, ils, item1, oneLoan)
	if l := g.books(); len(l) != 0 {
		t.Errorf("it is still on the list: %+v", l)
	}
	k := connect(t, addr)
	ctx, cancel := k.within()
	defer cancel()
	if m, err := k.Checkin(ctx, item1); err != nil || string(m.Fixed("ok")) != "1" {
		t.Fatalf("the checkin: %q, %v", m.Raw, err)
	}
	m := k.borrow(reader1, item1, base(50))
	if refused(m) { // a change that left before the restart could be at work
		m = k.borrow(reader1, item1, base(55))
	}
	if !lent(m) {
		t.Errorf("after the book came back: %q", m.Raw)
	}
}

// TestLentIsShownByARead: staff say that it was lent, and the library system
// answers reads again: the next repeat gets ok=1 with its due date.
func TestLentIsShownByARead(t *testing.T) {
	t.Parallel()
	ils := startILS(t, people(sim.Koha))
	addr := freePort(t)
	g := startGate(t, setup{ils: ils.Addr(), link: hastyLink, stations: []string{listen(addr, hastyStation)}})
	for code, kind := range map[string]sim.Kind{"11": sim.Lost, "63": sim.Drop, "17": sim.Drop} {
		fault(t, ils, sim.Fault{Kind: kind, Code: code})
	}
	k := connect(t, addr)
	if m := k.borrow(reader1, item1, base(0)); !refused(m) {
		t.Fatalf("the checkout that nobody answers: %q", m.Raw)
	}
	b := g.awaitBooks(1)[0]
	g.tells("store", "resolve", "--lent", b.ID)
	clearFaults(t, ils)
	again := connect(t, addr)
	frame := again.CheckoutFrame(reader1, item1, base(30))
	first := again.ask(frame)
	_, due, _ := ils.ActiveLoan(item1)
	if m := answer(first); !lent(m) || field(m, "AH") != sipTime(due) {
		t.Errorf("after a read: %q, due %v", first, due)
	}
	same(t, again.ask(frame), first)
	wantCount(t, ils, item1, oneLoan)
}

// TestLentThoughTheKioskSaidNo: the answer comes when the patron has been sent
// away. Staff see that he has the book and tick it off.
func TestLentThoughTheKioskSaidNo(t *testing.T) {
	t.Parallel()
	ils := startILS(t, people(sim.Naive))
	addr := freePort(t)
	g := startGate(t, setup{ils: ils.Addr(), link: "timeout = \"20s\"", stations: []string{listen(addr, hastyStation)}})
	answered := make(chan struct{})
	fault(t, ils, sim.Fault{Kind: sim.Late, Code: "11", Until: answered})
	k := connect(t, addr)
	if m := k.borrow(reader1, item1, base(0)); !refused(m) {
		t.Fatalf("before the answer: %q", m.Raw)
	}
	close(answered)
	g.event("loan_committed", "item", item1)
	b := g.awaitBooks(1)[0]
	if b.Why != whyUnheard || b.Item != item1 {
		t.Errorf("the book: %+v", b)
	}
	if list := g.tells("store", "list"); !strings.Contains(list, "See that the patron has the book.") {
		t.Errorf("the list:\n%s", list)
	}
	g.refuses("there is nothing to decide", "store", "resolve", "--not-lent", b.ID)
	g.tells("store", "forget", b.ID)
	g.awaitBooks(0)
	if m := connect(t, addr).borrow(reader1, item1, base(30)); !lent(m) {
		t.Errorf("ticked off is not forgotten: %q", m.Raw)
	}
	wantCount(t, ils, item1, oneLoan)
}
