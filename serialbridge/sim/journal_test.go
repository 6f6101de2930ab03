package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"sip2gate/serialbridge/sim"
)

func TestJournalFileNamesNoPatron(t *testing.T) {
	var file bytes.Buffer
	opts := known(sim.Naive)
	opts.Journal = &file
	opts.Patrons = map[string]sim.Patron{patron: {Name: "Reader One", PIN: "4711"}}
	ils := start(t, opts)
	k := kiosk(t, ils.Addr())
	for _, frame := range []string{login, stat, f1, f1, f1BIY, pi, ii, checkn, fee, end, "21234000000011\r", "AA21234000000011|\r"} {
		if err := k.Send([]byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	// The last line is no frame, so it has no code.
	if err := ils.WaitFor(within(t), func(s sim.Snapshot) bool { return s.Received("") == 1 }); err != nil {
		t.Fatal(err)
	}
	ils.Lend(item, patron, time.Time{})
	if !ils.DeskCheckin(item) {
		t.Error("the desk found no loan")
	}
	if err := ils.Fault(sim.Fault{Kind: sim.Drop, Code: "23"}); err != nil {
		t.Fatal(err)
	}
	if err := k.Send([]byte("2300120261130    101500AOMAIN|AA" + patron + "|AC|AD4711|")); err != nil {
		t.Fatal(err)
	}
	if err := ils.WaitFor(within(t), func(s sim.Snapshot) bool { return s.Received("23") == 1 }); err != nil {
		t.Fatal(err)
	}
	if err := ils.Close(); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{patron, "4711", "Reader One", "The Long Rain", "s3cret"} {
		if strings.Contains(file.String(), secret) {
			t.Errorf("the journal holds %q", secret)
		}
	}
	events := map[string]int{}
	for line := range strings.Lines(file.String()) {
		var e sim.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if !e.Time.Equal(at()) {
			t.Errorf("%q is not dated by the clock", line)
		}
		events[e.Event]++
		if e.Event == sim.EventLoan && (e.Item != item || e.Loan == 0 || e.Due.IsZero()) {
			t.Errorf("a loan without item, number or date: %q", line)
		}
	}
	for event, want := range map[string]int{
		sim.EventConnect: 1, sim.EventClose: 1, sim.EventFrame: 13, sim.EventLoan: 3,
		sim.EventCancel: 1, sim.EventCheckin: 2, sim.EventFee: 1, sim.EventFault: 1,
	} {
		equal(t, event+" in the file", events[event], want)
	}
	equal(t, "entries in memory", len(ils.Journal()), strings.Count(file.String(), "\n"))
	seen := false
	for _, e := range ils.Journal() {
		seen = seen || e.Event == sim.EventLoan && e.Patron == patron
	}
	equal(t, "memory knows the patron", seen, true)
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestJournalThatCannotBeWritten(t *testing.T) {
	ils := start(t, sim.Options{Journal: broken{}})
	equal(t, "it lends all the same", exchange(t, kiosk(t, ils.Addr()), f1)[:3], "121")
	if err := ils.JournalError(); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("the error is %v", err)
	}
}

func TestTotalsOutliveTheEntries(t *testing.T) {
	ils := start(t, sim.Options{Keep: 10})
	for range 100 {
		ils.Lend(item, patron, time.Time{})
	}
	equal(t, "loans", ils.Loans(item), 100)
	if n := len(ils.Journal()); n < 10 || n > 20 {
		t.Errorf("%d entries are kept", n)
	}
	if seen := ils.ItemsSeen(); len(seen) != 1 || seen[0] != item {
		t.Errorf("items seen: %q", seen)
	}
}

func TestWaitForEndsWithItsContext(t *testing.T) {
	ils := start(t, sim.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	looked := make(chan struct{}, 1)
	go func() { // ends at once
		<-looked
		cancel(errors.New("enough"))
	}()
	err := ils.WaitFor(ctx, func(sim.Snapshot) bool {
		select {
		case looked <- struct{}{}:
		default:
		}
		return false
	})
	if err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("WaitFor ended with %v", err)
	}
}

func TestDeskFindsNoLoan(t *testing.T) {
	ils := start(t, sim.Options{})
	equal(t, "lent", ils.DeskCheckin(item), false)
	equal(t, "checkins", ils.Checkins(item), 1)
}

func TestListenTwiceAndServe(t *testing.T) {
	ils := sim.New(sim.Options{})
	if err := ils.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if err := ils.Listen("127.0.0.1:0"); err == nil {
		t.Error("listened twice")
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- ils.Serve(ctx) }() // received below
	exchange(t, kiosk(t, ils.Addr()), stat)
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	equal(t, "connections left", ils.OpenConnections(), 0)
	if err := ils.Listen("127.0.0.1:0"); err == nil {
		t.Error("listened after the end")
	}
}
