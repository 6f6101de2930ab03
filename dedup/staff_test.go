package dedup_test

import (
	"errors"
	"testing"
	"time"

	"sip2gate/dedup"
)

// doubted is a gate with one doubt that is old enough for staff.
func doubted(t *testing.T) (*dedup.Gate, *hand, dedup.Case) {
	t.Helper()
	g, h := newGate(t)
	if _, err := admit(t, g, dedup.Claim).Flight.Doubt(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if cases := g.Cases(); len(cases) != 0 {
		t.Errorf("staff hear at once of %+v", cases)
	}
	h.now += 6 * time.Second
	cases := g.Cases()
	if len(cases) != 1 || cases[0].Concern != dedup.Unconfirmed || cases[0].Wait != 24*time.Second || cases[0].Age != 6*time.Second {
		t.Fatalf("cases: %+v", cases)
	}
	return g, h, cases[0]
}

func TestResolveNotLent(t *testing.T) {
	for name, decide := range map[string]func(*dedup.Gate, dedup.Record) error{
		"resolve": func(g *dedup.Gate, r dedup.Record) error { return g.Resolve(t.Context(), r, false) },
		"forget":  func(g *dedup.Gate, r dedup.Record) error { return g.Forget(t.Context(), r) },
	} {
		t.Run(name, func(t *testing.T) {
			g, h, c := doubted(t)
			waiting := admit(t, g, dedup.Settle)
			var early *dedup.TooEarlyError
			h.now += c.Wait - time.Nanosecond
			if err := decide(g, c.Record); !errors.As(err, &early) || dedup.Seconds(early.Left) != 1 {
				t.Errorf("a moment too early: %v", err)
			}
			admit(t, g, dedup.Settle)
			h.now++
			if err := decide(g, c.Record); err != nil {
				t.Fatal(err)
			}
			select {
			case <-waiting.Changed:
			default:
				t.Error("who waits is not told")
			}
			f := admit(t, g, dedup.Claim).Flight
			if !f.AfterDoubt() {
				t.Error("the first one after is not known to be that")
			}
			// The word was about the old claim.
			if err := decide(g, c.Record); !errors.Is(err, dedup.ErrStale) {
				t.Errorf("said again of the new claim: %v", err)
			}
			admit(t, g, dedup.Wait)
		})
	}
}

// After a start-up a request may be at work for [ils] timeout and settle.
func TestResolveAfterAStart(t *testing.T) {
	g, h := newGate(t)
	admit(t, g, dedup.Claim)
	next, err := dedup.New(t.Context(), dedup.Options{
		Store: g.Store(), Clock: h, Secret: []byte("unit-test-secret-not-for-prod-32"),
		Settle: 30 * time.Second, ILSTimeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.now += 6 * time.Second
	c := next.Cases()
	if len(c) != 1 || c[0].Wait != 34*time.Second {
		t.Fatalf("cases: %+v", c)
	}
	h.now += c[0].Wait
	if err := next.Resolve(t.Context(), c[0].Record, false); err != nil {
		t.Error(err)
	}
}

// Staff say that it was lent: it is never sent again, and nothing is answered
// that the ILS has not shown.
func TestResolveLent(t *testing.T) {
	g, h, c := doubted(t)
	if err := g.Resolve(t.Context(), c.Record, true); err != nil { // no need to wait for that
		t.Fatal(err)
	}
	if err := g.Resolve(t.Context(), c.Record, true); !errors.Is(err, dedup.ErrNotOpen) {
		t.Errorf("said twice: %v", err)
	}
	if cases := g.Cases(); len(cases) != 1 || cases[0].Concern != dedup.StaffLent || cases[0].ID != c.ID {
		t.Errorf("cases: %+v", cases)
	}
	h.now += 300 * time.Hour // the window is long over
	v := admit(t, g, dedup.Verify)
	if _, err := g.Answer(&v.Record); !errors.Is(err, dedup.ErrNoAnswer) {
		t.Errorf("an answer that nobody gave: %v", err)
	}
	judged := func(rd dedup.Reading) dedup.Verdict {
		t.Helper()
		r := &dedup.Request{
			Scope: []byte("MAIN"), Subject: []byte("p"), Object: []byte("b"), Own: true,
			Compared: [][]byte{[]byte("N"), nil}, Payload: []byte("11"), Arrived: g.Now(), Waiter: patient{},
		}
		if v, err := g.Admit(t.Context(), r); err != nil || v.Decision != dedup.Verify {
			t.Fatalf("decision %d, %v", v.Decision, err)
		}
		rd.Begun = g.Now()
		_, now, err := g.Settle(t.Context(), v.Record, rd)
		if err != nil {
			t.Fatal(err)
		}
		r.Read, r.Begun, r.Token = rd.Result, rd.Begun, now.Token
		v, err := g.Admit(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := judged(dedup.Reading{Result: dedup.Unreadable}); v.Decision != dedup.AskStaff {
		t.Errorf("unreadable: decision %d", v.Decision)
	}
	v = judged(dedup.Reading{Result: dedup.Charged, Answer: []byte("121")})
	if a, err := g.Answer(&v.Record); v.Decision != dedup.Replay || err != nil || string(a) != "121" {
		t.Errorf("charged: decision %d, %q, %v", v.Decision, a, err)
	}
}

// What was said by mistake can be taken back; a read can show it too.
func TestResolveLentTakenBack(t *testing.T) {
	for name, end := range map[string]func(*dedup.Gate, *hand, dedup.Record) error{
		"forget": func(g *dedup.Gate, h *hand, r dedup.Record) error {
			err := g.Forget(t.Context(), r)
			h.now += 91 * time.Second
			return err
		},
		"a read": func(g *dedup.Gate, h *hand, r dedup.Record) error {
			_, _, err := g.Settle(t.Context(), r, dedup.Reading{Result: dedup.Absent, Begun: h.now})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, h, c := doubted(t)
			if err := g.Resolve(t.Context(), c.Record, true); err != nil {
				t.Fatal(err)
			}
			if err := end(g, h, c.Record); err != nil {
				t.Fatal(err)
			}
			if cases := g.Cases(); len(cases) != 0 {
				t.Errorf("cases: %+v", cases)
			}
			admit(t, g, dedup.Claim)
		})
	}
}

// Ticked off is not forgotten inside the window.
func TestForgetUnheard(t *testing.T) {
	g, h := newGate(t)
	rec, err := admit(t, g, dedup.Claim).Flight.Complete(t.Context(), []byte("121"), dedup.Synced)
	if err != nil {
		t.Fatal(err)
	}
	h.now += 6 * time.Second
	c := g.Cases()
	if len(c) != 1 || c[0].Concern != dedup.Unheard || c[0].Wait != 0 {
		t.Fatalf("cases: %+v", c)
	}
	for _, lent := range []bool{true, false} {
		if err := g.Resolve(t.Context(), rec, lent); !errors.Is(err, dedup.ErrNotOpen) {
			t.Errorf("resolved as lent=%v: %v", lent, err)
		}
	}
	if err := g.Forget(t.Context(), c[0].Record); err != nil {
		t.Fatal(err)
	}
	if err := g.Forget(t.Context(), c[0].Record); !errors.Is(err, dedup.ErrNotOpen) {
		t.Errorf("ticked off twice: %v", err)
	}
	if c := g.Cases(); len(c) != 0 {
		t.Errorf("cases: %+v", c)
	}
	admit(t, g, dedup.Verify)
	h.now += 91 * time.Second
	admit(t, g, dedup.Claim)
}

// A name is a number of the list or of an item; two may fit.
func TestNamed(t *testing.T) {
	g, h := newGate(t)
	for _, who := range []string{"p", "q"} {
		for _, item := range []string{"31234", "31235"} {
			v, err := g.Admit(t.Context(), &dedup.Request{Scope: []byte("MAIN"), Subject: []byte(who), Object: []byte(item), Arrived: g.Now(), Waiter: patient{}})
			if err != nil || v.Flight == nil {
				t.Fatalf("decision %d, %v", v.Decision, err)
			}
			if _, err := v.Flight.Doubt(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		h.now += time.Minute
	}
	all := g.Cases()
	if len(all) != 4 {
		t.Fatalf("%d cases", len(all))
	}
	for i, c := range all {
		if got := g.Named(c.ID); len(got) != 1 || got[0].Record.Token != c.Record.Token {
			t.Errorf("case %d by its ID: %d found", i, len(got))
		}
		if i > 0 && c.Age > all[i-1].Age {
			t.Error("the oldest is not first")
		}
	}
	if got := g.Named("31234"); len(got) != 2 {
		t.Errorf("by item: %d found", len(got))
	}
	for _, name := range []string{"", all[0].ID[:5], "3123", "ffffffffff"} {
		if got := g.Named(name); len(got) != 0 {
			t.Errorf("%q: %d found", name, len(got))
		}
	}
}
