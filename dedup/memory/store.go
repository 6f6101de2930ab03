package memory

import (
	"context"
	"iter"
	"time"

	"sip2gate/dedup"
)

// Store is an index with no disk behind it. What it holds ends with the
// process, and Health says so.
type Store struct {
	index *Index
	why   string
	since time.Time
}

var _ dedup.Store = (*Store)(nil)

// New is an empty store. why says, in words for staff, why records are kept
// in memory only.
func New(why string) *Store {
	return &Store{index: NewIndex(0), why: why, since: time.Now()}
}

// Index is what the store keeps its records in: for whoever fills it from, or
// writes it to, a disk that is well again.
func (s *Store) Index() *Index { return s.index }

// Insert implements dedup.Store.
func (s *Store) Insert(ctx context.Context, r dedup.Record, now time.Duration) (*dedup.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	standing, _, err := s.index.Insert(r, now)
	return standing, err
}

// Update implements dedup.Store.
func (s *Store) Update(ctx context.Context, r dedup.Record, d dedup.Durability) (dedup.Record, error) {
	rs, err := s.UpdateAll(ctx, []dedup.Record{r}, d)
	if err != nil {
		return dedup.Record{}, err
	}
	return rs[0], nil
}

// UpdateAll implements dedup.Store.
func (s *Store) UpdateAll(ctx context.Context, rs []dedup.Record, _ dedup.Durability) ([]dedup.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now, _, err := s.index.Update(rs...)
	return now, err
}

// Delete implements dedup.Store.
func (s *Store) Delete(ctx context.Context, key dedup.Digest, token dedup.Token, _ dedup.Durability) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := s.index.Delete(key, token)
	return err
}

// Get implements dedup.Store.
func (s *Store) Get(key dedup.Digest) (dedup.Record, bool) { return s.index.Get(key) }

// Object implements dedup.Store.
func (s *Store) Object(object dedup.Digest) []dedup.Record { return s.index.Object(object) }

// All implements dedup.Store.
func (s *Store) All() iter.Seq[dedup.Record] { return s.index.All() }

// Sweep implements dedup.Store.
func (s *Store) Sweep(ctx context.Context, now time.Duration) (int, error) {
	n := 0
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		swept, err := s.index.Sweep(now)
		n += swept.Removed
		if err != nil || !swept.More {
			return n, err
		}
	}
}

// Put implements dedup.Store.
func (s *Store) Put(ctx context.Context, name string, value []byte, _ dedup.Durability) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := s.index.Put(name, value)
	return err
}

// Value implements dedup.Store.
func (s *Store) Value(name string) ([]byte, bool) { return s.index.Value(name) }

// Health implements dedup.Store: a store in memory is never durable.
func (s *Store) Health() dedup.Health {
	return dedup.Health{Why: s.why, Since: s.since}
}

// Close implements dedup.Store.
func (s *Store) Close() error {
	if !s.index.Close() {
		return dedup.ErrClosed
	}
	return nil
}
