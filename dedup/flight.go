package dedup

import (
	"context"
	"fmt"
	"time"
)

// Waiter is somebody who waits for the answer of a flight.
type Waiter interface {
	// Patience is how long he still waits; 0 or less if he has gone.
	Patience() time.Duration
}

// Outcome is how a flight ended.
type Outcome uint8

const (
	// Released: the ILS has not carried it out, or nothing left.
	Released Outcome = iota + 1
	// Committed: the ILS has carried it out, and its answer is kept.
	Committed
	// InDoubt: the request left, and nobody knows.
	InDoubt
)

// Flight is a claim that this process is carrying out. The one who was told
// Claim ends it with exactly one of Complete, Release and Doubt; others only
// wait for it.
type Flight struct {
	it        *item
	rec       Record
	disturbed bool // a change of the object was forwarded while it flew
	concerned []seen
	doubts    []seen // old enough that an ok=1 is a proof about them too

	afterDoubt bool // a read said "not lent" right before
	origin     any  // the machine whose transmission it is
	unchecked  bool // records may be missing, and nobody could be asked
	done       chan struct{}

	waiters []Waiter // guarded by it.mu, as all above but done

	outcome Outcome // set before done is closed
	answer  []byte
}

// Key is the transaction's.
func (f *Flight) Key() Digest { return f.rec.Key }

// AfterDoubt reports whether it is the first of this subject and object since
// a read released a doubt: that what was in doubt then was carried out late
// may be why it is refused. It says so once; a flight that is released without
// having been asked leaves it to the next.
func (f *Flight) AfterDoubt() bool {
	it := f.enter()
	defer it.leave()
	after := f.afterDoubt
	f.afterDoubt = false
	return after
}

// Unchecked reports whether it was admitted although records may be missing
// and nobody could be asked.
func (f *Flight) Unchecked() bool { return f.unchecked }

// Held reports whether a change of the object that left before has turned out
// unanswered since the claim was made: its request must not be written now.
func (f *Flight) Held() bool {
	it := f.enter()
	defer it.leave()
	return it.g.clock.Now() < it.hold
}

// Done is closed when the flight has ended.
func (f *Flight) Done() <-chan struct{} { return f.done }

// Outcome tells how it ended, with the answer (Committed: the stored one;
// Released: what the ILS said, nil if nothing). Only after Done.
func (f *Flight) Outcome() (Outcome, []byte) { return f.outcome, f.answer }

// Record is the record as the flight left it.
func (f *Flight) Record() Record {
	f.it.mu.Lock()
	defer f.it.mu.Unlock()
	return f.rec
}

// join is called with the item locked.
func (f *Flight) join(w Waiter) {
	if w != nil {
		f.waiters = append(f.waiters, w)
	}
}

// Newest reports whether w is the newest transmission: only that one gets the
// answer.
func (f *Flight) Newest(w Waiter) bool {
	f.it.mu.Lock()
	defer f.it.mu.Unlock()
	return len(f.waiters) > 0 && f.waiters[len(f.waiters)-1] == w
}

// Patience is the longest that anybody still waits for this flight. A request
// for which nobody waits must not be written.
func (f *Flight) Patience() time.Duration {
	f.it.mu.Lock()
	waiters := f.waiters
	f.it.mu.Unlock()
	var longest time.Duration
	for _, w := range waiters {
		longest = max(longest, w.Patience())
	}
	return longest
}

// Complete keeps the answer of a request that the ILS has carried out, and
// ends what it put in question. A disturbed one is kept as to be verified.
func (f *Flight) Complete(ctx context.Context, answer []byte, d Durability) (Record, error) {
	it := f.enter()
	defer it.leave()
	rec := f.rec
	it.g.complete(&rec, answer, f.disturbed)
	now, err := it.g.store.Update(ctx, rec, d)
	if err != nil {
		f.finish(InDoubt, nil)
		return rec, fmt.Errorf("keep the answer of %s: %w", KeyString(rec.Key), err)
	}
	it.end(ctx, f.concerned, f.doubts)
	f.rec = now
	f.finish(Committed, answer)
	return now, nil
}

// Release gives the key back: the ILS said that it did not carry the request
// out (answer is what it said), or nothing ever left (answer nil).
func (f *Flight) Release(ctx context.Context, answer []byte) error {
	it := f.enter()
	defer it.leave()
	if f.afterDoubt {
		it.released[f.rec.Subject] = it.g.clock.Now()
	}
	err := it.g.store.Delete(ctx, f.rec.Key, f.rec.Token, Behind)
	f.finish(Released, answer)
	if err != nil {
		return fmt.Errorf("release %s: %w", KeyString(f.rec.Key), err)
	}
	return nil
}

// Doubt ends a flight whose request left and was not answered. Call it after
// the link has been aborted: settle counts from now. answer may carry what
// was delivered all the same.
func (f *Flight) Doubt(ctx context.Context, answer []byte) (Record, error) {
	it := f.enter()
	defer it.leave()
	rec := f.rec
	rec.State = Doubtful
	it.negative[rec.Token] = it.g.clock.Now() + it.g.opt.Settle
	// Lazy: what is on the disk is a claim, which a start-up doubts anyway.
	now, err := it.g.store.Update(ctx, rec, Lazy)
	if err == nil {
		f.rec = now
	}
	f.finish(InDoubt, answer)
	if err != nil {
		return rec, fmt.Errorf("keep the doubt of %s: %w", KeyString(rec.Key), err)
	}
	return now, nil
}

func (f *Flight) enter() *item { return f.it.g.item(f.rec.Object) }

func (f *Flight) finish(o Outcome, answer []byte) {
	f.outcome, f.answer = o, answer
	delete(f.it.flights, f.rec.Key)
	close(f.done)
	f.it.tell()
}

// complete turns a claim into a completed record.
func (g *Gate) complete(rec *Record, answer []byte, marked bool) {
	now := g.clock.Now()
	rec.State = Completed
	rec.Marked = marked
	rec.Delivered = false
	rec.CompletedAt, rec.TouchedAt = now, max(rec.TouchedAt, now)
	rec.Answer = g.ring.Load().newest().seal.Seal(rec.label("answer"), answer)
	rec.Request = nil // no longer needed: what remains is the answer
	rec.Expires = Lifetime(rec, g.opt.Window, g.opt.DoubtRetention)
}

// Delivered notes that a station was given the ok=1 answer of this record.
func (g *Gate) Delivered(ctx context.Context, r Record) {
	it := g.item(r.Object)
	defer it.leave()
	rec, ok := g.store.Get(r.Key)
	if !ok || rec.Token != r.Token || rec.State != Completed {
		return
	}
	rec.Delivered = true
	rec.TouchedAt = max(rec.TouchedAt, g.clock.Now())
	rec.Expires = Lifetime(&rec, g.opt.Window, g.opt.DoubtRetention)
	_, _ = g.store.Update(ctx, rec, Lazy) // stale cannot be: the item is locked
}
