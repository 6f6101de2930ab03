package sim_test

import (
	"context"
	"net"
	"testing"
	"time"

	"sip2gate/serialbridge/sim"
	"sip2gate/serialbridge/sip2"
)

const (
	patron = "21234000000011"
	other  = "21234000000029"
	item   = "31234000000022"
)

// at is the time on every clock of these tests.
func at() time.Time { return time.Date(2026, 11, 30, 10, 15, 1, 0, time.UTC) }

// within bounds a test's waits; none of them comes near it.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// known is a branch with one reader and one book by name.
func known(p sim.Persona) sim.Options {
	return sim.Options{
		Persona: p,
		Clock:   at,
		Patrons: map[string]sim.Patron{patron: {Name: "Reader One"}},
		Items:   map[string]sim.Item{item: {Title: "The Long Rain"}},
	}
}

func start(t *testing.T, opts sim.Options) *sim.ILS {
	t.Helper()
	if opts.Clock == nil {
		opts.Clock = at
	}
	ils, err := sim.Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ils.Close(); err != nil {
			t.Error(err)
		}
	})
	return ils
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// kiosk connects a station with error detection, AY from 1.
func kiosk(t *testing.T, addr string) *sim.Kiosk {
	t.Helper()
	return sim.NewKiosk(dial(t, addr), sim.KioskOptions{ErrorDetection: true, Sequence: 1, Clock: at})
}

// checkout sends an 11 and returns the answer's first four bytes: 12, ok and
// renewal ok.
func checkout(t *testing.T, k *sim.Kiosk, patron, item string, o sim.CheckoutOptions) (head string, m sip2.Message) {
	t.Helper()
	m, err := k.Checkout(within(t), patron, item, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Raw) < 4 {
		t.Fatalf("answer %q is too short", m.Raw)
	}
	return string(m.Raw[:4]), m
}

// exchange sends raw bytes and returns the first answer.
func exchange(t *testing.T, k *sim.Kiosk, raw string) string {
	t.Helper()
	answer, err := k.Exchange(within(t), []byte(raw))
	if err != nil {
		t.Fatalf("after %q: %v", raw, err)
	}
	return string(answer)
}

// silent checks that the ILS has answered nothing so far, by asking for
// something else: the first answer must be to that.
func silent(t *testing.T, k *sim.Kiosk) {
	t.Helper()
	m, err := k.Status(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if m.Code != sip2.CodeACSStatus {
		t.Fatalf("got %q where silence was due", m.Raw)
	}
}

// ended reads the end of the connection.
func ended(t *testing.T, k *sim.Kiosk) error {
	t.Helper()
	frame, err := k.Read(within(t))
	if err == nil {
		t.Fatalf("got %q where the connection was to end", frame)
	}
	return err
}

func field(m sip2.Message, id string) string {
	v, _ := m.Field(id)
	return string(v)
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
