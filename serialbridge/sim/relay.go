package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Relay is a plain TCP byte pipe: what stands between kiosk and ILS when there
// is no gate. It changes, delays and remembers nothing.
type Relay struct {
	target string
	ln     net.Listener
	wg     sync.WaitGroup

	mu     sync.Mutex
	closed bool
	open   map[net.Conn]struct{}
}

// NewRelay opens the port of a relay to target; Serve then carries bytes.
func NewRelay(address, target string) (*Relay, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("relay to %s: %w", target, err)
	}
	return &Relay{target: target, ln: ln, open: map[net.Conn]struct{}{}}, nil
}

// Addr is the host:port that the relay listens on.
func (r *Relay) Addr() string { return r.ln.Addr().String() }

// Serve relays until ctx ends or Close is called, and returns nil then.
func (r *Relay) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { r.shut() })
	defer stop()
	for {
		near, err := r.ln.Accept()
		if err != nil {
			closeErr := r.Close()
			if errors.Is(err, net.ErrClosed) {
				return closeErr
			}
			return fmt.Errorf("relay: accept: %w", err)
		}
		if r.hold(near) {
			r.wg.Go(func() { r.carry(ctx, near) }) // Close waits for it
		}
	}
}

// Close ends the port and all connections and waits for them.
func (r *Relay) Close() error {
	err := r.shut()
	r.wg.Wait()
	return err
}

func (r *Relay) shut() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	for c := range r.open {
		c.Close()
	}
	return r.ln.Close()
}

// hold keeps a connection for Close to end; false if it is too late.
func (r *Relay) hold(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		c.Close()
		return false
	}
	r.open[c] = struct{}{}
	return true
}

func (r *Relay) drop(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, c)
	c.Close()
}

// carry copies both ways until both sides have ended; the end of one side is
// passed on, and an error ends both.
func (r *Relay) carry(ctx context.Context, near net.Conn) {
	defer r.drop(near)
	far, err := new(net.Dialer).DialContext(ctx, "tcp", r.target)
	if err != nil || !r.hold(far) {
		return
	}
	defer r.drop(far)
	var back sync.WaitGroup
	back.Go(func() { pipe(near, far) })
	pipe(far, near)
	back.Wait()
}

func pipe(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		from.Close()
		return
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
}
