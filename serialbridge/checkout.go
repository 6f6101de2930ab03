package serialbridge

import (
	"context"
	"errors"
	"time"

	"sip2gate/dedup"
	"sip2gate/serialbridge/ils"
	"sip2gate/serialbridge/sip2"
)

const (
	// verifyTime bounds a read before an answer from memory.
	verifyTime = 3 * time.Second
	// leastPatience: an 11 is not written with less of the wait left, since
	// its answer could hardly be in time.
	leastPatience = 3 * time.Second
)

// errHeld: a checkin or cancel before it turned out unanswered while this 11
// waited for the link.
var errHeld = errors.New("a change of the item that left before was not answered")

// checkout carries an 11 through the verdict table until there is an answer,
// or the wait is over.
func (w *wait) checkout() result {
	gate := w.s.st.b.gate
	pause := newPauses()
	for {
		if w.ctx.Err() != nil {
			return w.tooLate()
		}
		w.req.Mute = !w.s.st.b.srv.Readable()
		v, err := gate.Admit(w.ctx, w.req)
		if err != nil {
			w.s.log.Error("gate_failed", "error", err.Error())
			return result{why: unreachable}
		}
		switch v.Decision {
		case dedup.Claim:
			r, done := w.forward(v.Flight)
			if done {
				return r
			}
		case dedup.Join:
			r, done := w.joined(v.Flight)
			if done {
				return r
			}
		case dedup.Wait:
			w.setWhy(overdue)
			w.atILS.Store(true) // for what somebody else has asked it
			w.pauseFor(v, 0)
		case dedup.Look:
			w.look(v, pause)
		case dedup.Adopt:
			w.s.st.logSettled(v.Record, dedup.SettledLent)
			return w.memory(v)
		case dedup.Replay, dedup.ReplayUnverified:
			age := gate.Now() - v.Record.CompletedAt
			w.event("duplicate_checkout_suppressed", "age_ms", age.Milliseconds(),
				"unverified", v.Decision == dedup.ReplayUnverified)
			return w.memory(v)
		case dedup.Verify:
			w.verify(v.Record)
		case dedup.Settle:
			w.setWhy(unanswered)
			w.settle(v, pause)
		case dedup.Conflict:
			w.event("checkout_conflict")
			w.s.peer.link.Swallowed()
			return result{why: conflicting}
		default: // AskStaff
			w.event("checkout_refused", "why", "it could not be verified that the loan still stands")
			w.s.peer.link.Swallowed()
			return result{why: unanswered}
		}
	}
}

func (w *wait) event(name string, more ...any) {
	w.s.log.Info(name, append(w.fields(), more...)...)
}

// tooLate ends a worker whose wait is over. The session has answered already,
// or nobody is there to hear.
func (w *wait) tooLate() result {
	w.s.peer.link.Swallowed()
	return result{why: w.why()}
}

// pauseFor waits for the item to change, for gate time v.Until, for most at
// longest if that is not 0, or for the end of the wait.
func (w *wait) pauseFor(v dedup.Verdict, most time.Duration) {
	d := time.Duration(1<<62 - 1)
	if most > 0 {
		d = most
	}
	// An Until that has passed is a reason to look again at once, but none to
	// read again before the pause is over.
	if left := v.Until - w.s.st.b.gate.Now(); v.Until > 0 && (left > 0 || most == 0) {
		d = min(d, max(left, time.Millisecond))
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-v.Changed:
	case <-timer.C:
	case <-w.ctx.Done():
	}
}

// joined waits for the outcome of a flight that this is the repeat of.
func (w *wait) joined(f *dedup.Flight) (result, bool) {
	w.setWhy(unanswered)
	w.event("checkout_joined")
	w.s.peer.link.Swallowed()
	select {
	case <-f.Done():
	case <-w.ctx.Done():
		return w.tooLate(), true
	}
	outcome, answer := f.Outcome()
	if answer == nil { // nothing was sent, or nobody knows: decide again
		return result{}, false
	}
	if !f.Newest(w) {
		return result{unheard: true}, true
	}
	r := result{frame: answer, replay: true}
	if outcome == dedup.Committed {
		rec := f.Record()
		r.record = &rec
	}
	return r, true
}

// memory is the stored answer of the verdict's record.
func (w *wait) memory(v dedup.Verdict) result {
	answer, err := w.s.st.b.gate.Answer(&v.Record)
	if err != nil {
		w.event("checkout_refused", "why", "the stored answer is damaged", "error", err.Error())
		return result{why: unanswered}
	}
	w.s.peer.link.Swallowed()
	return result{frame: answer, replay: true, record: &v.Record}
}

// verify asks the ILS whether a completed checkout still stands.
func (w *wait) verify(rec dedup.Record) {
	w.setWhy(unanswered)
	ctx, cancel := context.WithTimeout(w.ctx, verifyTime)
	defer cancel()
	// Where staff have said that it was lent, the read gives the answer too.
	w.apply(ctx, rec, rec.Answer == nil)
}

// apply makes one read about a record and hands the outcome to the gate. What
// it showed counts for this transmission too, since it was begun after it.
func (w *wait) apply(ctx context.Context, rec dedup.Record, details bool) dedup.Settled {
	gate := w.s.st.b.gate
	begun := gate.Now()
	w.atILS.Store(true)
	rd := w.s.st.readAbout(ctx, w.s.peer.link, rec, &w.msg, details)
	rd.Begun = begun
	did, now, err := gate.Settle(context.WithoutCancel(ctx), rec, rd)
	if err != nil {
		w.s.log.Error("gate_failed", "error", err.Error())
	}
	w.req.Read, w.req.Begun, w.req.Token = rd.Result, begun, now.Token
	w.s.st.logSettled(now, did)
	if did == dedup.Ended {
		w.event("checkout_ended", "why", "the ILS says that the item is not on loan to this patron any more")
	}
	return did
}

// settle reads about a doubt, and waits before the next read if it proved
// nothing.
func (w *wait) settle(v dedup.Verdict, pause *pauses) {
	if w.apply(w.ctx, v.Record, true) != dedup.Unchanged {
		return
	}
	w.pauseFor(v, pause.next())
}

// forward sends a claimed 11 and ends its flight. Not done: the outcome is not
// known, and the table is to be asked again.
func (w *wait) forward(f *dedup.Flight) (result, bool) {
	gate, log := w.s.st.b.gate, w.s.log
	ctx := context.Background() // what is owed to the gate outlives the wait
	w.setWhy(unreachable)
	if f.Unchecked() {
		w.event("checkout_admitted", "unchecked", true,
			"hint", "records were lost, and this ILS cannot be asked whether the loan stands already")
	} else {
		w.event("checkout_admitted")
	}
	sent := gate.Now()
	a, err := w.s.peer.link.Do(w.ctx, ils.Request{
		Frame: w.frame,
		Probe: true,
		Ready: func() error {
			if f.Patience() < leastPatience {
				return ils.ErrNotWanted
			}
			if f.Held() {
				return errHeld
			}
			w.atILS.Store(true)
			w.setWhy(unanswered)
			sent = gate.Now()
			return nil
		},
	})
	switch {
	case err != nil && !ils.Sent(err):
		if err := f.Release(ctx, nil); err != nil {
			log.Error("gate_failed", "error", err.Error())
		}
		if errors.Is(err, errHeld) {
			return result{}, false
		}
		w.event("checkout_refused", "why", "nothing was sent to the ILS", "error", err.Error())
		w.s.peer.link.Swallowed()
		return result{why: unreachable}, true
	case err != nil:
		w.doubt(ctx, f, nil, err.Error())
		w.atILS.Store(true)
		return result{}, false
	}
	w.s.st.b.answered()
	ms := (gate.Now() - sent).Milliseconds()
	return w.answered(ctx, f, &a, ms)
}

func (w *wait) doubt(ctx context.Context, f *dedup.Flight, answer []byte, why string) {
	if _, err := f.Doubt(ctx, answer); err != nil {
		w.s.log.Error("gate_failed", "error", err.Error())
	}
	w.event("checkout_in_doubt", "why", why)
	w.s.st.pulse.beat()
}

// answered ends a flight by what the ILS has said.
func (w *wait) answered(ctx context.Context, f *dedup.Flight, a *ils.Answer, ms int64) (result, bool) {
	log := w.s.log
	m := &a.Msg
	r := result{frame: a.Frame}
	ok := string(m.Fixed("ok"))
	switch {
	case m.Code == sip2.CodeRequestSCResend, m.Code == sip2.CodeACSStatus && a.NotDone,
		m.Code == sip2.CodeCheckoutResponse && ok == "0":
		if ok == "0" && f.AfterDoubt() {
			if lent, done := w.doubleCheck(ctx, f); done {
				r = lent
				break
			}
		}
		if err := f.Release(ctx, a.Frame); err != nil {
			log.Error("gate_failed", "error", err.Error())
		}
		w.event("checkout_refused", "why", "the ILS said no", "code", m.Code.String(), "age_ms", ms)
	case m.Code != sip2.CodeCheckoutResponse, ok != "1":
		w.doubt(ctx, f, a.Frame, "the ILS answered something else than yes or no")
	case a.Foreign:
		w.doubt(ctx, f, a.Frame, "the ILS's answer names another item")
	default:
		rec, err := f.Complete(ctx, a.Frame, w.s.st.completion())
		if err != nil {
			log.Error("gate_failed", "error", err.Error())
			return r, true
		}
		r.record = &rec
		w.event("loan_committed", "age_ms", ms, "renewal", string(m.Fixed("renewal_ok")) == "Y")
	}
	if !f.Newest(w) {
		return result{unheard: true}, true
	}
	return r, true
}

// completion: the answer is written at once and not waited for, since a crash
// in between leaves a doubt that a read settles; an ILS that cannot be read
// settles nothing, so there it is waited for.
func (st *station) completion() dedup.Durability {
	if st.b.srv.Readable() {
		return dedup.Behind
	}
	return dedup.Synced
}

// doubleCheck: the first 11 after a doubt was settled as not lent got ok=0.
// One more read decides what the patron is told, since "already checked out"
// (FOLIO) would be the loan that was in doubt.
func (w *wait) doubleCheck(ctx context.Context, f *dedup.Flight) (result, bool) {
	ctx, cancel := context.WithTimeout(ctx, verifyTime)
	defer cancel()
	rd := w.s.st.readAbout(ctx, w.s.peer.link, f.Record(), &w.msg, true)
	if rd.Result != dedup.Charged {
		return result{}, false
	}
	rec, err := f.Complete(context.WithoutCancel(ctx), rd.Answer, w.s.st.completion())
	if err != nil {
		w.s.log.Error("gate_failed", "error", err.Error())
		return result{frame: rd.Answer, replay: true}, true // the flight has ended
	}
	w.s.st.logSettled(rec, dedup.SettledLent)
	return result{frame: rd.Answer, replay: true, record: &rec}, true
}

// change forwards a checkin or a cancel. What it may end is marked first.
func (w *wait) change() result {
	gate, log := w.s.st.b.gate, w.s.log
	ctx := context.Background()
	ab, _ := w.msg.Field("AB")
	if len(dedup.Trim(ab)) == 0 {
		return w.pass()
	}
	c, err := gate.BeginChange(ctx, ab)
	if err != nil {
		log.Error("gate_failed", "error", err.Error())
		return result{why: unreachable}
	}
	a, err := w.s.peer.link.Do(w.ctx, ils.Request{Frame: w.frame, Ready: w.ready})
	if err != nil {
		ending := dedup.NotSent
		if ils.Sent(err) {
			ending = dedup.Unanswered
		}
		c.End(ctx, ending)
		return w.failed(err)
	}
	c.End(ctx, w.ending(&a))
	return result{frame: a.Frame}
}

// ending says what the answer to a change proves. A cancel is carried out as a
// plain checkout by some (Koha, Evergreen): its ok=1 ends nothing, unless the
// ILS cannot be read.
func (w *wait) ending(a *ils.Answer) dedup.Ending {
	m := &a.Msg
	ok := string(m.Fixed("ok")) == "1"
	switch {
	case m.Code == sip2.CodeCheckinResponse && ok:
		return dedup.Done
	case m.Code == sip2.CodeCheckoutResponse && ok && !w.s.st.b.srv.Readable():
		return dedup.Done
	case m.Code == sip2.CodeACSStatus && !a.NotDone:
		return dedup.Unanswered
	}
	return dedup.NotDone
}
