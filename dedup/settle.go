package dedup

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Reading is the outcome of one read at the ILS about one transaction.
type Reading struct {
	Result ReadResult
	Begun  time.Duration // gate time at which the read was begun
	Answer []byte        // Charged: the answer to give for it
}

// Settled is what a reading did to a record.
type Settled uint8

const (
	// Unchanged: the reading proves nothing (yet), or the record has changed
	// since it was seen.
	Unchanged Settled = iota + 1
	// SettledLent: a doubt has been completed.
	SettledLent
	// SettledNotLent: a doubt has been released.
	SettledNotLent
	// Confirmed: a completed record stands.
	Confirmed
	// Ended: a completed record was proved to be over.
	Ended
)

// Settle applies a reading to the record that it was made for: the one with
// seen's key and token. With another token there it does nothing.
func (g *Gate) Settle(ctx context.Context, seenRec Record, rd Reading) (Settled, Record, error) {
	it := g.item(seenRec.Object)
	defer it.leave()
	rec, ok := g.store.Get(seenRec.Key)
	if !ok || rec.Token != seenRec.Token || rec.State == Claimed {
		return Unchanged, seenRec, nil
	}
	var did Settled
	var err error
	if rec.State == Doubtful {
		did, rec, err = it.settleDoubt(ctx, rec, rd)
	} else {
		did, rec, err = it.verify(ctx, rec, rd)
	}
	switch {
	case errors.Is(err, ErrStale):
		return Unchanged, rec, nil
	case err != nil:
		return Unchanged, rec, fmt.Errorf("settle %s: %w", KeyString(rec.Key), err)
	case did != Unchanged:
		it.tell()
	}
	return did, rec, nil
}

func (it *item) settleDoubt(ctx context.Context, rec Record, rd Reading) (Settled, Record, error) {
	switch SettleDoubt(rd.Result, rd.Begun, it.negativeFrom(&rec)) {
	case Charged:
		token, claimed := rec.Token, rec.ClaimedAt
		if rec.Object != it.object || len(rd.Answer) == 0 {
			return Unchanged, rec, nil
		}
		it.g.complete(&rec, rd.Answer, it.disturbed(rd.Begun))
		now, err := it.g.store.Update(ctx, rec, Behind)
		if err != nil {
			return Unchanged, rec, err
		}
		delete(it.negative, token)
		it.endOlder(ctx, rec.Subject, rec.Under, claimed)
		return SettledLent, now, nil
	case Absent:
		if err := it.g.store.Delete(ctx, rec.Key, rec.Token, Behind); err != nil {
			return Unchanged, rec, err
		}
		delete(it.negative, rec.Token)
		it.released[rec.Subject] = it.g.clock.Now()
		return SettledNotLent, rec, nil
	}
	return Unchanged, rec, nil
}

// endOlder ends other subjects' records completed before this loan was asked
// for: the read shows that the object has changed hands.
func (it *item) endOlder(ctx context.Context, subject Digest, under uint32, claimed time.Duration) {
	for _, other := range it.g.store.Object(it.object) {
		// Under another secret the same subject looks like another one.
		if other.Under == under && Concerned(&other, &subject) && other.CompletedAt <= claimed {
			_ = it.g.store.Delete(ctx, other.Key, other.Token, Behind)
		}
	}
}

func (it *item) verify(ctx context.Context, rec Record, rd Reading) (Settled, Record, error) {
	switch rd.Result {
	case Charged:
		changed := false
		if rec.Answer == nil && len(rd.Answer) > 0 { // until now it was staff's word
			rec.Answer = it.g.ring.Load().newest().seal.Seal(rec.label("answer"), rd.Answer)
			changed = true
		}
		// No read clears a mark while a change may still be at work.
		if rec.Marked && rec.Answer != nil && it.hold <= it.g.clock.Now() && !it.disturbed(rd.Begun) {
			rec.Marked = false
			changed = true
		}
		if changed {
			now, err := it.g.store.Update(ctx, rec, Lazy)
			return Confirmed, now, err
		}
		return Confirmed, rec, nil
	case Absent:
		// One begun before the loan was known may have looked before it was made.
		if rd.Begun < rec.CompletedAt {
			return Unchanged, rec, nil
		}
		err := it.g.store.Delete(ctx, rec.Key, rec.Token, Behind)
		return Ended, rec, err
	}
	return Unchanged, rec, nil
}

// NegativeFrom is the gate time from which a read that shows no loan settles
// this doubt; 0 if it is settled.
func (g *Gate) NegativeFrom(r Record) time.Duration {
	it := g.item(r.Object)
	defer it.leave()
	if now, ok := g.store.Get(r.Key); !ok || now.Token != r.Token || now.State != Doubtful {
		return 0
	}
	return it.negativeFrom(&r)
}
