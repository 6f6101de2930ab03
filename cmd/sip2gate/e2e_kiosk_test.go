package main

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"sip2gate/serialbridge/pty"
	"sip2gate/serialbridge/sim"
	"sip2gate/serialbridge/sip2"
)

// testKiosk is a virtual kiosk whose every step is bounded.
type testKiosk struct {
	*sim.Kiosk
	t    *testing.T
	line sim.Line
	conn net.Conn // nil on a serial line
}

// connect is a kiosk with error detection on a TCP port of the gate.
func connect(t *testing.T, addr string) *testKiosk {
	t.Helper()
	return connectFrom(t, addr, "")
}

// connectFrom connects from another address of this machine.
func connectFrom(t *testing.T, addr, from string) *testKiosk {
	t.Helper()
	d := net.Dialer{Timeout: patience}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	conn, err := d.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &testKiosk{sim.NewKiosk(conn, sim.KioskOptions{ErrorDetection: true}), t, conn, conn}
}

// onLine is a kiosk with error detection on a serial line.
func onLine(t *testing.T, p *pty.Pair) *testKiosk {
	return &testKiosk{sim.NewKiosk(p.Master, sim.KioskOptions{ErrorDetection: true}), t, p.Master, nil}
}

// newPTY makes a pseudo-terminal for the length of the test, or skips it.
func newPTY(t *testing.T) *pty.Pair {
	t.Helper()
	p, err := pty.Open()
	if err != nil {
		t.Skipf("there are no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func (k *testKiosk) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(k.t.Context(), patience)
}

// send writes bytes as they are, in one write.
func (k *testKiosk) send(b []byte) {
	k.t.Helper()
	if _, err := k.line.Write(b); err != nil {
		k.t.Fatal(err)
	}
}

// read returns the next frame.
func (k *testKiosk) read() []byte {
	k.t.Helper()
	ctx, cancel := k.within()
	defer cancel()
	frame, err := k.Read(ctx)
	if err != nil {
		k.t.Fatal(err)
	}
	return frame
}

// ask sends a frame and returns the next one.
func (k *testKiosk) ask(frame []byte) []byte {
	k.t.Helper()
	k.send(append(bytes.Clone(frame), '\r'))
	return k.read()
}

// quiet proves that no answer is on its way: the next one is that to a 99.
func (k *testKiosk) quiet() {
	k.t.Helper()
	if got := k.ask(k.Frame([]byte("9900802.00"))); !bytes.HasPrefix(got, []byte("98")) {
		k.t.Fatalf("an answer that should not be: %q", got)
	}
}

// login logs in and wants it accepted.
func (k *testKiosk) login(user, password string) {
	k.t.Helper()
	ctx, cancel := k.within()
	defer cancel()
	a, err := k.Login(ctx, user, password, "MAIN")
	if err != nil || string(a.Fixed("ok")) != "1" {
		k.t.Fatalf("login: %q, %v", a.Raw, err)
	}
}

// borrow sends a checkout and returns the answer.
func (k *testKiosk) borrow(patron, item string, o sim.CheckoutOptions) sip2.Message {
	k.t.Helper()
	return answer(k.ask(k.CheckoutFrame(patron, item, o)))
}

func answer(frame []byte) sip2.Message { return sip2.ParseAnswer(frame, '|') }

// lent reports whether a 12 says ok=1.
func lent(m sip2.Message) bool {
	return m.Code == sip2.CodeCheckoutResponse && string(m.Fixed("ok")) == "1"
}

// refused reports whether a 12 says ok=0.
func refused(m sip2.Message) bool {
	return m.Code == sip2.CodeCheckoutResponse && string(m.Fixed("ok")) == "0"
}

func field(m sip2.Message, id string) string {
	v, _ := m.Field(id)
	return string(v)
}

// restamped is a frame with another AY, its AZ as right or wrong as before.
func restamped(frame []byte, seq byte) []byte {
	return sip2.AppendRestamped(nil, frame, sip2.ReadAnswerTrailer(frame), seq)
}

// sipTime is a time as it stands in a frame.
func sipTime(t time.Time) string { return t.Format("20060102    150405") }

// same wants two answers equal, byte for byte.
func same(t *testing.T, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("answer %q\n  want %q", got, want)
	}
}

// someDate is a transaction date; n seconds apart.
func someDate(n int) time.Time {
	return time.Date(2026, 11, 30, 10, 15, n, 0, time.UTC)
}

// lendsTwice sends a checkout and its repeat, which must make one loan and two
// equal answers, and returns the frame and the answer.
func (k *testKiosk) lendsTwice(ils *sim.ILS, item string, o sim.CheckoutOptions) (frame, first []byte) {
	k.t.Helper()
	frame = k.CheckoutFrame(reader1, item, o)
	first = k.ask(frame)
	if !lent(answer(first)) {
		k.t.Errorf("checkout of %s: %q", item, first)
	}
	same(k.t, k.ask(frame), first)
	wantCount(k.t, ils, item, oneLoan)
	return frame, first
}
