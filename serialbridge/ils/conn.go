package ils

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sip2gate/serialbridge/sip2"
)

// dialer tries all addresses of a name and keeps the connection honest: a
// dead peer is noticed by keep-alives, and after a kill the kernel does not go
// on sending for longer than the answer would have been waited for.
func dialer(userTimeout time.Duration) func(context.Context, string, string) (net.Conn, error) {
	d := &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
		Control: func(_, _ string, c syscall.RawConn) error {
			return setUserTimeout(c, userTimeout)
		},
	}
	return d.DialContext
}

// conn is one TCP (or TLS) connection to the ILS. Its reader goroutine judges
// what comes and ends each call, so that an answer changes hands no more often
// than it must; dead is closed when it has ended.
type conn struct {
	net  net.Conn
	raw  net.Conn // below TLS
	scan *sip2.Scanner

	// What the remembered login still owes: it was skipped for a request that
	// was to bring its own. With the link's turn.
	owesLogin, owesStatus bool

	crlf atomic.Bool   // the peer ends its frames in CR LF
	dead chan struct{} // the reader has ended

	mu    sync.Mutex
	call  *call  // the request that is outstanding
	ended bool   // the reader takes no more calls
	op    string // what failed, and why, if it was this side's doing
	why   error

	once sync.Once
}

// errUnasked ends a connection on which something came that nobody waits for.
var errUnasked = errors.New("the ILS sent something that nobody asked for")

func (s *Server) open(ctx context.Context) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	raw, err := s.cfg.DialContext(ctx, "tcp", s.cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("connect to the ILS at %s: %w", s.cfg.Address, err)
	}
	c := &conn{net: raw, raw: raw, scan: sip2.NewScanner(s.cfg.Terminator), dead: make(chan struct{})}
	if s.cfg.TLS != nil {
		t := tls.Client(raw, s.cfg.TLS)
		if err := t.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, fmt.Errorf("set up TLS with the ILS at %s: %w", s.cfg.Address, err)
		}
		c.net = t
	}
	go c.read() // ends when close or abort closes the connection; callers wait on dead
	return c, nil
}

// read serves the connection until it fails, and then ends the call that is
// outstanding.
func (c *conn) read() {
	err := c.frames()
	c.mu.Lock()
	k := c.call
	c.call, c.ended = nil, true
	op := "wait for the ILS's answer"
	if c.why != nil {
		op, err = c.op, c.why
	}
	c.mu.Unlock()
	if k == nil {
		c.close()
	} else {
		c.abort()
	}
	close(c.dead)
	if k != nil {
		k.fail(op, err)
	}
}

// frames takes in what the ILS sends. What comes while nothing is outstanding
// ends the connection: request and answer would be out of step from then on.
func (c *conn) frames() error {
	buf := make([]byte, 4096)
	for {
		n, err := c.net.Read(buf)
		c.scan.Write(buf[:n])
		c.crlf.Store(c.scan.CRLF())
		frame, ok := c.scan.Next()
		for ok {
			c.mu.Lock()
			k := c.call
			c.mu.Unlock()
			if k == nil {
				return errUnasked
			}
			a, verdict := k.l.judge.answer(bytes.Clone(frame), k.l.srv, k.l.delim, k.l.log)
			frame, ok = c.scan.Next()
			switch {
			case errors.Is(verdict, errNotOurs):
			case verdict != nil:
				c.give(k, "read the ILS's answer", verdict)
				return verdict
			default:
				c.answered(k, a, ok)
			}
		}
		if err != nil {
			return fmt.Errorf("read from the ILS: %w", err)
		}
	}
}

// answered ends a call well. If more has come behind the answer, the
// connection takes no other call.
func (c *conn) answered(k *call, a Answer, more bool) {
	c.mu.Lock()
	mine := c.call == k
	if mine {
		c.call = nil
		c.ended = c.ended || more
	}
	c.mu.Unlock()
	if mine { // else it was given up at this very moment
		k.succeed(a)
	}
}

// give gives a call up: the connection is aborted, and its reader ends the
// call. A call that has ended already is left alone.
func (c *conn) give(k *call, op string, err error) {
	c.mu.Lock()
	mine := c.call == k
	if mine && c.why == nil {
		c.op, c.why = op, err
	}
	c.mu.Unlock()
	if mine {
		c.abort()
	}
}

// take makes k the outstanding call, unless the connection has ended. From then
// on its time runs.
func (c *conn) take(k *call, timeout time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.call = k
	k.timer = time.AfterFunc(timeout, func() { c.give(k, "wait for the ILS's answer", ErrTimeout) })
	return true
}

// alive reports whether the connection can take a request.
func (c *conn) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.ended
}

// busy reports whether a request is outstanding.
func (c *conn) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.call != nil
}

// close ends a connection with nothing outstanding.
func (c *conn) close() { c.once.Do(func() { c.net.Close() }) }

// abort ends a connection with a request outstanding: the send buffer is
// dropped. After a plain close the kernel would go on sending, and the ILS
// could carry the request out long after we have given it up.
func (c *conn) abort() {
	c.once.Do(func() {
		if l, ok := c.raw.(interface{ SetLinger(int) error }); ok {
			_ = l.SetLinger(0) // a connection that is gone already has nothing to drop
		}
		c.raw.Close()
	})
}

// write sends one frame with the terminator that the peer uses itself, in one
// write, with a deadline. With an error, left reports whether a byte may have
// gone out: a socket that took none has none to send. What TLS takes and what
// it has sent are two things, so there it may always be so.
func (c *conn) write(frame []byte, t sip2.Terminator, deadline time.Time) (left bool, err error) {
	buf := make([]byte, 0, len(frame)+2)
	buf = append(buf, frame...)
	switch {
	case t == sip2.TerminatorLF:
		buf = append(buf, '\n')
	case t == sip2.TerminatorCRLF, t == sip2.TerminatorAuto && c.crlf.Load():
		buf = append(buf, '\r', '\n')
	default:
		buf = append(buf, '\r')
	}
	if err := c.net.SetWriteDeadline(deadline); err != nil {
		return false, fmt.Errorf("set the deadline of a write to the ILS: %w", err)
	}
	n, err := c.net.Write(buf)
	if err != nil {
		return n > 0 || c.net != c.raw, fmt.Errorf("write to the ILS: %w", err)
	}
	return true, nil
}
