package dedup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Concern is why staff should look at a loan.
type Concern uint8

const (
	// Unconfirmed: the request left, and it is not known whether it was
	// carried out.
	Unconfirmed Concern = iota + 1
	// Unheard: it was carried out, and no station was told so.
	Unheard
	// StaffLent: staff have said that it was carried out. There is nothing
	// more to do, but it can still be taken back with Forget.
	StaffLent
)

// Case is a transaction that staff should look at.
type Case struct {
	Record  Record
	Concern Concern
	// ID names it to people: the first digits of its token, as many as tell
	// it from the other cases.
	ID string
	// Age is how long ago it was claimed, by gate time.
	Age time.Duration
	// Wait is how much longer nobody can say that it was not carried out: the
	// request may still be at work. 0 for what is not Unconfirmed.
	Wait time.Duration
}

// staffAge is how old a case is before staff hear of it: what is younger is
// being read or delivered.
const staffAge = 5 * time.Second

// idDigits is the least length of an ID.
const idDigits = 6

// Cases lists what staff should look at, the oldest first; StaffLent stands in
// it too.
func (g *Gate) Cases() []Case {
	var cases []Case
	now := g.clock.Now()
	for r := range g.store.All() {
		c := Case{Record: r, Age: now - r.ClaimedAt}
		switch {
		case r.Expired(now):
			continue
		case r.State == Doubtful && c.Age >= staffAge:
			c.Concern = Unconfirmed
			c.Wait = max(g.NegativeFrom(r)-now, 0)
		case r.State != Completed || r.Delivered || now-r.CompletedAt < staffAge && r.Answer != nil:
			continue
		case r.Answer == nil:
			c.Concern = StaffLent
		default:
			c.Concern = Unheard
		}
		cases = append(cases, c)
	}
	slices.SortStableFunc(cases, func(a, b Case) int { return int(min(max(b.Age-a.Age, -1), 1)) })
	for i := range cases {
		full := caseName(&cases[i].Record)
		n := idDigits
		for j := range cases {
			other := caseName(&cases[j].Record)
			for i != j && n < len(full) && strings.HasPrefix(other, full[:n]) {
				n++
			}
		}
		cases[i].ID = full[:n]
	}
	return cases
}

// caseName is the whole of what an ID is the beginning of. A record of which
// only the key could be read has no token.
func caseName(r *Record) string {
	if r.Token == (Token{}) {
		return r.Key.String()
	}
	return hex.EncodeToString(r.Token[:])
}

// Named returns the cases that a name given by staff can mean: those of an
// item with this number, or else those whose ID begins with it.
func (g *Gate) Named(name string) []Case {
	var items, ids []Case
	for _, c := range g.Cases() {
		switch {
		case c.Record.Label != "" && c.Record.Label == name:
			items = append(items, c)
		case len(name) >= idDigits && strings.HasPrefix(caseName(&c.Record), strings.ToLower(name)):
			ids = append(ids, c)
		}
	}
	if len(items) > 0 {
		return items
	}
	return ids
}

// TooEarlyError says that a request may still be carried out, and for how much
// longer.
type TooEarlyError struct{ Left time.Duration }

func (e *TooEarlyError) Error() string {
	return fmt.Sprintf("it may still be carried out for another %d seconds", Seconds(e.Left))
}

// Seconds rounds up: what is named to people must not be too short.
func Seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// ErrNotOpen: the record is in no state in which that can be said of it.
var ErrNotOpen = errors.New("there is nothing to be decided about it")

// Resolve ends a doubt by the word of staff who have looked at the ILS. seen is
// the record that they mean: with another token there it does nothing and
// returns ErrStale.
//
// Lent completes it without an answer, since none was given: its request is
// not sent again, and its repeats are answered only if a read shows the loan.
// Otherwise it is released; that is a *TooEarlyError while the ILS may still
// carry the request out. The change is on the disk on return.
func (g *Gate) Resolve(ctx context.Context, seen Record, lent bool) error {
	return g.decide(ctx, seen, func(it *item, rec Record) error {
		if rec.State != Doubtful {
			return ErrNotOpen
		}
		if !lent {
			return it.release(ctx, rec)
		}
		token := rec.Token
		now := g.clock.Now()
		rec.State = Completed
		rec.Marked = true // nothing but a read can answer a repeat
		rec.CompletedAt, rec.TouchedAt = now, max(rec.TouchedAt, now)
		rec.Request = nil
		rec.Expires = Lifetime(&rec, g.opt.Window, g.opt.DoubtRetention)
		if _, err := g.store.Update(ctx, rec, Synced); err != nil {
			return err
		}
		delete(it.negative, token)
		return nil
	})
}

// Forget ticks a case off: staff have seen to it. A doubt ends, under the same
// condition as with Resolve; anything else is kept for one window, as if its
// answer had been delivered. seen is as with Resolve.
func (g *Gate) Forget(ctx context.Context, seen Record) error {
	return g.decide(ctx, seen, func(it *item, rec Record) error {
		switch {
		case rec.State == Doubtful:
			return it.release(ctx, rec)
		case rec.State != Completed || rec.Delivered:
			return ErrNotOpen
		}
		rec.Delivered = true
		rec.Expires = Lifetime(&rec, g.opt.Window, g.opt.DoubtRetention)
		_, err := g.store.Update(ctx, rec, Synced)
		return err
	})
}

// decide carries out what staff say of a record, with its item locked, if it
// is still what they saw.
func (g *Gate) decide(ctx context.Context, seen Record, do func(*item, Record) error) error {
	it := g.item(seen.Object)
	defer it.leave()
	rec, ok := g.store.Get(seen.Key)
	if !ok || rec.Token != seen.Token {
		return ErrStale
	}
	if err := do(it, rec); err != nil {
		return err
	}
	it.tell()
	return nil
}

// release ends a doubt as not carried out. The item is locked.
func (it *item) release(ctx context.Context, rec Record) error {
	if left := it.negativeFrom(&rec) - it.g.clock.Now(); left > 0 {
		return &TooEarlyError{left}
	}
	if err := it.g.store.Delete(ctx, rec.Key, rec.Token, Synced); err != nil {
		return err
	}
	delete(it.negative, rec.Token)
	it.released[rec.Subject] = it.g.clock.Now()
	return nil
}

// Count is how many records there are of each kind.
type Count struct {
	Records     int // all that have not expired
	InFlight    int
	Unconfirmed int
	Completed   int
	Unheard     int // of the completed ones: no station was told
	Marked      int // of the completed ones: read before it is repeated
	Former      int // secrets before the current one that are still needed
}

// Count counts the records that have not expired.
func (g *Gate) Count() Count {
	n := Count{Former: g.FormerSecrets()}
	now := g.clock.Now()
	for r := range g.store.All() {
		if r.Expired(now) {
			continue
		}
		n.Records++
		switch r.State {
		case Claimed:
			n.InFlight++
		case Doubtful:
			n.Unconfirmed++
		case Completed:
			n.Completed++
			if !r.Delivered && r.Answer != nil {
				n.Unheard++
			}
			if r.Marked {
				n.Marked++
			}
		}
	}
	return n
}
