package dedup_test

import (
	"testing"
	"time"

	"sip2gate/dedup"
)

// Traces that the model found (package model).

// 11 unanswered → a read is sampled "not charged" → the ILS carries the 11 out,
// late → another read, "charged", settles the doubt as lent → the first read's
// verdict, on the same token, ended the key → second 11.
func TestANegativeReadOlderThanTheLoanEndsNothing(t *testing.T) {
	ctx := t.Context()
	g, h := newGate(t)
	doubt, err := admit(t, g, dedup.Claim).Flight.Doubt(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.now += time.Second
	early := dedup.Reading{Result: dedup.Absent, Begun: h.now}
	h.now += time.Second
	did, lent, err := g.Settle(ctx, doubt, dedup.Reading{Result: dedup.Charged, Begun: h.now, Answer: []byte("12")})
	if did != dedup.SettledLent || err != nil {
		t.Fatalf("settled as %d, %v", did, err)
	}
	h.now += time.Second
	if did, _, err := g.Settle(ctx, doubt, early); did != dedup.Unchanged || err != nil {
		t.Errorf("the early read did %d, %v", did, err)
	}
	if _, ok := g.Store().Get(lent.Key); !ok {
		t.Error("the loan is forgotten")
	}
	admit(t, g, dedup.Verify)

	late := dedup.Reading{Result: dedup.Absent, Begun: h.now}
	if did, _, err := g.Settle(ctx, doubt, late); did != dedup.Ended || err != nil {
		t.Errorf("a read begun after the loan was known did %d, %v", did, err)
	}
}

// 12 ok=1, lost on the line → the machine's repeat is answered from memory →
// kill, and that this moved the window has not reached the disk → the patron
// comes back within a window of his answer → second 11.
func TestAKillDoesNotShortenTheWindow(t *testing.T) {
	for _, c := range []struct {
		restart, back time.Duration // since the delivery that the disk knows of
		want          dedup.Decision
	}{
		{60 * time.Second, 149 * time.Second, dedup.Verify}, // he was answered right before the kill
		{60 * time.Second, 150 * time.Second, dedup.Claim},
		{100 * time.Second, 179 * time.Second, dedup.Verify}, // at the last moment of the window at the latest
		{100 * time.Second, 180 * time.Second, dedup.Claim},
		{4 * time.Minute, 4 * time.Minute, dedup.Claim},
	} {
		ctx := t.Context()
		g, h := newGate(t)
		begun := h.now
		rec, err := admit(t, g, dedup.Claim).Flight.Complete(ctx, []byte("12"), dedup.Synced)
		if err != nil {
			t.Fatal(err)
		}
		g.Delivered(ctx, rec)
		h.now = begun + c.restart
		g, err = dedup.New(ctx, dedup.Options{Store: g.Store(), Clock: h, Secret: []byte("unit-test-secret-not-for-prod-32")})
		if err != nil {
			t.Fatal(err)
		}
		h.now = begun + c.back
		admit(t, g, c.want)
	}
}
