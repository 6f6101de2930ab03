package dedup_test

import (
	"context"
	"testing"
	"time"

	"sip2gate/dedup"
	"sip2gate/dedup/memory"
)

// hand is gate time that a test moves.
type hand struct{ now time.Duration }

func (h *hand) Now() time.Duration { return h.now }

type patient struct{}

func (patient) Patience() time.Duration { return time.Minute }

func newGate(t *testing.T) (*dedup.Gate, *hand) {
	t.Helper()
	h := &hand{now: time.Hour}
	g, err := dedup.New(t.Context(), dedup.Options{
		Store: memory.New("a test"), Clock: h, Secret: []byte("unit-test-secret-not-for-prod-32"),
		Settle: 30 * time.Second, ILSTimeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return g, h
}

// admit judges a transmission of the one checkout that these tests are about.
func admit(t *testing.T, g *dedup.Gate, want dedup.Decision) dedup.Verdict {
	t.Helper()
	v, err := g.Admit(t.Context(), &dedup.Request{
		Scope: []byte("MAIN"), Subject: []byte("p"), Object: []byte("b"),
		Compared: [][]byte{[]byte("N"), nil}, Payload: []byte("11"), Arrived: g.Now(), Waiter: patient{},
	})
	if err != nil || v.Decision != want {
		t.Fatalf("decision %d, %v; want %d", v.Decision, err, want)
	}
	return v
}

// V7: a read sampled "charged" → a 09 ends the key → new claim, in doubt → the
// old verdict settles it: ok=1. And: read "not charged" → staff resolve → new
// claim sent → the old verdict releases it → second 11. Whatever is done to a
// record names the token that it saw.
func TestV07VerdictOfAnotherClaim(t *testing.T) {
	ctx := context.Background()
	charged := dedup.Reading{Result: dedup.Charged, Answer: []byte("12")}
	absent := dedup.Reading{Result: dedup.Absent}
	for name, stale := range map[string]dedup.Reading{"charged": charged, "absent": absent} {
		for _, state := range []dedup.State{dedup.Claimed, dedup.Doubtful, dedup.Completed} {
			t.Run(name+" of an older claim, now "+state.String(), func(t *testing.T) {
				g, h := newGate(t)
				f := admit(t, g, dedup.Claim).Flight
				seen, err := f.Doubt(ctx, nil)
				if err != nil {
					t.Fatal(err)
				}
				stale.Begun = h.now + time.Minute
				h.now += 2 * time.Minute

				// Somebody else settles the doubt meanwhile, and a new claim is made.
				if did, _, err := g.Settle(ctx, seen, dedup.Reading{Result: dedup.Absent, Begun: h.now}); did != dedup.SettledNotLent || err != nil {
					t.Fatalf("settled as %d, %v", did, err)
				}
				f = admit(t, g, dedup.Claim).Flight
				switch state {
				case dedup.Doubtful:
					_, err = f.Doubt(ctx, nil)
				case dedup.Completed:
					_, err = f.Complete(ctx, []byte("12 new"), dedup.Synced)
				}
				if err != nil {
					t.Fatal(err)
				}
				stale.Begun = h.now + time.Hour // however late it was begun
				if did, _, err := g.Settle(ctx, seen, stale); did != dedup.Unchanged || err != nil {
					t.Errorf("the old verdict did %d, %v", did, err)
				}
				rec, ok := g.Store().Get(f.Key())
				if !ok || rec.State != state || rec.Token == seen.Token {
					t.Errorf("the new claim is %s, there: %v", rec.State, ok)
				}
			})
		}
	}
	// The same for a delivery, and for the end of a checkin that saw an older key.
	t.Run("delivery and checkin", func(t *testing.T) {
		g, _ := newGate(t)
		old, err := admit(t, g, dedup.Claim).Flight.Complete(ctx, []byte("12"), dedup.Synced)
		if err != nil {
			t.Fatal(err)
		}
		change, err := g.BeginChange(ctx, []byte("b"))
		if err != nil {
			t.Fatal(err)
		}
		if did, _, err := g.Settle(ctx, old, dedup.Reading{Result: dedup.Absent, Begun: g.Now()}); did != dedup.Ended || err != nil {
			t.Fatalf("ended as %d, %v", did, err)
		}
		now, err := admit(t, g, dedup.Claim).Flight.Complete(ctx, []byte("12 new"), dedup.Synced)
		if err != nil {
			t.Fatal(err)
		}
		g.Delivered(ctx, old)
		change.End(ctx, dedup.Done)
		rec, ok := g.Store().Get(now.Key)
		if !ok || rec.Token != now.Token || rec.Delivered || !rec.Marked {
			t.Errorf("there %v, delivered %v, marked %v", ok, rec.Delivered, rec.Marked)
		}
	})
}

// 5F and V11b as the gate alone sees them: a change ends what was completed
// before it left, and marks what is completed while it is out.
func TestChangeEndsWhatItSaw(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		before       bool // completed before the change left
		ending       dedup.Ending
		kept, marked bool
	}{
		"before, done":       {true, dedup.Done, false, false},
		"before, not done":   {true, dedup.NotDone, true, true},
		"before, unanswered": {true, dedup.Unanswered, true, true},
		"before, not sent":   {true, dedup.NotSent, true, true},
		"during, done":       {false, dedup.Done, true, true},
		"during, not done":   {false, dedup.NotDone, true, true},
		"during, unanswered": {false, dedup.Unanswered, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := newGate(t)
			f := admit(t, g, dedup.Claim).Flight
			complete := func() {
				if _, err := f.Complete(ctx, []byte("12"), dedup.Synced); err != nil {
					t.Fatal(err)
				}
			}
			if c.before {
				complete()
			}
			change, err := g.BeginChange(ctx, []byte(" b ")) // by the item alone
			if err != nil {
				t.Fatal(err)
			}
			if !c.before {
				complete()
			}
			change.End(ctx, c.ending)
			rec, ok := g.Store().Get(f.Key())
			if ok != c.kept || rec.Marked != c.marked {
				t.Errorf("kept %v, marked %v; want %v, %v", ok, rec.Marked, c.kept, c.marked)
			}
		})
	}
}
