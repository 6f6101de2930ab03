package ils

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sip2gate/serialbridge/backoff"
	"sip2gate/serialbridge/sip2"
)

// coldAfter is how long a link may be silent before a checkout needs a 99 in
// front: firewalls and idle timeouts drop silent connections unseen.
const coldAfter = 20 * time.Second

// probeTime bounds that 99: a link that does not answer it is replaced.
const probeTime = 3 * time.Second

// Error says how far an exchange got. Sent means that a byte of the request
// may have left: then nobody knows what the ILS makes of it.
type Error struct {
	Op   string
	Sent bool
	Err  error
}

// Error names what was attempted.
func (e *Error) Error() string { return e.Op + ": " + e.Err.Error() }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Sent reports whether err leaves open what became of the request.
func Sent(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Sent
}

// Causes of a failed exchange that callers tell apart.
var (
	ErrTimeout = errors.New("the ILS did not answer in time")
	ErrText    = errors.New("the ILS sent a line of text instead of a message")
	ErrDamaged = errors.New("the answer was damaged on the way")
	ErrLate    = errors.New("the answer belongs to an earlier request")
	ErrLogin   = errors.New("the ILS refused the login")
	errHungUp  = errors.New("the ILS has closed the connection")
	// ErrNotWanted ends an exchange whose Ready refused.
	ErrNotWanted = errors.New("nobody waits for the answer any more")
)

// Hooks are how a link tells its station what it sees. All may be nil; they
// are called from the goroutine that uses the link, or from the one that
// connects, and must not call the link.
type Hooks struct {
	// Login returns the frames that log a new connection in: a 93 and a 99,
	// either may be nil. They are replayed as they are but for AY.
	Login func() (login, status []byte)
	// Up and Down tell of changes of the link's state.
	Up   func()
	Down func(err error)
	// Status is given each 98 that the gate itself asked for.
	Status func(frame []byte)
}

// Link is one station's connection to the ILS. One request is outstanding at
// a time; others wait for their turn. It is safe for concurrent use.
type Link struct {
	srv   *Server
	delim byte
	hooks Hooks
	log   *slog.Logger
	turn  chan struct{} // holds one token: who takes it has the link

	// Detection: the station, or its remembered login, uses AY and AZ, so
	// the gate's own requests do too.
	detection atomic.Bool

	mu         sync.Mutex
	conn       *conn
	connecting chan struct{} // closed when the attempt under way has ended
	connErr    error         // how the last attempt ended
	retry      backoff.Timer // the pauses after attempts that failed
	notBefore  time.Time     // when the next attempt may begin
	state      state
	closed     bool

	num   numbering // of conn; with the turn
	judge judge     // of conn; with the turn
	last  time.Time // when the ILS was last heard on conn; with the turn
}

type state uint8

const (
	stateUnused state = iota
	stateUp
	stateDown
)

// NewLink makes a link that connects when it is first used.
func (s *Server) NewLink(delim byte, hooks Hooks, log *slog.Logger) *Link {
	if log == nil {
		log = s.log
	}
	l := &Link{srv: s, delim: delim, hooks: hooks, log: log, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l
}

// UseDetection makes the gate's own requests carry AY and AZ, or not.
func (l *Link) UseDetection(on bool) { l.detection.Store(on) }

// Up reports whether the link is connected and logged in.
func (l *Link) Up() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn != nil && l.conn.alive()
}

// Failed reports whether the link's last attempt to connect failed.
func (l *Link) Failed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == stateDown
}

// Swallowed tells the link that a frame of its station was answered without
// it: from now on it numbers on its own, since some ILSs demand the last
// number plus one (invenio-sip2).
func (l *Link) Swallowed() { l.num.own.Store(true) }

// probe makes sure that a silent connection still reaches the ILS; one that
// does not is replaced by a new one, which needs no probe.
func (l *Link) probe(ctx context.Context, c *conn) (*conn, error) {
	status := l.ownStatus()
	a, err := l.ask(c, status, min(probeTime, l.srv.cfg.Timeout))
	if err != nil {
		return l.ensure(ctx, ReplayAll)
	}
	l.tellStatus(a)
	return c, nil
}

// maxAsks is how often a request of the gate's own is sent when the ILS says
// that it did not get it whole.
const maxAsks = 3

// ask sends a request of the gate's own, again after a 96.
func (l *Link) ask(c *conn, frame []byte, timeout time.Duration) (Answer, error) {
	l.num.own.Store(true)
	for i := 1; ; i++ {
		a, err := l.exchange(c, frame, timeout)
		if err != nil || a.Msg.Code != sip2.CodeRequestSCResend || i == maxAsks {
			return a, err
		}
	}
}

func (l *Link) ownStatus() []byte {
	var status []byte
	if l.hooks.Login != nil {
		_, status = l.hooks.Login()
	}
	if status == nil {
		status = l.own([]byte("9900802.00"))
	}
	return status
}

func (l *Link) tellStatus(a Answer) {
	if l.hooks.Status != nil && a.Msg.Code == sip2.CodeACSStatus {
		l.hooks.Status(a.Frame)
	}
}

// own gives a frame of the gate's own its trailer, if the station uses one.
// The number is put right when it is sent.
func (l *Link) own(body []byte) []byte {
	if !l.detection.Load() {
		return body
	}
	return sip2.AppendTrailer(body, true, '0')
}

// drop forgets a connection that has failed.
func (l *Link) drop(c *conn, err error) {
	l.mu.Lock()
	if l.conn == c {
		l.conn = nil
	}
	l.mu.Unlock()
	l.setDown(err)
}

// pauseAfter makes the next attempt to connect wait a little.
func (l *Link) pauseAfter(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.connErr, l.notBefore = err, time.Now().Add(l.retry.Next())
}

// uses reports whether requests go over this connection: it is logged in.
func (l *Link) uses(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn == c
}

// A link is up when the ILS has answered on it, not when it has merely
// accepted the connection.
func (l *Link) setUp() {
	l.mu.Lock()
	was := l.state
	l.state = stateUp
	l.mu.Unlock()
	if was != stateUp && l.hooks.Up != nil {
		l.hooks.Up()
	}
}

func (l *Link) setDown(err error) {
	l.mu.Lock()
	was := l.state
	l.state = stateDown
	l.mu.Unlock()
	if was != stateDown && l.hooks.Down != nil {
		l.hooks.Down(err)
	}
}

// ensure returns a connection that is logged in. An attempt to connect goes
// on when ctx ends, for the next one who asks; there is one at a time, and a
// pause after one that failed. A login
// that the ILS refuses does not stand in the way of the station's own next 93.
func (l *Link) ensure(ctx context.Context, replay Replay) (*conn, error) {
	for {
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return nil, &Error{Op: "use the link", Err: errors.New("the link is closed")}
		}
		if c := l.conn; c != nil {
			if c.alive() {
				l.mu.Unlock()
				if !c.owes(replay) {
					return c, nil
				}
				if _, err := l.login(c, replay); err != nil {
					c.close()
					l.drop(c, err)
					l.pauseAfter(err)
					return nil, &Error{Op: "log in at the ILS", Err: err}
				}
				continue
			}
			l.conn = nil
			c.close()
		}
		attempt := l.connecting
		fresh := attempt == nil
		if pause := time.Until(l.notBefore); fresh && pause > 0 {
			err := l.connErr
			l.mu.Unlock()
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
				continue
			case <-ctx.Done():
				timer.Stop()
				return nil, &Error{Op: "connect to the ILS", Err: err}
			}
		}
		if fresh {
			attempt = make(chan struct{})
			l.connecting = attempt
			go l.connect(attempt, replay) // bounded by the server's timeout; Close waits for it
		}
		l.mu.Unlock()
		select {
		case <-attempt:
		case <-ctx.Done():
			return nil, &Error{Op: "connect to the ILS", Err: context.Cause(ctx)}
		}
		l.mu.Lock()
		err := l.connErr
		l.mu.Unlock()
		if err != nil && (fresh || replay != ReplayNone || !errors.Is(err, ErrLogin)) {
			return nil, &Error{Op: "connect to the ILS", Err: err}
		}
	}
}

// connect makes one attempt, logs in, and publishes the outcome.
func (l *Link) connect(done chan struct{}, replay Replay) {
	answered := false
	c, err := l.srv.open(context.Background())
	if err == nil {
		c.owesLogin, c.owesStatus = l.hooks.Login != nil, l.hooks.Login != nil
		l.num.reset()
		l.judge.reset()
		l.last = time.Now()
		if answered, err = l.login(c, replay); err != nil {
			c.abort()
			<-c.dead
		}
	}
	l.mu.Lock()
	l.connErr, l.connecting = err, nil
	if err != nil {
		l.notBefore = time.Now().Add(l.retry.Next())
	} else {
		l.retry.Reset()
	}
	switch {
	case err == nil && l.closed:
		c.close()
	case err == nil:
		l.conn = c
	}
	l.mu.Unlock()
	switch {
	case err != nil:
		l.setDown(err)
	case answered:
		l.setUp()
	}
	close(done)
}

// login replays what the station logged in with. 94 and 98 stay here.
func (l *Link) login(c *conn, replay Replay) (answered bool, err error) {
	if l.hooks.Login == nil || replay == ReplayNone {
		return false, nil
	}
	login, status := l.hooks.Login()
	if login != nil && c.owesLogin {
		a, err := l.ask(c, login, l.srv.cfg.Timeout)
		if err != nil {
			return false, fmt.Errorf("log in at the ILS: %w", err)
		}
		if string(a.Msg.Fixed("ok")) != "1" {
			return false, ErrLogin
		}
		answered = true
	}
	c.owesLogin = false
	if status != nil && c.owesStatus && replay == ReplayAll {
		a, err := l.ask(c, status, l.srv.cfg.Timeout)
		if err != nil {
			return false, fmt.Errorf("ask for the ILS's status: %w", err)
		}
		l.tellStatus(a)
		answered = true
	}
	c.owesStatus = c.owesStatus && replay != ReplayAll
	return answered, nil
}

// owes reports whether a request with this replay must not go out yet: another
// one, for which part of the login was left out, never went.
func (c *conn) owes(replay Replay) bool {
	return c.owesLogin && replay != ReplayNone || c.owesStatus && replay == ReplayAll
}

// brings notes that the request that goes out now is itself what was left out.
func (c *conn) brings(replay Replay) {
	switch replay {
	case ReplayNone:
		c.owesLogin, c.owesStatus = false, false
	case ReplayLogin:
		c.owesStatus = false
	}
}

// Close ends the link when what is outstanding has been answered, or ctx has
// ended.
func (l *Link) Close(ctx context.Context) {
	select {
	case <-l.turn:
		defer func() { l.turn <- struct{}{} }()
	case <-ctx.Done():
	}
	l.mu.Lock()
	l.closed = true
	c, attempt := l.conn, l.connecting
	l.conn = nil
	l.mu.Unlock()
	if c != nil {
		if c.busy() {
			c.abort()
		} else {
			c.close()
		}
		<-c.dead
	}
	if attempt != nil {
		select {
		case <-attempt:
		case <-ctx.Done():
		}
	}
}
