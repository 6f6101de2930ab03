package port

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func prefixes(t *testing.T, all ...string) []netip.Prefix {
	t.Helper()
	var out []netip.Prefix
	for _, s := range all {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

// fake is an acceptor whose Accept gives the results in turn, then waits for
// a deadline in the past or for Close.
type fake struct {
	results []any // error or net.Addr
	ended   chan error
}

func (f *fake) Accept() (net.Conn, error) {
	if len(f.results) == 0 {
		return nil, <-f.ended
	}
	r := f.results[0]
	f.results = f.results[1:]
	if err, ok := r.(error); ok {
		return nil, err
	}
	near, _ := net.Pipe()
	return &from{near, r.(net.Addr), false}, nil
}

func (f *fake) Close() error   { f.ended <- net.ErrClosed; return nil }
func (f *fake) Addr() net.Addr { return nil }
func (f *fake) SetDeadline(t time.Time) error {
	if !t.IsZero() {
		f.ended <- &net.OpError{Op: "accept", Err: errors.New("i/o timeout")}
	}
	return nil
}

// from is a connection with an address of its own choice.
type from struct {
	net.Conn
	addr   net.Addr
	closed bool
}

func (c *from) RemoteAddr() net.Addr { return c.addr }
func (c *from) Close() error         { c.closed = true; return c.Conn.Close() }

func addr(s string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }

// A gate out of descriptors waits for some to come free: it neither spins nor
// gives up.
func TestAcceptErrorsAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{ended: make(chan error, 1)}
		for range 100 {
			f.results = append(f.results, &net.OpError{Op: "accept", Err: syscall.EMFILE})
		}
		f.results = append(f.results, addr("192.0.2.1:1000"))
		told := 0
		l := &Listener{inner: f, OnError: func(err error) {
			if !errors.Is(err, syscall.EMFILE) {
				t.Errorf("OnError(%v)", err)
			}
			told++
		}}
		start := time.Now()
		c, err := l.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if told != 100 {
			t.Errorf("told of %d errors, want 100", told)
		}
		if took := time.Since(start); took < 45*time.Second || took > 100*time.Second {
			t.Errorf("100 failures took %v: want about a second each", took)
		}

		f.results = []any{syscall.EMFILE, syscall.EMFILE, syscall.EMFILE, syscall.EMFILE, syscall.EMFILE, syscall.EMFILE}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := l.Accept(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Accept whose context ends in a pause = %v", err)
		}
	})
}

func TestAllow(t *testing.T) {
	for _, c := range []struct {
		allow []netip.Prefix
		from  string
		want  bool
	}{
		{nil, "203.0.113.9:1", true},
		{prefixes(t, "192.0.2.0/24"), "192.0.2.7:1", true},
		{prefixes(t, "192.0.2.0/24"), "192.0.3.7:1", false},
		{prefixes(t, "192.0.2.0/24"), "[::ffff:192.0.2.7]:1", true}, // as a dual-stack socket shows it
		{prefixes(t, "192.0.2.0/24"), "[::ffff:192.0.3.7]:1", false},
		{prefixes(t, "::ffff:192.0.2.0/120"), "192.0.2.7:1", true},
		{prefixes(t, "::ffff:192.0.2.0/120"), "192.0.3.7:1", false},
		{prefixes(t, "192.0.2.7/24"), "192.0.2.9:1", true}, // host bits set in the configuration
		{prefixes(t, "192.0.2.0/24", "2001:db8::/32"), "[2001:db8::1]:1", true},
		{prefixes(t, "fe80::/10"), "[fe80::1%eth0]:1", true},
		{prefixes(t, "0.0.0.0/0"), "[2001:db8::1]:1", false},
	} {
		l, err := Listen("127.0.0.1:0", c.allow)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		var refused []netip.AddrPort
		l.OnRefused = func(p netip.AddrPort) { refused = append(refused, p) }
		conn, _ := net.Pipe()
		peer := &from{conn, addr(c.from), false}
		if got := l.admit(peer); got != c.want || peer.closed == c.want || (len(refused) == 0) != c.want {
			t.Errorf("allow %v, from %s: admitted %v, closed %v, told %v; want %v",
				c.allow, c.from, got, peer.closed, refused, c.want)
		}
		for _, r := range refused {
			if r.Addr().Is4In6() || r.Port() != 1 {
				t.Errorf("refused address given as %v", r)
			}
		}
	}
	if _, err := Listen("127.0.0.1:0", []netip.Prefix{{}}); err == nil || !strings.Contains(err.Error(), "allow") {
		t.Errorf("Listen with an invalid network = %v", err)
	}
}

func TestAcceptEnds(t *testing.T) {
	l, err := Listen("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	accept := func(ctx context.Context) { // ends with the context or the listener; the test waits for it
		c, err := l.Accept(ctx)
		if err == nil {
			c.Close()
		}
		ended <- err
	}
	go accept(ctx)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Accept whose context ends = %v", err)
	}
	if _, err := l.Accept(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Accept under an ended context = %v", err)
	}

	// The next Accept is not disturbed by the last one's end.
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go accept(t.Context())
	if err := <-ended; err != nil {
		t.Errorf("Accept after an ended one = %v", err)
	}

	go accept(t.Context())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept on a closed listener = %v", err)
	}
	if _, err := l.Accept(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second Accept on a closed listener = %v", err)
	}
}
