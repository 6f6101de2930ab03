package sim_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"sip2gate/serialbridge/sim"
	"sip2gate/serialbridge/sip2"
)

// received is the only frame with that code that the ILS has received.
func received(t *testing.T, ils *sim.ILS, code string) sip2.Message {
	t.Helper()
	var found []sip2.Message
	for _, raw := range ils.Frames() {
		if m := sip2.Parse(raw, '|'); m.Code.String() == code {
			found = append(found, m)
		}
	}
	if len(found) != 1 {
		t.Fatalf("received %d frames with code %s", len(found), code)
	}
	return found[0]
}

func TestKioskBuildsWhatAKioskSends(t *testing.T) {
	ils := start(t, sim.Options{})
	clock := func() time.Time { return time.Date(2026, 11, 30, 10, 15, 0, 0, time.UTC) }
	k := sim.NewKiosk(dial(t, ils.Addr()), sim.KioskOptions{ErrorDetection: true, Clock: clock})
	if _, err := k.Login(within(t), "kiosk1", "s3cret", "MAIN"); err != nil {
		t.Fatal(err)
	}
	checkout(t, k, patron, item, sim.CheckoutOptions{PIN: "4711"})
	if _, err := k.Status(within(t)); err != nil {
		t.Fatal(err)
	}
	equal(t, "93", string(received(t, ils, "93").Raw), login)
	equal(t, "11", string(received(t, ils, "11").Raw), f1)
	equal(t, "99", string(received(t, ils, "99").Raw), stat)
}

func TestKioskFramesAreRight(t *testing.T) {
	ils := start(t, sim.Options{})
	k := sim.NewKiosk(dial(t, ils.Addr()), sim.KioskOptions{ErrorDetection: true, Sequence: 8, Institution: "BR2", Clock: at})
	ctx := within(t)
	for i, ask := range []func() (sip2.Message, error){
		func() (sip2.Message, error) { return k.Checkin(ctx, item) },
		func() (sip2.Message, error) { return k.Renew(ctx, patron, item) },
		func() (sip2.Message, error) { return k.RenewAll(ctx, patron) },
		func() (sip2.Message, error) { return k.PatronStatus(ctx, patron, "1") },
		func() (sip2.Message, error) { return k.PatronInformation(ctx, patron, "1") },
		func() (sip2.Message, error) { return k.ItemInformation(ctx, item) },
		func() (sip2.Message, error) { return k.FeePaid(ctx, patron, "1.50", "pay-1") },
		func() (sip2.Message, error) { return k.EndSession(ctx, patron) },
	} {
		got, err := ask()
		if err != nil {
			t.Fatal(err)
		}
		frames := ils.Frames()
		sent := sip2.Parse(frames[len(frames)-1], '|')
		want, _ := sip2.Response(sent.Code)
		equal(t, sent.Code.Name()+": answer", got.Code, want)
		equal(t, sent.Code.Name()+": short", sent.Short() || sent.MissingDueDate(), false)
		equal(t, sent.Code.Name()+": checksum", sent.Trailer.Valid, true)
		equal(t, sent.Code.Name()+": AY", sent.Trailer.Seq, byte('0'+(8+i)%10))
		equal(t, sent.Code.Name()+": AO", field(sent, "AO"), "BR2")
	}
}

func TestKioskWithoutErrorDetection(t *testing.T) {
	ils := start(t, sim.Options{})
	k := sim.NewKiosk(dial(t, ils.Addr()), sim.KioskOptions{Short: true, Terminator: "\r\n", Clock: at})
	_, m := checkout(t, k, patron, item, sim.CheckoutOptions{Cancel: true, FeeAccepted: true, NoBlock: true})
	equal(t, "trailer of the answer", m.Trailer.Present, false)
	sent := received(t, ils, "11")
	equal(t, "trailer", sent.Trailer.Present, false)
	equal(t, "nb due date is missing", sent.MissingDueDate(), true)
	equal(t, "BO BI no block", field(sent, "BO")+field(sent, "BI")+string(sent.Fixed("no_block")), "YYY")
}

func TestKioskRepeatsTheSameBytes(t *testing.T) {
	ils := start(t, known(sim.Naive))
	if err := ils.Fault(sim.Fault{Kind: sim.Lost, Code: "11", Times: 2}); err != nil {
		t.Fatal(err)
	}
	k := sim.NewKiosk(dial(t, ils.Addr()), sim.KioskOptions{ErrorDetection: true, Clock: at, Timeout: 20 * time.Millisecond, Retries: 2})
	// An answer may come a little late on a busy machine, so only what was
	// sent is counted.
	answer, err := k.Exchange(within(t), []byte(f1))
	if err != nil && !errors.Is(err, sim.ErrNoAnswer) {
		t.Fatal(err)
	}
	if err == nil {
		equal(t, "answer", string(answer[:3]), "121")
	}
	if err := ils.WaitFor(within(t), func(s sim.Snapshot) bool { return s.Checkouts(item) == 3 }); err != nil {
		t.Fatal(err)
	}
	for _, frame := range ils.Frames() {
		equal(t, "transmission", string(frame), f1)
	}
	equal(t, "loans of a machine that only wanted one", ils.OpenLoans(item), 3)
}

func TestKioskGivesUp(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	go io.Copy(io.Discard, far) // ends when near is closed
	k := sim.NewKiosk(near, sim.KioskOptions{Timeout: time.Millisecond, Retries: 1})
	if _, err := k.Status(within(t)); !errors.Is(err, sim.ErrNoAnswer) {
		t.Errorf("gave up with %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled read ended with %v", err)
	}
}

// A read that ended in the middle of a frame, and in the past, leaves the next
// one all of it.
func TestKioskReadGoesOnWhereItEnded(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	k := sim.NewKiosk(near, sim.KioskOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { // ends with the reads below
		far.Write([]byte("\r\n\r\n98YY"))
		cancel()
		<-over
		far.Write([]byte("YY\r\n94"))
		far.Write([]byte("1\r"))
	}()
	if frame, err := k.Read(ctx); err == nil {
		t.Fatalf("got %q", frame)
	}
	close(over)
	for _, want := range []string{"98YYYY", "941"} {
		frame, err := k.Read(within(t))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "frame", string(frame), want)
	}
}

func TestRelayCarriesBytesAndEnds(t *testing.T) {
	ils := start(t, known(sim.Naive))
	relay, err := sim.NewRelay("127.0.0.1:0", ils.Addr())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- relay.Serve(ctx) }() // received below
	k := kiosk(t, relay.Addr())
	equal(t, "answer", exchange(t, k, f1), right)
	equal(t, "the incident goes through it", exchange(t, k, f1)[:3], "121")
	equal(t, "loans", ils.OpenLoans(item), 2)

	ils.HangUp(false)
	ended(t, k)
	near := dial(t, relay.Addr())
	exchange(t, sim.NewKiosk(near, sim.KioskOptions{}), stat)
	near.Close()
	if err := ils.WaitFor(within(t), func(s sim.Snapshot) bool { return s.OpenConnections() == 0 }); err != nil {
		t.Fatal(err)
	}
	open := kiosk(t, relay.Addr())
	exchange(t, open, stat)
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	ended(t, open)
	if err := relay.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

func TestRelayWithoutTarget(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := ln.Addr().String()
	ln.Close()
	relay, err := sim.NewRelay("127.0.0.1:0", nobody)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- relay.Serve(t.Context()) }() // received below
	ended(t, kiosk(t, relay.Addr()))
	if err := relay.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if _, err := sim.NewRelay("nowhere", nobody); err == nil {
		t.Error("listened nowhere")
	}
}
