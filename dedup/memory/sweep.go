package memory

import (
	"maps"
	"slices"
	"time"

	"sip2gate/dedup"
)

const (
	// step bounds how many records one step of a sweep deletes or moves
	// one by one.
	step = 64
	// manySlices is how many time slices there may be before those with
	// few records are merged: each costs a little in every write.
	manySlices = 12
)

// Swept is what one step of a sweep did.
type Swept struct {
	Removed int  // records that had expired
	More    bool // another step is due
	Commit       // the batch that holds the step
}

// Sweep takes one bounded step: it removes records that have expired at now.
// A time slice that has passed and of which at least half has expired is
// emptied altogether, so that a disk can drop it in one piece: what still
// lives in it is moved to the current slice first, then the rest goes at once.
func (x *Index) Sweep(now time.Duration) (Swept, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return Swept{}, dedup.ErrClosed
	}
	current := x.sliceAt(now)
	for _, n := range slices.Sorted(maps.Keys(x.slices)) {
		s := x.slices[n]
		due := s.soonest != 0 && now >= s.soonest
		crowded := n != current && len(x.slices) > manySlices && len(s.entries) <= step/4
		if !due && !crowded {
			continue
		}
		dead, live := s.split(now)
		switch {
		case n != current && len(live) > 0 && (len(live) <= len(dead) || crowded):
			k := min(len(live), step)
			return Swept{Commit: x.move(live[:k], current), More: true}, nil
		case len(dead) == 0:
			continue
		case len(live) > 0:
			dead = dead[:min(len(dead), step)]
		}
		for _, e := range dead {
			x.remove(e)
			x.touch(e.Record.Key)
		}
		return Swept{Removed: len(dead), Commit: x.commit, More: true}, nil
	}
	return Swept{}, nil
}

// split sorts the slice's records into expired and living ones, and learns
// when the next one expires.
func (s *slice) split(now time.Duration) (dead, live []*Entry) {
	s.soonest = 0
	for e := range s.entries {
		t := e.Record.Expires
		if t != 0 && (s.soonest == 0 || t < s.soonest) {
			s.soonest = t
		}
		if e.Record.Expired(now) {
			dead = append(dead, e)
		} else {
			live = append(live, e)
		}
	}
	slices.SortFunc(dead, bySeq)
	slices.SortFunc(live, bySeq)
	return dead, live
}

func (x *Index) move(entries []*Entry, to int64) Commit {
	for _, e := range entries {
		x.remove(e)
		moved := *e
		moved.Slice = to
		x.add(&moved)
		x.touch(e.Record.Key)
	}
	return x.commit
}
