package dedup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"sip2gate/dedup"
	"sip2gate/dedup/memory"
)

func testSecret(n int) []byte { return fmt.Appendf(nil, "secret number %d, of 32 bytes....", n) }

func rotate(t *testing.T, g *dedup.Gate, n int) {
	t.Helper()
	if err := g.Rotate(testSecret(n)); err != nil {
		t.Fatal(err)
	}
}

// Whatever state a transaction is in, it is in it after the secret has been
// replaced, once or twice.
func TestRotateKeepsWhatStands(t *testing.T) {
	ctx := context.Background()
	for _, times := range []int{1, 2} {
		t.Run(fmt.Sprint(times), func(t *testing.T) {
			turn := func(g *dedup.Gate) {
				for n := range times {
					rotate(t, g, n)
				}
			}
			t.Run("in flight", func(t *testing.T) {
				g, _ := newGate(t)
				f := admit(t, g, dedup.Claim).Flight
				turn(g)
				admit(t, g, dedup.Wait)
				if _, err := f.Complete(ctx, []byte("121"), dedup.Synced); err != nil {
					t.Fatal(err)
				}
				v := admit(t, g, dedup.Verify)
				if a, err := g.Answer(&v.Record); err != nil || string(a) != "121" {
					t.Errorf("the answer: %q, %v", a, err)
				}
			})
			t.Run("in doubt", func(t *testing.T) {
				g, h := newGate(t)
				if _, err := admit(t, g, dedup.Claim).Flight.Doubt(ctx, nil); err != nil {
					t.Fatal(err)
				}
				turn(g)
				v := admit(t, g, dedup.Settle)
				if b, err := g.Request(&v.Record); err != nil || string(b) != "11" {
					t.Errorf("the request: %q, %v", b, err)
				}
				h.now += time.Hour
				if did, _, err := g.Settle(ctx, v.Record, dedup.Reading{Result: dedup.Absent, Begun: h.now}); did != dedup.SettledNotLent || err != nil {
					t.Fatalf("settled as %d, %v", did, err)
				}
				if f := admit(t, g, dedup.Claim).Flight; !f.AfterDoubt() {
					t.Error("that a doubt of his was released is forgotten")
				}
			})
			t.Run("completed", func(t *testing.T) {
				g, _ := newGate(t)
				rec, err := admit(t, g, dedup.Claim).Flight.Complete(ctx, []byte("121"), dedup.Synced)
				if err != nil {
					t.Fatal(err)
				}
				g.Delivered(ctx, rec)
				turn(g)
				r := request("p", "b")
				r.Own = true
				v, err := g.Admit(ctx, r)
				if err != nil || v.Decision != dedup.Replay {
					t.Errorf("the machine's own repeat: decision %d, %v", v.Decision, err)
				}
				r = request("p", "b")
				r.Own, r.Compared = true, [][]byte{[]byte("Y"), nil}
				if v, err := g.Admit(ctx, r); err != nil || v.Decision != dedup.Verify {
					t.Errorf("another request: decision %d, %v", v.Decision, err)
				}
				c, err := g.BeginChange(ctx, []byte(" b "))
				if err != nil {
					t.Fatal(err)
				}
				c.End(ctx, dedup.Done)
				admit(t, g, dedup.Claim)
			})
			t.Run("another patron's", func(t *testing.T) {
				g, _ := newGate(t)
				if _, err := admit(t, g, dedup.Claim).Flight.Complete(ctx, []byte("121"), dedup.Synced); err != nil {
					t.Fatal(err)
				}
				turn(g)
				v, err := g.Admit(ctx, request("q", "b"))
				if err != nil || v.Decision != dedup.Claim {
					t.Fatalf("decision %d, %v", v.Decision, err)
				}
				for r := range g.Store().All() {
					if r.State == dedup.Completed && !r.Marked {
						t.Error("the other's loan is not marked")
					}
				}
				if _, err := v.Flight.Complete(ctx, []byte("121"), dedup.Synced); err != nil {
					t.Fatal(err)
				}
				admit(t, g, dedup.Claim) // q has it now, and p asks anew
			})
			t.Run("his own at another institution", func(t *testing.T) {
				g, _ := newGate(t)
				if _, err := admit(t, g, dedup.Claim).Flight.Complete(ctx, []byte("121"), dedup.Synced); err != nil {
					t.Fatal(err)
				}
				turn(g)
				r := request("p", "b")
				r.Scope = []byte("BRANCH")
				if v, err := g.Admit(ctx, r); err != nil || v.Decision != dedup.Claim {
					t.Fatalf("decision %d, %v", v.Decision, err)
				}
				for r := range g.Store().All() {
					if r.Marked {
						t.Error("his own loan was taken for another patron's")
					}
				}
			})
		})
	}
}

func request(who, item string) *dedup.Request {
	return &dedup.Request{
		Scope: []byte("MAIN"), Subject: []byte(who), Object: []byte(item),
		Compared: [][]byte{[]byte("N"), nil}, Payload: []byte("11"), Arrived: time.Hour, Waiter: patient{},
	}
}

// A restart finds what was claimed under each secret.
func TestFormerSecretsAtStart(t *testing.T) {
	store, h := memory.New("a test"), &hand{now: time.Hour}
	open := func(match bool, secrets ...int) *dedup.Gate {
		t.Helper()
		o := dedup.Options{Store: store, Clock: h, Match: match, Secret: testSecret(secrets[0])}
		for _, n := range secrets[1:] {
			o.Former = append(o.Former, testSecret(n))
		}
		g, err := dedup.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	admit(t, open(false, 1), dedup.Claim)
	for _, match := range []bool{false, true} { // the sequence mode may change with it
		admit(t, open(match, 3, 2, 1), dedup.Settle)
		admit(t, open(match, 1), dedup.Settle)
	}
	// The control: without the secret it is somebody else's.
	g := open(false, 3, 2)
	h.now += time.Hour
	admit(t, g, dedup.Claim)
}

// A secret goes when the last record under it, and under older ones, has gone;
// not before its file has.
func TestSecretsAreGivenUp(t *testing.T) {
	h := &hand{now: time.Hour}
	var gone [][]byte
	var fails error
	g, err := dedup.New(t.Context(), dedup.Options{
		Store: memory.New("a test"), Clock: h, Secret: testSecret(0),
		Retired: func(_ context.Context, s []byte) error {
			if fails == nil {
				gone = append(gone, bytes.Clone(s))
			}
			return fails
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	claim := func(item string) *dedup.Flight {
		t.Helper()
		v, err := g.Admit(t.Context(), request("p", item))
		if err != nil || v.Decision != dedup.Claim {
			t.Fatalf("decision %d, %v", v.Decision, err)
		}
		return v.Flight
	}
	release := func(f *dedup.Flight) {
		t.Helper()
		if err := f.Release(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	sweep := func(left int) {
		t.Helper()
		if _, err := g.Sweep(t.Context()); err != nil && !errors.Is(err, fails) {
			t.Fatal(err)
		}
		if n := g.FormerSecrets(); n != left {
			t.Errorf("%d secrets before the current one, want %d", n, left)
		}
	}
	a := claim("a")
	rotate(t, g, 1)
	b := claim("b")
	rotate(t, g, 2)
	if err := g.Rotate(testSecret(1)); err == nil {
		t.Error("a secret that is in use became new")
	}
	sweep(2)
	release(b) // but a's answer may come to be sealed under any later one
	sweep(2)
	sweep(2)
	release(a)
	sweep(2) // found idle
	fails = errors.New("the file is still there")
	sweep(2)
	fails = nil
	sweep(0)
	if len(gone) != 2 || !bytes.Equal(gone[0], testSecret(0)) || !bytes.Equal(gone[1], testSecret(1)) {
		t.Errorf("given up: %q", gone)
	}
	sweep(0)
}

// Copies of one checkout race while the secret is replaced again and again:
// one of them is claimed, all others find that.
func TestRotateRace(t *testing.T) {
	for round := range 20 {
		g, _ := newGate(t)
		var claims [8]int
		var wg sync.WaitGroup
		for i := range claims {
			wg.Go(func() {
				v, err := g.Admit(context.Background(), request("p", "b"))
				if err != nil {
					t.Error(err)
				}
				if v.Decision == dedup.Claim {
					claims[i] = 1
				}
			})
			wg.Go(func() {
				if err := g.Rotate(testSecret(100*round + i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		n := 0
		for _, c := range claims {
			n += c
		}
		if n != 1 {
			t.Fatalf("round %d: claimed %d times", round, n)
		}
	}
}
