package ils

import (
	"context"
	"errors"
	"sync"
	"time"

	"sip2gate/serialbridge/sip2"
)

// Request is one frame for the ILS.
type Request struct {
	Frame []byte
	// Ready is called when all is set and nothing has been written. If it
	// returns an error nothing is written. It may be nil.
	Ready func() error
	// Probe asks for a 99 first if the link has been silent for long.
	Probe bool
	// Replay says what of the remembered login a new connection needs first.
	Replay Replay
}

// Replay is how much of the remembered login is replayed on a new connection
// before a request: all of it, but for what the request itself is.
type Replay uint8

const (
	ReplayAll   Replay = iota
	ReplayLogin        // the request is a 99
	ReplayNone         // the request is a 93
)

// Answer is what came back.
type Answer struct {
	Frame []byte
	Msg   sip2.Message
	// Foreign: a 12 that names another item than the 11 did. It is passed
	// on, and proves nothing.
	Foreign bool
	// NotDone: a 98 in place of the answer that surely belongs to this
	// request: it was not carried out.
	NotDone bool
}

// Do sends one request when its turn has come and returns the answer. ctx
// bounds all that comes before the first byte is written; from then on the
// answer is waited for as long as the server's timeout says, whatever happens
// to ctx, since it is owed to the gate.
func (l *Link) Do(ctx context.Context, req Request) (Answer, error) {
	select {
	case <-l.turn:
	case <-ctx.Done():
		return Answer{}, &Error{Op: "wait for the link", Err: context.Cause(ctx)}
	}
	defer func() { l.turn <- struct{}{} }()
	return l.do(ctx, req)
}

func (l *Link) do(ctx context.Context, req Request) (Answer, error) {
	for {
		c, err := l.ensure(ctx, req.Replay)
		if err != nil {
			return Answer{}, err
		}
		c.brings(req.Replay)
		if req.Probe && time.Since(l.last) > coldAfter {
			if c, err = l.probe(ctx, c); err != nil {
				return Answer{}, err
			}
		}
		if req.Ready != nil {
			if err := req.Ready(); err != nil {
				return Answer{}, &Error{Op: "send to the ILS", Err: err}
			}
		}
		a, err := l.exchange(c, req.Frame, l.srv.cfg.Timeout)
		if !errors.Is(err, errHungUp) { // else it ended right then: connect again
			return a, err
		}
	}
}

// Try is Do for a request that the link can take at once: it is connected, and
// nobody has it. It writes the request, and done gets the outcome from another
// goroutine. If it returns false nothing has happened.
func (l *Link) Try(req Request, done func(Answer, error)) bool {
	select {
	case <-l.turn:
	default:
		return false
	}
	l.mu.Lock()
	c := l.conn
	l.mu.Unlock()
	if c == nil || !c.alive() || c.owes(req.Replay) || req.Probe && time.Since(l.last) > coldAfter ||
		req.Ready != nil && req.Ready() != nil ||
		!l.bring(c, req, func(a Answer, err error) {
			l.turn <- struct{}{}
			done(a, err)
		}) {
		l.turn <- struct{}{}
		return false
	}
	return true
}

func (l *Link) bring(c *conn, req Request, done func(Answer, error)) bool {
	c.brings(req.Replay)
	return l.begin(c, req.Frame, l.srv.cfg.Timeout, done)
}

// exchange writes one request on c and waits for its answer. On any failure
// the connection is aborted: a link with an unanswered request is never used
// again.
func (l *Link) exchange(c *conn, frame []byte, timeout time.Duration) (Answer, error) {
	type outcome struct {
		a   Answer
		err error
	}
	ended := make(chan outcome, 1)
	if !l.begin(c, frame, timeout, func(a Answer, err error) { ended <- outcome{a, err} }) {
		return Answer{}, &Error{Op: "send to the ILS", Err: errHungUp}
	}
	o := <-ended
	return o.a, o.err
}

// call is one request on a connection, from before its first byte is written
// until it has been answered or given up. Who begins it has the link's turn.
type call struct {
	l     *Link
	c     *conn
	timer *time.Timer
	done  func(Answer, error)

	writing sync.Mutex // held until the write has returned
	left    bool       // a byte may have gone out
}

// begin makes a call. done is called once, from the connection's reader; if
// begin returns false it never is, and nothing was written.
func (l *Link) begin(c *conn, frame []byte, timeout time.Duration, done func(Answer, error)) bool {
	k := &call{l: l, c: c, done: done}
	k.writing.Lock()
	out := l.num.next(frame)
	l.judge.begin(out, l.delim)
	if !c.take(k, timeout) {
		return false
	}
	var err error
	k.left, err = c.write(out, l.srv.cfg.Terminator, time.Now().Add(timeout))
	k.writing.Unlock()
	if err != nil {
		c.give(k, "send to the ILS", err)
	}
	return true
}

func (k *call) succeed(a Answer) {
	k.timer.Stop()
	k.l.last = time.Now()
	k.l.srv.learn(&a.Msg)
	if k.l.uses(k.c) { // an answer to a login proves nothing yet
		k.l.setUp()
	}
	k.done(a, nil)
}

func (k *call) fail(op string, err error) {
	k.timer.Stop()
	k.writing.Lock() // the connection is closed: the write ends
	left := k.left
	k.writing.Unlock()
	k.l.drop(k.c, err)
	k.done(Answer{}, &Error{Op: op, Sent: left, Err: err})
}
