package model

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sip2gate/dedup"
	"sip2gate/dedup/clock"
	"sip2gate/dedup/memory"
)

// The constants are short, in the order that the product's have: a read takes
// less than an answer, the station is answered before it repeats, its last
// repeat comes within the window, settle is longer than any of the ILS's.
const (
	tick       = time.Second
	timeout    = 3 // ticks until a kiosk repeats
	retries    = 1 // repeats of a kiosk
	patience   = 2 // ticks until the gate answers a wait of its own
	ilsTimeout = 2
	readTime   = 1 // of a read before an answer from memory
	settle     = 4
	window     = 7
	least      = tick / 2 // an 11 is not written with less of the wait left
)

// kind is what a request asks for.
type kind uint8

const (
	nothing kind = iota
	checkout
	checkin
	cancel // an 11 with BI=Y
	read   // 63 and 17
)

func (k kind) String() string { return [...]string{"nothing", "11", "09", "11 with BI=Y", "read"}[k] }

// patron is 1 or 2; 0 is nobody.
type patron uint8

func (p patron) String() string { return [...]string{"nobody", "P", "Q"}[p] }

// input is what happens to the appliance from outside, or a step of one of its
// workers that is due. It is everything that the appliance's future depends on.
type input struct {
	Op       op
	Station  uint8 // or the number of a worker, or of a state of the disk
	Kind     kind
	Patron   patron
	Wish     uint8 // which wish of the patron the request stands for; the gate never looks at it
	SameDate bool  // as the station's last 11
	OK       bool  // the answer; the WAN, for a step
}

type op uint8

const (
	none     op = iota // the appliance has no part in it
	frame              // a request comes from a station
	step               // worker Station goes on
	answer             // the ILS's answer comes on the link of Station
	fail               // the link of Station fails, or its time is up
	expire             // the wait at Station is over
	hangUp             // the connection of Station ends
	settling           // a doubt about Patron's checkout is read about with nobody asking
	ticking            // time passes
	kill               // and restart with state Station of the disk
	amnesia            // kill, and the store is gone
)

// effect is what the appliance does to the outside.
type effect struct {
	What    what
	Station uint8
	Kind    kind
	Patron  patron
	Wish    uint8
	OK      bool
	Blind   bool // from memory, and no read could say whether the loan stands
	Why     string
}

type what uint8

const (
	sends   what = iota // to the ILS
	answers             // the station
	aborts              // the link
)

// appliance is the real gate with a small bridge around it. Each method of the
// bridge says which function of serialbridge it stands for.
type appliance struct {
	clock   *clock.Manual
	disk    *disk
	gate    *dedup.Gate
	without string // the rule that is taken away

	session [2]session
	workers []*worker
	out     []effect
}

// session is a station's: what it waits for, and what it sent last.
type session struct {
	Wait *worker

	// history: what its last 11 was, while nothing came in between.
	Repeatable bool
	Patron     patron
	Last       time.Duration

	Busy  *worker // who has the link
	Until time.Duration
}

// stage is where a worker stands.
type stage uint8

const (
	deciding stage = iota
	asleep         // until something changes
	toSend
	sent
	toRead
	reading
	joined
)

// worker serves one wait; with kind read it settles a doubt, for nobody.
type worker struct {
	Station  uint8
	Kind     kind
	Patron   patron
	Wish     uint8
	Stage    stage
	Over     bool // its wait has ended
	AtILS    bool
	Deadline time.Duration

	Req    *dedup.Request
	Flight *dedup.Flight
	Change *dedup.Change
	Seen   dedup.Record // what a read is about: key, token and object only
	For    dedup.Decision
	Begun  time.Duration // of the read
	Until  time.Duration
	woke   <-chan struct{}
	tokens map[dedup.Digest]dedup.Token // as the change saw them; a sabotage's
	clock  *clock.Manual
}

// Patience is wait.Patience.
func (w *worker) Patience() time.Duration {
	if w.Over {
		return 0
	}
	return w.Deadline - w.clock.Now()
}

func newAppliance(without string) *appliance {
	a := &appliance{clock: clock.NewManual("model", 1000*tick), without: without}
	a.start(nil, false)
	return a
}

var secret = []byte("unit-test-secret-not-for-prod-32")

func (a *appliance) start(left []memory.Entry, lost bool) {
	a.disk = newDisk(left)
	gate, err := dedup.New(context.Background(), dedup.Options{
		Store: a.disk, Clock: a.clock, Secret: secret, Amnesia: lost,
		Window: window * tick, Settle: settle * tick, ILSTimeout: ilsTimeout * tick,
	})
	must(err)
	a.gate = gate
	a.session, a.workers = [2]session{}, nil
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("the gate failed: %v", err))
	}
}

// do carries out one input and returns what came of it.
func (a *appliance) do(in input) []effect {
	a.out = nil
	a.clock.Advance(time.Microsecond) // nothing happens twice at one moment
	switch in.Op {
	case frame:
		a.frame(in)
	case step:
		a.step(a.workers[in.Station], in.OK)
	case answer:
		a.answered(in.Station, in.OK)
	case fail:
		a.failed(in.Station)
	case expire:
		a.deliver(a.session[in.Station].Wait, false, nil, "the wait is over")
	case hangUp:
		a.hungUp(in.Station)
	case settling:
		a.settleOne(in)
	case ticking:
		a.clock.Advance(tick)
		a.disk.flush()
		for _, w := range a.workers { // a change whose kiosk has given up: session.frame
			w.Over = w.Over || w.Kind != read && a.session[w.Station].Wait != w && a.clock.Now() >= w.Deadline
		}
		_, err := a.gate.Sweep(context.Background())
		must(err)
	case kill:
		a.start(a.disk.since[in.Station], false)
	case amnesia:
		a.start(nil, true)
	}
	return a.out
}

// frame is session.frame with newWait, observe, twin and join.
func (a *appliance) frame(in input) {
	s := &a.session[in.Station]
	now := a.clock.Now()
	w := &worker{
		Station: in.Station, Kind: in.Kind, Patron: in.Patron, Wish: in.Wish,
		Deadline: now + patience*tick, clock: a.clock,
	}
	own := false
	if in.Kind == checkout {
		own = s.Repeatable && s.Patron == in.Patron && in.SameDate && now-s.Last <= (retries+1)*timeout*tick
		s.Repeatable, s.Patron, s.Last = true, in.Patron, now
		w.Req = request(in.Patron)
		w.Req.Arrived, w.Req.Own, w.Req.Waiter, w.Req.Origin = now, own, w, in.Station
	} else {
		s.Repeatable, s.Patron, s.Last = false, 0, 0
	}
	o := s.Wait
	if o != nil && o.Kind == in.Kind && o.Patron == in.Patron && (own || in.Kind != checkout) {
		o.Deadline = w.Deadline // its twin
		return
	}
	// Nothing comes within a second here, so nothing is queued: the kiosk has
	// given up. A change that waits for the link still goes out in its time.
	if o != nil && (o.Kind == checkout || o.AtILS) {
		o.Over = true
	}
	s.Wait = w
	a.workers = append(a.workers, w)
}

// request is checkoutRequest.
func request(p patron) *dedup.Request {
	return &dedup.Request{
		Scope: []byte("MAIN"), Subject: []byte(p.String()), Object: []byte("book"),
		Compared: [][]byte{[]byte("N"), nil}, Payload: []byte("11 " + p.String()),
	}
}

// deliver is session.take, expire, finish and deliver: only the wait that is
// outstanding is answered, once.
func (a *appliance) deliver(w *worker, ok bool, record *dedup.Record, why string) {
	if a.over(w) {
		a.out = append(a.out, effect{
			What: answers, Station: w.Station, Kind: w.Kind, Patron: w.Patron, Wish: w.Wish, OK: ok,
			Blind: w.For == dedup.ReplayUnverified, Why: why,
		})
		if record != nil {
			a.gate.Delivered(context.Background(), *record)
		}
	}
}

// over ends w's wait, if that is the outstanding one.
func (a *appliance) over(w *worker) bool {
	s := &a.session[w.Station]
	if s.Wait != w {
		return false
	}
	w.Over = true
	s.Wait = nil
	return true
}

// hungUp is the end of session.run.
func (a *appliance) hungUp(k uint8) {
	s := &a.session[k]
	if s.Wait != nil {
		s.Wait.Over = true
		s.Wait = nil
	}
}

// drop takes a worker that has returned off the list.
func (a *appliance) drop(w *worker) {
	a.workers = slices.DeleteFunc(a.workers, func(x *worker) bool { return x == w })
}
