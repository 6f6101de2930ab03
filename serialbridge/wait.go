package serialbridge

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"sip2gate/dedup"
	"sip2gate/serialbridge/ils"
	"sip2gate/serialbridge/sip2"
)

// kind is how a request is handled.
type kind uint8

const (
	pass     kind = iota // through to the ILS and back
	checkout             // an 11 that is gated
	change               // a 09, or an 11 with BI=Y
	login                // a 93
	status               // a 99
)

// refusal is what the gate says of its own where the ILS's answer fails.
type refusal uint8

const (
	unreachable refusal = iota // nothing was sent
	unanswered                 // sent, and nobody knows
	conflicting                // not the request that was made before
	overdue                    // waiting for somebody else's outcome
)

// result is what a worker has to say to the station.
type result struct {
	frame   []byte        // an answer; nil: a refusal of the gate's own
	why     refusal       // of such a refusal
	replay  bool          // frame comes from the store: the trailer follows the request
	record  *dedup.Record // its delivery is to be noted
	unheard bool          // another transmission gets the answer
}

// errWaitOver ends the steps of a wait that has had its answer or has none to
// get.
var errWaitOver = errors.New("the wait is over")

// wait is one wait of the kiosk: from a request to the one answer it gets. The
// session owns it; the worker that serves it reads what is behind the mutex.
type wait struct {
	s     *session
	kind  kind
	frame []byte
	msg   sip2.Message
	batch uint64
	heard time.Time      // when the newest transmission came; the session's
	req   *dedup.Request // of a checkout
	key   dedup.Digest   // its transaction's, as it was when it arrived
	trace checkoutTrace
	gap   time.Duration // of a machine's own repeat: since its last transmission

	ctx    context.Context // ends with the wait
	cancel context.CancelCauseFunc

	newest  sip2.Trailer // of the newest transmission; the session's
	atILS   atomic.Bool  // the gate waits for the ILS on its behalf
	refusal atomic.Uint32

	mu       sync.Mutex
	deadline time.Time
	over     bool
}

// Patience is how long the kiosk still waits (dedup.Waiter).
func (w *wait) Patience() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return 0
	}
	return time.Until(w.deadline)
}

func (w *wait) until() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deadline
}

// extend moves the deadline to that of a newer transmission.
func (w *wait) extend(deadline time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if deadline.After(w.deadline) {
		w.deadline = deadline
	}
}

// end closes the wait: what its worker finds from now on is for the gate only.
func (w *wait) end() {
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	w.cancel(errWaitOver)
}

// why is what to say at the deadline.
func (w *wait) why() refusal { return refusal(w.refusal.Load()) }

func (w *wait) setWhy(r refusal) { w.refusal.Store(uint32(r)) }

// serve does the work of one wait.
func (w *wait) serve() result {
	switch w.kind {
	case checkout:
		return w.checkout()
	case change:
		return w.change()
	}
	return w.pass()
}

// statusPatience: a kiosk that asks for the status wants to know soon whether
// there is a link.
const statusPatience = time.Second

// pass forwards a request and returns the answer.
func (w *wait) pass() result {
	ctx := w.ctx
	req := ils.Request{Frame: w.frame, Ready: w.ready, Replay: w.replays()}
	link := w.s.peer.link
	if w.kind == status && !link.Up() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, statusPatience)
		defer cancel()
	}
	a, err := link.Do(ctx, req)
	return w.passed(&a, err)
}

// replays is what a new link needs of the remembered login before this request:
// all but what the kiosk brings itself.
func (w *wait) replays() ils.Replay {
	switch w.kind {
	case login:
		return ils.ReplayNone
	case status:
		return ils.ReplayLogin
	}
	return ils.ReplayAll
}

// passed is what an exchange has come to.
func (w *wait) passed(a *ils.Answer, err error) result {
	if err != nil {
		return w.failed(err)
	}
	w.s.st.b.answered()
	w.s.learn(w, a)
	return result{frame: a.Frame}
}

// ready is asked right before the first byte is written.
func (w *wait) ready() error {
	if w.Patience() <= 0 {
		return ils.ErrNotWanted
	}
	w.atILS.Store(true)
	w.setWhy(unanswered)
	return nil
}

func (w *wait) failed(err error) result {
	why := unreachable
	if ils.Sent(err) {
		why = unanswered
	}
	return result{why: why}
}
