package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sip2gate/dedup"
	"sip2gate/dedup/bolt"
	"sip2gate/dedup/clock"
	"sip2gate/dedup/secret"
	"sip2gate/serialbridge"
	"sip2gate/serialbridge/ils"
	"sip2gate/serialbridge/port"
	"sip2gate/serialbridge/pty"
	"sip2gate/serialbridge/sim"
)

// The incident as its log shows it: the same bytes, two and a half seconds
// apart, from a kiosk that waited for an answer that came late.
const (
	demoFrame = "11YN20260716    110214AOMAIN-BR|AAB1029384756|ABI30012000029894|ACterm7|AY3AZF1C2"
	demoItem  = "I30012000029894"
	demoWait  = 2500 * time.Millisecond // the kiosk's patience
	demoLate  = 3 * time.Second         // the ILS's answer
	demoLimit = 14 * time.Second        // for all of it
)

// runDemo shows the incident without and with the gate. It exits 0 only if the
// gate made one loan of what made two without it.
func runDemo(ctx context.Context, t *terminal, args []string) int {
	if _, code, ok := t.parse(t.flags(), args, 0, 0); !ok {
		return code
	}
	ctx, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	out := t.out
	fmt.Fprintf(out, "A self-check kiosk sends a Checkout (11). The library system (ILS) lends the item, but its\n"+
		"answer (12) comes after %.1f s. The kiosk waits %.1f s, then does what a resilient client\n"+
		"should: it sends the same bytes again. Staff swear that the item was scanned once.\n\n",
		demoLate.Seconds(), demoWait.Seconds())

	without, err := demoRun(ctx, "1. Through a plain relay", out, demoRelay)
	if err == nil {
		var with *demoStory
		with, err = demoRun(ctx, "2. Through sip2gate", out, demoGate)
		if err == nil {
			return demoVerdict(t, without, with)
		}
	}
	t.complain(err.Error(), "run it again; if it fails again, please report what it printed")
	return exitUnwell
}

// demoStory is what happened in one run, in the order in which it did.
type demoStory struct {
	mu    sync.Mutex
	begun time.Time
	lines []demoLine

	sent     int
	answers  []string
	received int // 11s at the ILS
	loans    int
}

type demoLine struct {
	at   time.Time
	who  string
	what string
}

func (d *demoStory) tell(at time.Time, who, what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, demoLine{at, who, what})
}

// demoBetween starts what stands between the kiosk's line and the ILS, and
// returns what stops it.
type demoBetween func(ctx context.Context, story *demoStory, line demoEnd, ils string) (stop func() error, err error)

// demoEnd is the far end of the kiosk's line: a serial device, or an address.
type demoEnd struct {
	serial string
	listen net.Listener
}

// demoRun plays the incident once.
func demoRun(ctx context.Context, title string, out io.Writer, between demoBetween) (*demoStory, error) {
	system, err := sim.Start(sim.Options{Persona: sim.Naive, Institution: "MAIN-BR"})
	if err != nil {
		return nil, fmt.Errorf("start the library system: %w", err)
	}
	defer system.Close()
	if err := system.Fault(sim.Fault{Kind: sim.Late, Code: "11", Times: 1, Delay: demoLate}); err != nil {
		return nil, fmt.Errorf("make its answer late: %w", err)
	}
	story := &demoStory{}
	kiosk, end, what, closeLine, err := demoWire()
	if err != nil {
		return nil, err
	}
	defer closeLine()
	stop, err := between(ctx, story, end, system.Addr())
	if err != nil {
		return nil, err
	}
	story.begun = time.Now()
	err = story.scan(ctx, kiosk)
	err = errors.Join(err, stop())
	if err != nil {
		return nil, err
	}
	for _, e := range system.Journal() {
		switch e.Event {
		case sim.EventFrame:
			if e.Code == "11" {
				story.tell(e.Time, "ILS", "receives a Checkout")
			}
		case sim.EventLoan:
			story.tell(e.Time, "ILS", fmt.Sprintf("opens loan %d of item %s", e.Loan, e.Item))
		case sim.EventAnswer:
			story.tell(e.Time, "ILS", "has answered")
		}
	}
	story.received, story.loans = system.Checkouts(demoItem), system.Loans(demoItem)
	story.print(out, title+", over "+what)
	return story, nil
}

// demoWire makes the kiosk's line: an emulated serial one where the system
// has that, else a socket.
func demoWire() (kiosk sim.Line, end demoEnd, what string, closeLine func(), err error) {
	if pair, err := pty.Open(); err == nil {
		return pair.Master, demoEnd{serial: pair.Path}, "an emulated serial line (" + pair.Path + ", 9600 8N1)",
			func() { _ = pair.Close() }, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, end, "", nil, fmt.Errorf("open a socket: %w", err)
	}
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		l.Close()
		return nil, end, "", nil, fmt.Errorf("connect to it: %w", err)
	}
	return conn, demoEnd{listen: l}, "a socket (this system has no pseudo-terminals)",
		func() { conn.Close(); l.Close() }, nil
}

// open is the far end as a byte line.
func (e demoEnd) open(ctx context.Context) (port.Conn, error) {
	if e.serial != "" {
		return port.OpenSerial(port.Serial{Path: e.serial, Baud: 9600, DataBits: 8, Parity: "none", StopBits: 1, Flow: "none"})
	}
	stop := context.AfterFunc(ctx, func() { e.listen.Close() })
	defer stop()
	return e.listen.Accept()
}

// scan is the kiosk: it sends, waits, and repeats. When it has had its first
// answer it repeats once more, as if that had been lost on the line.
func (d *demoStory) scan(ctx context.Context, line sim.Line) error {
	k := sim.NewKiosk(line, sim.KioskOptions{Institution: "MAIN-BR"})
	send := func(why string) error {
		d.sent++
		d.tell(time.Now(), "kiosk", why+demoFrame)
		return k.Send([]byte(demoFrame))
	}
	read := func(wait time.Duration) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		frame, err := k.Read(ctx)
		switch {
		case err == nil:
			d.answers = append(d.answers, string(frame))
			d.tell(time.Now(), "kiosk", "gets "+string(frame))
			return true, nil
		case ctx.Err() != nil:
			return false, nil
		}
		return false, fmt.Errorf("the kiosk could not read: %w", err)
	}
	if err := send("sends "); err != nil {
		return err
	}
	got, err := read(demoWait)
	if err != nil {
		return err
	}
	if !got {
		if err := send("has no answer, sends again "); err != nil {
			return err
		}
		if _, err := read(demoWait); err != nil {
			return err
		}
	}
	// Without the gate a second answer is under way now. With it there is
	// none, and the kiosk asks once more, as if the first had been garbled.
	if more, err := read(500 * time.Millisecond); err != nil || more {
		return err
	}
	if err := send("has lost the answer, sends again "); err != nil {
		return err
	}
	_, err = read(demoWait)
	return err
}

// demoRelay carries bytes, and nothing else.
func demoRelay(ctx context.Context, _ *demoStory, end demoEnd, ils string) (func() error, error) {
	line, err := end.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the kiosk's line: %w", err)
	}
	var d net.Dialer
	far, err := d.DialContext(ctx, "tcp", ils)
	if err != nil {
		line.Close()
		return nil, fmt.Errorf("connect to the library system: %w", err)
	}
	var wg sync.WaitGroup
	pipe := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from) // ends when either side does
	}
	wg.Go(func() { pipe(far, line) })
	wg.Go(func() { pipe(line, far) })
	return func() error {
		line.Close()
		far.Close()
		wg.Wait()
		return nil
	}, nil
}

// demoGate is the gate itself: a durable store in a folder of its own, one
// station, one link.
func demoGate(ctx context.Context, story *demoStory, end demoEnd, address string) (func() error, error) {
	dir, err := os.MkdirTemp("", "sip2gate-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the store: %w", err)
	}
	fail := func(err error) (func() error, error) {
		os.RemoveAll(dir)
		return nil, err
	}
	key, _, err := secret.Load(filepath.Join(dir, "secret"), false)
	if err != nil {
		return fail(fmt.Errorf("make the secret: %w", err))
	}
	store, _, err := bolt.Open(ctx, bolt.Options{Path: filepath.Join(dir, "gate.db"), Secret: key, Source: clock.System()})
	if err != nil {
		return fail(fmt.Errorf("open the store: %w", err))
	}
	gate, err := dedup.New(ctx, dedup.Options{Store: store, Clock: store.Clock(), Secret: key})
	if err != nil {
		store.Close()
		return fail(fmt.Errorf("open the gate: %w", err))
	}
	bridge := serialbridge.New(serialbridge.Config{
		WANDown: serialbridge.Answer, Checksum: serialbridge.ChecksumAuto,
		Logger: slog.New(slog.NewJSONHandler(story, nil)),
		Stations: []serialbridge.Station{{
			Name: "kiosk-1", Open: end.open, Retries: 2,
			Messages: serialbridge.Messages{Down: []byte("The library system cannot be reached."), Doubt: []byte("Please ask staff.")},
		}},
	}, gate, ils.NewServer(ils.Config{Address: address, Resolve: []string{"63", "17"}}))
	running, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var ran error
	wg.Go(func() { ran = bridge.Run(running) })
	return func() error {
		cancel()
		wg.Wait()
		return errors.Join(ran, store.Close(), os.RemoveAll(dir))
	}, bridge.WaitOpen(ctx)
}

// Write takes the gate's log, one event a line.
func (d *demoStory) Write(line []byte) (int, error) {
	var e struct {
		Time time.Time `json:"time"`
		Msg  string    `json:"msg"`
	}
	if err := json.Unmarshal(line, &e); err == nil {
		if what, ok := demoEvents[e.Msg]; ok {
			d.tell(e.Time, "gate", what+" ("+e.Msg+")")
		}
	}
	return len(line), nil
}

var demoEvents = map[string]string{
	"checkout_admitted":             "has claimed the checkout on disk and forwards it",
	"checkout_joined":               "the same checkout, still with the ILS: one answer will do for both",
	"loan_committed":                "the ILS has lent it; the answer is kept",
	"duplicate_checkout_suppressed": "the same checkout again: answered from memory",
}
