package model

import (
	"context"

	"sip2gate/dedup"
)

// due reports whether the worker can go on by itself.
func (a *appliance) due(w *worker) bool {
	free := a.session[w.Station].Busy == nil
	switch w.Stage {
	case deciding:
		return true
	case asleep:
		return w.Over || w.woken() || w.Until != 0 && a.clock.Now() >= w.Until
	case toSend:
		return free || w.Over
	case toRead:
		return free || w.given()
	case joined:
		return w.Over || closed(w.Flight.Done())
	}
	return false
}

// given: nobody waits for what the worker would read. The read after a refusal
// is for the gate too.
func (w *worker) given() bool { return w.Over && w.Flight == nil }

// woken: the item has changed since the verdict.
func (w *worker) woken() bool { return w.woke != nil && closed(w.woke) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

var background = context.Background()

// step takes a worker to where it waits for something; up is the WAN.
func (a *appliance) step(w *worker, up bool) {
	switch w.Stage {
	case deciding:
		if w.Kind == checkout {
			a.decide(w)
		} else {
			a.change(w)
		}
	case asleep:
		a.awake(w)
	case toSend:
		a.send(w, up)
	case toRead:
		a.read(w, up)
	case joined:
		a.landed(w)
	}
}

// decide is one round of wait.checkout.
func (a *appliance) decide(w *worker) {
	if w.Over {
		a.drop(w) // tooLate
		return
	}
	v := a.admit(w)
	w.For = v.Decision
	switch v.Decision {
	case dedup.Claim:
		w.Flight, w.Stage = v.Flight, toSend
	case dedup.Join:
		w.Flight, w.Stage = v.Flight, joined
	case dedup.Wait:
		w.sleep(v, false)
	case dedup.Look: // wait.look
		if w.Req.Blind.Result != dedup.NotRead {
			w.sleep(v, true)
			break
		}
		a.toRead(w, dedup.Record{})
	case dedup.Adopt, dedup.Replay, dedup.ReplayUnverified: // wait.memory
		_, err := a.gate.Answer(&v.Record)
		must(err)
		a.drop(w)
		a.deliver(w, true, &v.Record, "from memory")
	case dedup.Verify, dedup.Settle:
		a.toRead(w, v.Record)
		w.Until = v.Until
		w.woke = v.Changed
	default: // Conflict, AskStaff
		a.drop(w)
		a.deliver(w, false, nil, "please ask staff")
	}
}

// sleep is pauseFor, with a pause of a tick after a read that proved nothing.
func (w *worker) sleep(v dedup.Verdict, paused bool) {
	w.Stage, w.woke, w.Until = asleep, v.Changed, v.Until
	now := w.clock.Now()
	if paused && (w.Until <= now || w.Until > now+tick) {
		w.Until = now + tick
	}
}

// awake is the end of pauseFor.
func (a *appliance) awake(w *worker) {
	w.Stage, w.Until, w.woke = deciding, 0, nil
	if w.For == dedup.Look && !w.Over {
		a.toRead(w, dedup.Record{})
	}
}

// toRead begins a read: the time counts from here, before the link is free.
func (a *appliance) toRead(w *worker, about dedup.Record) {
	w.Stage, w.Begun, w.AtILS = toRead, a.clock.Now(), true
	w.Seen = dedup.Record{Key: about.Key, Token: about.Token, Object: about.Object, ClaimedAt: about.ClaimedAt}
}

// read is Link.Read with readAbout.
func (a *appliance) read(w *worker, up bool) {
	if w.given() || !up {
		a.apply(w, dedup.Unreadable)
		return
	}
	limit := ilsTimeout
	if w.For == dedup.Verify || w.Flight != nil {
		limit = readTime
	}
	a.use(w, reading, read, limit)
}

// use takes the link and writes a request.
func (a *appliance) use(w *worker, s stage, k kind, ticks int) {
	w.Stage = s
	l := &a.session[w.Station]
	l.Busy, l.Until = w, a.clock.Now().Truncate(tick)+tick*duration(ticks)
	a.out = append(a.out, effect{What: sends, Station: w.Station, Kind: k, Patron: w.Patron, Wish: w.Wish})
}

// apply is wait.apply, and settleOne for nobody's read.
func (a *appliance) apply(w *worker, result dedup.ReadResult) {
	rd := dedup.Reading{Result: result, Begun: w.Begun}
	if result == dedup.Charged {
		rd.Answer = []byte("12 of a read")
	}
	switch {
	case w.Flight != nil:
		a.doubleChecked(w, rd)
		return
	case w.For == dedup.Look:
		w.Req.Blind, w.Stage = rd, deciding
		return
	}
	did, now := a.settle(w, rd)
	if w.Kind == read {
		a.drop(w)
		return
	}
	w.Req.Read, w.Req.Begun, w.Req.Token = result, w.Begun, now.Token
	if w.For == dedup.Settle && did == dedup.Unchanged {
		w.sleep(dedup.Verdict{Until: w.Until, Changed: w.woke}, true)
	} else {
		w.Stage, w.Until, w.woke = deciding, 0, nil
	}
	w.Seen, w.Begun = dedup.Record{}, 0
}

// send is Link.Do with the Ready of wait.forward and wait.ready.
func (a *appliance) send(w *worker, up bool) {
	left := w.Patience()
	if w.Kind == checkout {
		left = w.Flight.Patience()
	}
	if w.Over || !up || left < least {
		if w.Kind == checkout {
			must(w.Flight.Release(background, nil))
		} else {
			a.ended(w, dedup.NotSent)
		}
		a.drop(w)
		a.deliver(w, false, nil, "nothing was sent")
		return
	}
	if w.Kind == checkout && a.without != holding && w.Flight.Held() {
		must(w.Flight.Release(background, nil))
		w.Flight, w.Stage = nil, deciding
		return
	}
	w.AtILS = true
	a.use(w, sent, w.Kind, ilsTimeout)
}

// landed is the second half of wait.joined.
func (a *appliance) landed(w *worker) {
	f := w.Flight
	w.Flight = nil
	if w.Over {
		a.drop(w) // tooLate
		return
	}
	outcome, said := f.Outcome()
	if said == nil {
		w.Stage = deciding
		return
	}
	a.drop(w)
	if !f.Newest(w) {
		a.over(w)
		return
	}
	if outcome == dedup.Committed {
		rec := f.Record()
		a.deliver(w, true, &rec, "the answer of the one it repeats")
		return
	}
	a.deliver(w, false, nil, "the answer of the one it repeats")
}

// answered is what a worker makes of the ILS's answer: wait.answered,
// wait.change and wait.ending, or the result of a read.
func (a *appliance) answered(k uint8, ok bool) {
	w := a.session[k].Busy
	a.session[k].Busy, a.session[k].Until = nil, 0
	switch {
	case w.Stage == reading && ok:
		a.apply(w, dedup.Charged)
	case w.Stage == reading:
		a.apply(w, dedup.Absent)
	case w.Kind != checkout:
		e := dedup.NotDone
		if ok && w.Kind == checkin {
			e = dedup.Done
		}
		a.ended(w, e)
		a.drop(w)
		a.deliver(w, ok, nil, "the ILS's answer")
	case ok:
		rec, err := w.Flight.Complete(background, []byte("12"), dedup.Behind)
		must(err)
		a.completed(rec)
		a.said(w, true, &rec)
	case w.Flight.AfterDoubt():
		a.toRead(w, w.Flight.Record()) // doubleCheck
	default:
		must(w.Flight.Release(background, []byte("12 no")))
		a.said(w, false, nil)
	}
}

// said gives the ILS's answer to the newest transmission.
func (a *appliance) said(w *worker, ok bool, rec *dedup.Record) {
	a.drop(w)
	if !w.Flight.Newest(w) {
		a.over(w)
		return
	}
	a.deliver(w, ok, rec, "the ILS's answer")
}

// doubleChecked is the second half of wait.doubleCheck.
func (a *appliance) doubleChecked(w *worker, rd dedup.Reading) {
	if rd.Result == dedup.Charged {
		rec, err := w.Flight.Complete(background, rd.Answer, dedup.Behind)
		must(err)
		a.completed(rec)
		a.said(w, true, &rec)
		return
	}
	must(w.Flight.Release(background, []byte("12 no")))
	a.said(w, false, nil)
}

// failed is an exchange that ends without an answer: the link is aborted.
func (a *appliance) failed(k uint8) {
	w := a.session[k].Busy
	a.session[k].Busy, a.session[k].Until = nil, 0
	a.out = append(a.out, effect{What: aborts, Station: k})
	switch {
	case w.Stage == reading:
		a.apply(w, dedup.Unreadable)
	case w.Kind == checkout: // wait.doubt
		_, err := w.Flight.Doubt(background, nil)
		must(err)
		w.Flight, w.Stage = nil, deciding
	default:
		a.ended(w, dedup.Unanswered)
		a.drop(w)
		a.deliver(w, false, nil, "the ILS did not answer")
	}
}

// change is wait.change up to where the frame is sent.
func (a *appliance) change(w *worker) {
	if w.Over {
		a.drop(w)
		return
	}
	a.beginChange(w)
	w.Stage = toSend
}

// settleOne is settleOne of settle.go.
func (a *appliance) settleOne(in input) {
	for _, rec := range a.gate.Doubts() {
		if rec.Request == nil || holderOf(&rec) != in.Patron {
			continue
		}
		w := &worker{Station: in.Station, Kind: read, Patron: in.Patron, For: dedup.Settle, Over: false, clock: a.clock}
		a.workers = append(a.workers, w)
		a.toRead(w, rec)
		a.read(w, true)
		return
	}
}
