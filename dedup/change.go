package dedup

import "context"

// Change is a checkin, or a cancel, of an object while it is forwarded.
type Change struct {
	it        *item
	concerned []seen
	doubts    []seen // old enough that an ok=1 is a proof about them too
}

// Ending is what became of a change.
type Ending uint8

const (
	// NotSent: provably nothing left.
	NotSent Ending = iota + 1
	// Done: the ILS has carried it out, and the object is on loan to nobody.
	Done
	// NotDone: the ILS said that it did not, or what it did is not known to
	// end loans.
	NotDone
	// Unanswered: it left, and nobody knows. For settle nothing of the
	// object is sent.
	Unanswered
)

// BeginChange is called before a change of the object is forwarded. The
// object's completed records are marked on the disk when it returns, and what
// is in flight will be completed as to be verified. End it.
func (g *Gate) BeginChange(ctx context.Context, object []byte) (*Change, error) {
	it := g.item(ObjectDigest(object))
	defer it.leave()
	records := g.store.Object(it.object)
	concerned, err := it.mark(ctx, records, nil)
	if err != nil {
		return nil, err
	}
	c := &Change{it: it, concerned: concerned, doubts: it.oldDoubts(records, nil)}
	for _, f := range it.flights {
		f.disturbed = true
	}
	it.changing++
	return c, nil
}

// End says what became of the change. Records completed before it left end
// with Done; so do doubts whose request left more than settle before it. All
// others keep their mark, and their next repeat is verified.
func (c *Change) End(ctx context.Context, e Ending) {
	it := c.it.g.item(c.it.object)
	defer it.leave()
	now := it.g.clock.Now()
	it.changing--
	switch e {
	case NotSent:
		it.tell()
		return
	case Done:
		it.end(ctx, c.concerned, c.doubts)
	case Unanswered:
		it.hold = max(it.hold, now+it.g.opt.Settle)
		now = it.hold
	}
	it.changed = max(it.changed, now)
	it.tell()
}
