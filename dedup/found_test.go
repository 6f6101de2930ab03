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
