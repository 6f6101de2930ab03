package dedup

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Request is one transmission of a request that changes an object once.
type Request struct {
	Scope, Subject, Object, Sequence []byte

	Compared [][]byte // must be equal in a true repeat, in order
	Partial  bool     // only Compared[0] counts

	Payload []byte // kept sealed with the claim, to settle a doubt
	Station string
	Arrived time.Duration // gate time
	Own     bool          // the machine's own repeat
	Origin  any           // the machine, comparable: only its own flight is joined
	Waiter  Waiter        // who waits for the answer

	// Read is what a read begun at gate time Begun, after Arrived, showed of
	// the record with this Token, if any.
	Read  ReadResult
	Begun time.Duration
	Token Token

	// Upload: it was made while the machine was off line, and is read before
	// it is taken for new work. Mute: no reads are to be had at all.
	Upload, Mute bool
	// Blind is what a read begun at BlindBegun, after Arrived, showed of the
	// loan while there was no record, with the answer to give if Charged.
	Blind Reading

	forms   []form // under each secret, the newest first
	ring    *ring  // that the forms were made with
	touched Token  // of the record whose window this transmission has moved
}

// Verdict is what is to be done with a transmission.
type Verdict struct {
	Decision Decision
	Key      Digest

	// Flight is the claim to be carried out (Claim) or joined (Join).
	Flight *Flight
	// Record is what stands: to be replayed, verified, settled, refused.
	// For Settle it may be the record of another key of the same object.
	Record Record
	// Changed is closed when the item changes (Wait, AskStaff and Settle);
	// Until is a gate time at which to look again, 0 if there is none.
	Changed <-chan struct{}
	Until   time.Duration
	// Held: it waits for a checkin that nobody answered.
	Held bool
}

// Admit judges one transmission. On Claim the claim is on the disk, and the
// item's completed records that it concerns are marked there, when it returns.
// Wait, Verify and Settle ask for a step and another call with the same r.
//
// The end of ctx does not cut a step short: a claim that is on its way to the
// disk when its wait ends would be nobody's. The store bounds each step.
func (g *Gate) Admit(ctx context.Context, r *Request) (Verdict, error) {
	ctx = context.WithoutCancel(ctx)
	it := g.item(ObjectDigest(r.Object))
	defer it.leave()
	r.identify(g.ring.Load())

	v := Verdict{Key: r.forms[0].Key, Changed: it.news}
	standing, others := it.records(r)
	facts := Facts{
		Now: r.Arrived, Window: g.opt.Window, Own: r.Own,
		Held:    g.clock.Now() < it.hold,
		Amnesia: r.Arrived < g.amnesia.until, Upload: r.Upload, Mute: r.Mute,
		Proof: r.Blind.Begun >= g.amnesia.negative,
	}
	if r.Blind.Result != Charged || !it.disturbed(r.Blind.Begun+1) {
		facts.Blind = r.Blind.Result
	}
	if standing != nil {
		v.Record = *standing
		facts.Same = SameRequest(standing, r.formOf(standing).fingerprint, r.Partial)
		// What a read saw charged may be what a change has ended since.
		if r.Token == standing.Token && (r.Read != Charged || it.changed <= r.Begun) {
			facts.Read = r.Read
		}
	}
	if facts.Read == Charged && it.changing > 0 {
		facts.Held = true // the read may have been overtaken: wait for the change's end
	}
	if f := it.flightOf(standing); f != nil && f.origin != r.Origin {
		facts.Own = false // what flies is another machine's: it gets that answer
	}
	v.Decision = Judge(standing, facts)
	if standing != nil && facts.Same && standing.State == Completed && v.Decision != Claim {
		g.touch(ctx, r, standing)
	}
	switch v.Decision {
	case Join:
		v.Flight = it.flights[standing.Key]
		if v.Flight == nil { // claimed by somebody else than this run
			v.Decision = Settle
			break
		}
		v.Flight.join(r.Waiter)
	case Wait:
		if g.clock.Now() < it.hold {
			v.Until, v.Held = it.hold, true
		}
		if standing != nil && standing.State == Claimed && it.flights[standing.Key] == nil {
			v.Decision = Settle
		}
	case Settle:
		v.Until = it.negativeFrom(standing)
	case Look:
		if facts.Amnesia {
			v.Until = g.amnesia.negative
		}
	case Claim, Adopt:
		for i := range others {
			other := &others[i]
			if d := Obstacle(other, r.formOf(other).Subject, g.clock.Now(), it.negativeOf(other)); d != Claim {
				v.Decision, v.Record = d, *other
				if other.State == Doubtful {
					v.Until = it.negativeFrom(other)
				}
				return v, nil
			}
		}
		if v.Decision == Adopt {
			return v, it.adopt(ctx, r, &v)
		}
		flight, err := it.claim(ctx, r, others)
		if err != nil {
			return v, err
		}
		if flight == nil { // lost the insert: what stands is the verdict
			v.Decision = Wait
			v.Until = g.clock.Now() + retryAfter
			break
		}
		flight.unchecked = facts.Amnesia && facts.Mute
		v.Flight, v.Record = flight, flight.rec
	}
	return v, nil
}

// Touch moves the window of the completed record that a transmission repeats,
// where that cannot be judged yet, or never will be.
func (g *Gate) Touch(ctx context.Context, r *Request) {
	it := g.item(ObjectDigest(r.Object))
	defer it.leave()
	r.identify(g.ring.Load())
	standing, _ := it.records(r)
	if standing != nil && standing.State == Completed &&
		SameRequest(standing, r.formOf(standing).fingerprint, r.Partial) {
		g.touch(context.WithoutCancel(ctx), r, standing)
	}
}

// flightOf is the flight of a record that this run carries out; nil: none.
func (it *item) flightOf(r *Record) *Flight {
	if r == nil || r.State != Claimed {
		return nil
	}
	return it.flights[r.Key]
}

func (it *item) negativeOf(r *Record) time.Duration {
	if r.State != Doubtful {
		return 0
	}
	return it.negativeFrom(r)
}

// records finds the record that stands for this transmission, and the live
// records of the object that do not.
func (it *item) records(r *Request) (standing *Record, others []Record) {
	all := it.g.store.Object(it.object)
	for i := range all {
		rec := &all[i]
		if rec.Expired(r.Arrived) {
			continue
		}
		if rec.Key == r.forms[0].Key || standing == nil && r.is(rec) {
			if standing != nil {
				others = append(others, *standing)
			}
			standing = rec
			continue
		}
		others = append(others, *rec)
	}
	for i := 0; i < len(r.forms) && standing == nil; i++ {
		// A record whose object does not show (it was damaged) still has its key.
		if rec, ok := it.g.store.Get(r.forms[i].Key); ok && !rec.Expired(r.Arrived) {
			standing = &rec
		}
	}
	return standing, others
}

// touch moves the window of a completed record to this transmission.
func (g *Gate) touch(ctx context.Context, r *Request, rec *Record) {
	if rec.TouchedAt >= r.Arrived || r.touched == rec.Token {
		return
	}
	r.touched = rec.Token
	changed := *rec
	changed.TouchedAt = r.Arrived
	changed.Expires = Lifetime(&changed, g.opt.Window, g.opt.DoubtRetention)
	if now, err := g.store.Update(ctx, changed, Lazy); err == nil {
		*rec = now
	}
}

// newRecord is a claim that nobody has made yet.
func (g *Gate) newRecord(r *Request) Record {
	id := &r.forms[0]
	rec := Record{
		Key: id.Key, Pair: id.Pair, Object: id.Object, Subject: id.Subject,
		Under: r.ring.newest().name, Token: newToken(), State: Claimed,
		Compared: id.fingerprint, Partial: r.Partial, Target: g.opt.Target,
		Station: r.Station, Scope: string(r.Scope), Label: string(Trim(r.Object)),
		ClaimedAt: g.clock.Now(), TouchedAt: r.Arrived,
	}
	if g.opt.Wall != nil {
		rec.Since = g.opt.Wall()
	}
	return rec
}

// adopt keeps a loan that a read has shown and nobody here knew of. The item
// is locked.
func (it *item) adopt(ctx context.Context, r *Request, v *Verdict) error {
	g := it.g
	rec := g.newRecord(r)
	g.complete(&rec, r.Blind.Answer, it.disturbed(r.Blind.Begun))
	standing, err := g.store.Insert(ctx, rec, r.Arrived)
	if err != nil {
		return fmt.Errorf("keep the loan of %s that a read has shown: %w", KeyString(rec.Key), err)
	}
	if standing != nil { // lost the insert: what stands is the verdict
		v.Decision, v.Until = Wait, g.clock.Now()+retryAfter
		return nil
	}
	it.endOlder(ctx, rec.Subject, rec.Under, rec.ClaimedAt)
	if got, ok := g.store.Get(rec.Key); ok {
		rec = got
	}
	v.Record = rec
	return nil
}

// retryAfter is how long a lost insert waits before it is judged again: only
// another gate on the same store can have won it.
const retryAfter = 50 * time.Millisecond

// claim makes the durable claim. The item is locked.
func (it *item) claim(ctx context.Context, r *Request, others []Record) (*Flight, error) {
	g := it.g
	rec := g.newRecord(r)
	rec.Request = r.ring.newest().seal.Seal(rec.label("request"), r.Payload)

	standing, err := g.store.Insert(ctx, rec, r.Arrived)
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", KeyString(rec.Key), err)
	}
	if standing != nil {
		return nil, nil
	}
	f := &Flight{it: it, rec: rec, done: make(chan struct{}), disturbed: it.changing > 0}
	if got, ok := g.store.Get(rec.Key); ok {
		f.rec = got
	}
	f.concerned, err = it.mark(ctx, others, r)
	if err != nil {
		// The claim stands alone: nothing has left, so it can go again.
		_ = g.store.Delete(ctx, rec.Key, rec.Token, Behind)
		return nil, err
	}
	f.doubts = it.oldDoubts(others, r)
	f.afterDoubt = r.Blind.Result == Absent // since what was forgotten
	for _, form := range r.forms {
		_, released := it.released[form.Subject]
		f.afterDoubt = f.afterDoubt || released
		delete(it.released, form.Subject)
	}
	f.origin = r.Origin
	f.join(r.Waiter)
	it.flights[rec.Key] = f
	return f, nil
}

// seen is a record as it stood when a change was about to leave.
type seen struct {
	key   Digest
	token Token
}

// mark marks the completed records that a change concerns, durably, and
// returns them. Where there are none it writes nothing. by is the request that
// is the change, nil for a checkin. The item is locked.
func (it *item) mark(ctx context.Context, records []Record, by *Request) ([]seen, error) {
	for {
		var concerned []seen
		var marks []Record
		for i := range records {
			rec := &records[i]
			if !Concerned(rec, by.subject(rec)) {
				continue
			}
			concerned = append(concerned, seen{rec.Key, rec.Token})
			if !rec.Marked {
				rec.Marked = true
				marks = append(marks, *rec)
			}
		}
		if len(marks) == 0 {
			return concerned, nil
		}
		_, err := it.g.store.UpdateAll(ctx, marks, Synced)
		if err == nil {
			return concerned, nil
		}
		if !errors.Is(err, ErrStale) {
			return nil, fmt.Errorf("mark the item's completed checkouts: %w", err)
		}
		records = it.g.store.Object(it.object) // a sweep took one away meanwhile
	}
}

// oldDoubts are the doubts of the object, but for those of by's subject, whose
// request cannot be at work any more: if a change that leaves now is carried
// out, the object is not on loan by them. The item is locked.
func (it *item) oldDoubts(records []Record, by *Request) []seen {
	var out []seen
	now := it.g.clock.Now()
	for i := range records {
		r := &records[i]
		own := by != nil && r.Subject == *by.subject(r)
		if r.State == Doubtful && !own && it.negativeFrom(r) <= now {
			out = append(out, seen{r.Key, r.Token})
		}
	}
	return out
}

// end removes what a change has ended, completed records and old doubts, where
// it is still what the change saw. The item is locked.
func (it *item) end(ctx context.Context, concerned, doubts []seen) {
	for _, s := range concerned {
		it.endOne(ctx, s, Completed)
	}
	for _, s := range doubts {
		it.endOne(ctx, s, Doubtful)
	}
}

func (it *item) endOne(ctx context.Context, s seen, state State) {
	if rec, ok := it.g.store.Get(s.key); ok && rec.Token == s.token && rec.State == state {
		_ = it.g.store.Delete(ctx, s.key, s.token, Behind) // stale: somebody else ended it
		delete(it.negative, s.token)
	}
}
