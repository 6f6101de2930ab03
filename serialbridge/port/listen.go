package port

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"sip2gate/serialbridge/backoff"
)

// Listener accepts kiosks on one TCP port. Set the hooks before the first
// Accept; they are called by Accept and must not block.
type Listener struct {
	// OnRefused, if set, is told of each connection closed because its address
	// is not allowed.
	OnRefused func(from netip.AddrPort)
	// OnError, if set, is told of each failed accept that is tried again, such
	// as one for want of descriptors.
	OnError func(err error)

	inner acceptor
	allow []netip.Prefix
}

// acceptor is what Listener needs of a net.TCPListener.
type acceptor interface {
	net.Listener
	SetDeadline(t time.Time) error
}

// Listen opens addr, "host:port" or ":port". Connections from outside allow are
// refused; an empty allow admits all. An IPv4 prefix also stands for the same
// addresses written as IPv6 (::ffff:a.b.c.d), and the other way round. Closing
// the Listener leaves accepted connections open.
func Listen(addr string, allow []netip.Prefix) (*Listener, error) {
	plain := make([]netip.Prefix, 0, len(allow))
	for _, p := range allow {
		if !p.IsValid() {
			return nil, fmt.Errorf("listen %s: invalid network in allow", addr)
		}
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		plain = append(plain, p)
	}
	lc := net.ListenConfig{KeepAliveConfig: keepAlive, Control: limitSilence}
	l, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &Listener{inner: l.(*net.TCPListener), allow: plain}, nil
}

// Addr returns the address listened on, with the port chosen if none was given.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Close ends Accept with net.ErrClosed. Safe to call at any time.
func (l *Listener) Close() error { return l.inner.Close() }

// Accept returns the next connection from an allowed address, with keep-alive
// and TCP_NODELAY set. It fails only with ctx's error when ctx ends, or with
// net.ErrClosed after Close; any other error of the system passes (descriptors
// come free again) and is tried again after a pause. Only one Accept may run
// at a time.
func (l *Listener) Accept(ctx context.Context) (net.Conn, error) {
	if err := l.inner.SetDeadline(time.Time{}); err != nil {
		return nil, err // closed
	}
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		_ = l.inner.SetDeadline(time.Unix(1, 0)) // fails only once closed, which wakes Accept too
	})
	defer func() {
		if !stop() {
			<-woken // or it would disturb the next Accept
		}
	}()

	retry := backoff.Timer{Min: 20 * time.Millisecond, Max: time.Second}
	for {
		c, err := l.inner.Accept()
		switch {
		case err == nil:
			retry.Reset()
			if l.admit(c) {
				return c, nil
			}
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, net.ErrClosed):
			return nil, err
		default:
			if l.OnError != nil {
				l.OnError(err)
			}
			if err := retry.Wait(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// admit reports whether c comes from an allowed address; it closes it if not.
func (l *Listener) admit(c net.Conn) bool {
	if len(l.allow) == 0 {
		return true
	}
	peer := c.RemoteAddr().(*net.TCPAddr).AddrPort()
	addr := peer.Addr().Unmap().WithZone("")
	for _, p := range l.allow {
		if p.Contains(addr) {
			return true
		}
	}
	c.Close()
	if l.OnRefused != nil {
		l.OnRefused(netip.AddrPortFrom(addr, peer.Port()))
	}
	return false
}
