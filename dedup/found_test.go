package dedup_test

import (
	"context"
	"testing"
	"time"

	"sip2gate/dedup"
)

// A read about a doubt that was begun before the ILS carried the request out
// (absent) comes in after another read has shown the loan.
func TestFoundStaleNegative(t *testing.T) {
	ctx := context.Background()
	g, h := newGate(t)
	f := admit(t, g, dedup.Claim).Flight
	seen, err := f.Doubt(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.now += 2 * time.Second
	slow := dedup.Reading{Result: dedup.Absent, Begun: h.now}
	h.now += time.Second
	fast := dedup.Reading{Result: dedup.Charged, Answer: []byte("12"), Begun: h.now}
	h.now += time.Second
	if did, _, err := g.Settle(ctx, seen, fast); did != dedup.SettledLent || err != nil {
		t.Fatal(did, err)
	}
	_, _, err = g.Settle(ctx, seen, slow)
	_, ok := g.Store().Get(f.Key())
	if !ok || err != nil {
		t.Errorf("the loan's record is gone: the next repeat is a second 11")
	}
	r := &dedup.Request{Scope: []byte("MAIN"), Subject: []byte("p"), Object: []byte("b"),
		Compared: [][]byte{[]byte("N"), nil}, Payload: []byte("11"), Arrived: g.Now(), Waiter: patient{}}
	v, _ := g.Admit(ctx, r)
	if v.Decision == dedup.Claim {
		t.Errorf("the waiting checkout is claimed: a second 11 goes out %v after the first", h.now-time.Hour)
	}
}

func TestFoundSweepBeforeJudged(t *testing.T) {
	ctx := context.Background()
	g, h := newGate(t)
	rec, err := admit(t, g, dedup.Claim).Flight.Complete(ctx, []byte("12"), dedup.Synced)
	if err != nil {
		t.Fatal(err)
	}
	g.Delivered(ctx, rec)
	h.now += 89 * time.Second
	arrived := h.now // queued behind a slow request
	h.now += 8 * time.Second
	if _, err := g.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	v, err := g.Admit(ctx, &dedup.Request{Scope: []byte("MAIN"), Subject: []byte("p"), Object: []byte("b"),
		Compared: [][]byte{[]byte("N"), nil}, Payload: []byte("11"), Arrived: arrived, Waiter: patient{}, Own: true})
	if v.Decision != dedup.Replay {
		t.Errorf("decision %d %v, want Replay: it arrived inside the window", v.Decision, err)
	}
}

func TestFoundAfterDoubtLost(t *testing.T) {
	ctx := context.Background()
	g, h := newGate(t)
	seen, err := admit(t, g, dedup.Claim).Flight.Doubt(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.now += time.Minute
	if did, _, _ := g.Settle(ctx, seen, dedup.Reading{Result: dedup.Absent, Begun: h.now}); did != dedup.SettledNotLent {
		t.Fatal(did)
	}
	f := admit(t, g, dedup.Claim).Flight
	if err := f.Release(ctx, nil); err != nil { // nothing left
		t.Fatal(err)
	}
	if f := admit(t, g, dedup.Claim).Flight; !f.AfterDoubt() {
		t.Error("the first 11 that is sent after a released doubt is not known as such")
	}
}

func TestFoundNegativeLeak(t *testing.T) {
	ctx := context.Background()
	g, h := newGate(t)
	seen, _ := admit(t, g, dedup.Claim).Flight.Doubt(ctx, nil)
	h.now += time.Minute
	g.Settle(ctx, seen, dedup.Reading{Result: dedup.Absent, Begun: h.now})
	if from := g.NegativeFrom(seen); from != 0 {
		t.Errorf("a settled doubt counts from %v", from)
	}
}

func TestFoundReadBeforeChangeThatIsOut(t *testing.T) {
	ctx := context.Background()
	g, h := newGate(t)
	rec, _ := admit(t, g, dedup.Claim).Flight.Complete(ctx, []byte("12"), dedup.Synced)
	g.Delivered(ctx, rec)
	h.now += 10 * time.Second
	r := &dedup.Request{Scope: []byte("MAIN"), Subject: []byte("p"), Object: []byte("b"),
		Compared: [][]byte{[]byte("N"), nil}, Payload: []byte("11"), Arrived: g.Now(), Waiter: patient{}}
	v, _ := g.Admit(ctx, r)
	if v.Decision != dedup.Verify {
		t.Fatal(v.Decision)
	}
	begun := h.now
	h.now += time.Second
	c, err := g.BeginChange(ctx, []byte("b")) // a 09 leaves after the read
	if err != nil {
		t.Fatal(err)
	}
	h.now += time.Second
	_, now, _ := g.Settle(ctx, v.Record, dedup.Reading{Result: dedup.Charged, Begun: begun})
	r.Read, r.Begun, r.Token = dedup.Charged, begun, now.Token
	v, _ = g.Admit(ctx, r)
	if v.Decision == dedup.Replay {
		t.Errorf("answered from memory (marked %v) while a checkin that left after the read is unanswered", v.Record.Marked)
	}
	c.End(ctx, dedup.Done)
}

// The sealed request of a doubt is erased after the retention; the key stays.
func TestOldDoubtKeepsItsKeyAlone(t *testing.T) {
	ctx := t.Context()
	g, h := newGate(t)
	rec, err := admit(t, g, dedup.Claim).Flight.Doubt(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.now += 336*time.Hour - time.Second
	if _, err := g.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	if r, _ := g.Store().Get(rec.Key); r.Request == nil {
		t.Error("erased before the retention was over")
	}
	h.now += time.Second
	if _, err := g.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	r, ok := g.Store().Get(rec.Key)
	if !ok || r.State != dedup.Doubtful || r.Request != nil {
		t.Errorf("after the retention: there %v, %s, request kept %v", ok, r.State, r.Request != nil)
	}
	admit(t, g, dedup.Settle)
}

// While an unanswered checkin may still be carried out, no read clears a mark.
func TestNoReadClearsAMarkDuringAHold(t *testing.T) {
	ctx := t.Context()
	g, h := newGate(t)
	rec, err := admit(t, g, dedup.Claim).Flight.Complete(ctx, []byte("12"), dedup.Synced)
	if err != nil {
		t.Fatal(err)
	}
	g.Delivered(ctx, rec)
	c, err := g.BeginChange(ctx, []byte("b"))
	if err != nil {
		t.Fatal(err)
	}
	c.End(ctx, dedup.Unanswered)
	for _, at := range []struct {
		after  time.Duration
		marked bool
	}{{10 * time.Second, true}, {25 * time.Second, false}} { // settle is 30 s
		h.now += at.after
		now, _ := g.Store().Get(rec.Key)
		if _, _, err := g.Settle(ctx, now, dedup.Reading{Result: dedup.Charged, Begun: h.now}); err != nil {
			t.Fatal(err)
		}
		if now, _ := g.Store().Get(rec.Key); now.Marked != at.marked {
			t.Errorf("marked %v at %v after the checkin", now.Marked, at.after)
		}
	}
}

// A checkin is out → 11, claimed → the checkin turns out unanswered before the
// 11 is written → it was written all the same.
func TestAClaimIsHeldByAChangeThatLeftBefore(t *testing.T) {
	ctx := t.Context()
	g, h := newGate(t)
	change, err := g.BeginChange(ctx, []byte("b"))
	if err != nil {
		t.Fatal(err)
	}
	f := admit(t, g, dedup.Claim).Flight
	if f.Held() {
		t.Error("held by a change that may still be answered")
	}
	change.End(ctx, dedup.Unanswered)
	if !f.Held() {
		t.Error("not held")
	}
	if err := f.Release(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if v := admit(t, g, dedup.Wait); !v.Held || v.Until != h.now+30*time.Second {
		t.Errorf("held %v, until %v", v.Held, v.Until)
	}
}
