package ils

import (
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

// conn is one TCP (or TLS) connection to the ILS. Its reader goroutine ends
// when the connection does; dead is closed then.
type conn struct {
	net  net.Conn
	raw  net.Conn // below TLS
	scan *sip2.Scanner

	frames  chan []byte   // whole frames, in order
	dead    chan struct{} // the reader has ended
	err     error         // why, set before dead is closed
	pending atomic.Bool   // a request is outstanding: what comes is its answer
	crlf    atomic.Bool   // the peer ends its frames in CR LF

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
	c := &conn{net: raw, raw: raw, scan: sip2.NewScanner(s.cfg.Terminator),
		frames: make(chan []byte, 4), dead: make(chan struct{})}
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

// read hands on whole frames. What comes while nothing is outstanding ends
// the connection: request and answer would be out of step from then on.
func (c *conn) read() {
	defer close(c.dead)
	defer c.close()
	buf := make([]byte, 4096)
	for {
		n, err := c.net.Read(buf)
		c.scan.Write(buf[:n])
		c.crlf.Store(c.scan.CRLF())
		for {
			frame, ok := c.scan.Next()
			if !ok {
				break
			}
			if !c.pending.Load() {
				c.err = errUnasked
				return
			}
			select {
			case c.frames <- append([]byte(nil), frame...):
			default: // a flood of answers to one request
				c.err = errUnasked
				return
			}
		}
		if err != nil {
			c.err = fmt.Errorf("read from the ILS: %w", err)
			return
		}
	}
}

// alive reports whether the connection can take a request.
func (c *conn) alive() bool {
	select {
	case <-c.dead:
		return false
	default:
		return len(c.frames) == 0
	}
}

// close ends a connection with nothing outstanding.
func (c *conn) close() { c.once.Do(func() { c.net.Close() }) }

// abort ends a connection with a request outstanding: the send buffer is
// dropped. After a plain close the kernel would go on sending, and the ILS
// could carry the request out long after we have given it up.
func (c *conn) abort() {
	if l, ok := c.raw.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0) // a connection that is gone already has nothing to drop
	}
	c.once.Do(func() { c.raw.Close() })
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
