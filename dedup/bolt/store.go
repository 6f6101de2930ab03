package bolt

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"syscall"
	"time"

	"sip2gate/dedup"
	"sip2gate/dedup/clock"
	"sip2gate/dedup/memory"
)

// Store is a dedup.Store on one bbolt file.
type Store struct {
	opt   Options
	index *memory.Index
	file  *file // the writer's alone
	gate  *clock.Gate
	held  *os.File

	kick  chan struct{} // write now
	lazy  chan struct{} // write within lazyDelay
	tasks chan task     // for the writer, between two transactions
	quit  chan struct{}
	ended chan struct{} // the writer is done, and closed the file
	err   error         // of closing; after ended

	change sync.Mutex // one change of health at a time, callback included
	mu     sync.Mutex
	health dedup.Health
	stuck  chan struct{} // closed while the disk does not answer
	began  time.Time     // when the writer went to the disk; zero while it has not
}

var _ dedup.Store = (*Store)(nil)

func newStore(o Options, x *memory.Index, f *file, gate *clock.Gate, held *os.File) *Store {
	return &Store{
		opt: o, index: x, file: f, gate: gate, held: held,
		kick:   make(chan struct{}, 1),
		lazy:   make(chan struct{}, 1),
		tasks:  make(chan task),
		quit:   make(chan struct{}),
		ended:  make(chan struct{}),
		health: dedup.Health{Durable: true, Since: time.Now()},
		stuck:  make(chan struct{}),
	}
}

// Clock is gate time, going on from where the file left it.
func (s *Store) Clock() clock.Clock { return s.gate }

// Insert implements dedup.Store. If the context ends while the record is on
// its way to the disk, the record stays; the caller has to delete it.
func (s *Store) Insert(ctx context.Context, r dedup.Record, now time.Duration) (*dedup.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	standing, c, err := s.index.Insert(r, now)
	if err != nil || standing != nil {
		return standing, err
	}
	return nil, s.settle(ctx, c, dedup.Synced)
}

// Update implements dedup.Store.
func (s *Store) Update(ctx context.Context, r dedup.Record, d dedup.Durability) (dedup.Record, error) {
	now, err := s.UpdateAll(ctx, []dedup.Record{r}, d)
	if len(now) == 0 {
		return dedup.Record{}, err
	}
	return now[0], err
}

// UpdateAll implements dedup.Store. If the context ends while a change is on
// its way to the disk, the change stands, and the records are returned as
// they now are along with the context's error.
func (s *Store) UpdateAll(ctx context.Context, rs []dedup.Record, d dedup.Durability) ([]dedup.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now, c, err := s.index.Update(rs...)
	if err != nil {
		return nil, err
	}
	return now, s.settle(ctx, c, d)
}

// Delete implements dedup.Store.
func (s *Store) Delete(ctx context.Context, key dedup.Digest, token dedup.Token, d dedup.Durability) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := s.index.Delete(key, token)
	if err != nil {
		return err
	}
	return s.settle(ctx, c, d)
}

// Get implements dedup.Store.
func (s *Store) Get(key dedup.Digest) (dedup.Record, bool) { return s.index.Get(key) }

// Object implements dedup.Store.
func (s *Store) Object(object dedup.Digest) []dedup.Record { return s.index.Object(object) }

// All implements dedup.Store.
func (s *Store) All() iter.Seq[dedup.Record] { return s.index.All() }

// Sweep implements dedup.Store. Each step is one transaction.
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
		if err := s.settle(ctx, swept.Commit, dedup.Synced); err != nil {
			return n, err
		}
	}
}

// Put implements dedup.Store.
func (s *Store) Put(ctx context.Context, name string, value []byte, d dedup.Durability) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, err := s.index.Put(name, value)
	if err != nil {
		return err
	}
	return s.settle(ctx, c, d)
}

// Value implements dedup.Store.
func (s *Store) Value(name string) ([]byte, bool) { return s.index.Value(name) }

// Adopt writes what has changed in a store that stood in for this one while
// it could not be opened: to be called before this one is used. now is the
// time by the clock that from was used with.
func (s *Store) Adopt(ctx context.Context, from *memory.Store, now time.Duration) error {
	b := from.Index().Drain()
	b.Shift(s.gate.Now() - now)
	return s.settle(ctx, s.index.Adopt(b), dedup.Synced)
}

// Health implements dedup.Store.
func (s *Store) Health() dedup.Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.health
}

// Close implements dedup.Store. If what is waiting cannot be written, the
// error says so, and the marker for the next start stays.
func (s *Store) Close() error {
	if !s.index.Close() {
		return dedup.ErrClosed
	}
	close(s.quit)
	<-s.ended
	return s.err
}

// settle sees to it that a change gets to the disk as fast as d asks. A disk
// that fails, or does not answer, is no error: Health tells.
func (s *Store) settle(ctx context.Context, c memory.Commit, d dedup.Durability) error {
	if c.Done() == nil {
		return nil // nothing was changed
	}
	if d == dedup.Lazy {
		poke(s.lazy)
		return nil
	}
	poke(s.kick)
	if d == dedup.Behind {
		return nil
	}
	s.mu.Lock()
	stuck := s.stuck
	s.mu.Unlock()
	select {
	case <-c.Done():
		return nil
	case <-stuck:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // one is waiting already
	}
}

// writeBehind is the one goroutine that writes to the file.
func (s *Store) writeBehind() {
	defer close(s.ended)
	mark := time.NewTicker(markEvery)
	defer mark.Stop()
	lazy := time.NewTimer(lazyDelay)
	lazy.Stop()
	retry := time.NewTimer(retryEvery)
	retry.Stop()
	armed := false
	for {
		always := false
		select {
		case <-s.kick:
		case <-s.lazy:
			if !armed {
				armed = true
				lazy.Reset(lazyDelay)
			}
			continue
		case <-lazy.C:
		case <-retry.C:
		case <-mark.C:
			always = s.index.Len() > 0
		case t := <-s.tasks:
			t.done <- t.run()
			if !s.Health().Durable {
				retry.Reset(retryEvery)
			}
			continue
		case <-s.quit:
			s.end()
			return
		}
		armed = false
		lazy.Stop()
		if err := s.write(always); err != nil {
			retry.Reset(retryEvery)
		} else {
			retry.Stop()
		}
	}
}

// write puts everything that has changed into one transaction. Nothing is
// written if nothing has changed, unless always is set, or the last attempt
// failed.
func (s *Store) write(always bool) error {
	b := s.index.Drain()
	if b.Empty() && !always && s.Health().Durable {
		b.Finish()
		return nil
	}
	s.atDisk(time.Now())
	err := s.file.write(b, s.gate.Mark())
	if err != nil {
		// Unknown, not undone: it stays in memory and is written again.
		s.index.Return(b)
	}
	s.finish(b.Commit, err)
	return err
}

// atDisk notes since when the writer has been at the disk.
func (s *Store) atDisk(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = since
}

// finish makes the outcome of a commit known, before its callers go on.
func (s *Store) finish(c memory.Commit, err error) {
	s.change.Lock()
	defer s.change.Unlock()
	s.mu.Lock()
	s.began = time.Time{}
	was := s.health
	select {
	case <-s.stuck:
		s.stuck = make(chan struct{}) // it has answered after all
	default:
	}
	s.mu.Unlock()
	switch {
	case err != nil:
		if !s.opt.memoryNoted() {
			s.opt.noteMemory(err)
		}
		s.turn(dedup.Health{Why: words(err)})
	case err == nil && !was.Durable:
		if err := s.opt.clearMemory(); err != nil {
			s.opt.Logger.Warn("marker_not_removed", "error", err.Error(),
				"hint", "the next start will take the disk for not written, and ask more often at the library system")
		}
		s.turn(dedup.Health{Durable: true})
	}
	c.Finish()
	if now := s.Health(); now.Durable != was.Durable {
		s.opt.OnHealth(now)
	}
}

// watch looks now and then whether the disk still answers. (A timer for each
// commit would cost a claim a tenth of its time.)
func (s *Store) watch() {
	again := time.NewTicker(s.opt.Patience / 4)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			s.stall()
		case <-s.ended:
			return
		}
	}
}

// stall lets the callers go of a commit that the disk does not answer.
func (s *Store) stall() {
	s.change.Lock()
	defer s.change.Unlock()
	s.mu.Lock()
	was := s.health
	if s.began.IsZero() || time.Since(s.began) < s.opt.Patience {
		s.mu.Unlock()
		return
	}
	s.began = time.Time{} // once is enough
	s.mu.Unlock()
	if was.Durable {
		why := fmt.Errorf("the disk has not answered for %v", s.opt.Patience)
		s.opt.noteMemoryElsewhere(why)
		s.turn(dedup.Health{Why: why.Error()})
	}
	s.mu.Lock()
	close(s.stuck)
	s.mu.Unlock()
	if was.Durable {
		s.opt.OnHealth(s.Health())
	}
}

// turn changes the health. Since is when it went from good to bad or back,
// whatever the reason has become.
func (s *Store) turn(h dedup.Health) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.Since = s.health.Since
	if h.Durable != s.health.Durable {
		h.Since = time.Now()
	}
	s.health = h
}

// words says for staff what is wrong with the disk.
func words(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "the disk is full"
	case errors.Is(err, syscall.EROFS):
		return "the disk has become read-only"
	}
	return "the disk cannot be written: " + err.Error()
}

// end writes what is left and closes everything.
func (s *Store) end() {
	var errs []error
	if err := s.write(true); err != nil {
		errs = append(errs, fmt.Errorf("writing what was left: %w", err))
	}
	if s.file.db != nil && s.file.broken == nil { // Close waits for a transaction that has faulted
		if err := s.file.db.Close(); err != nil {
			errs = append(errs, fmt.Errorf("closing the store: %w", err))
		}
	}
	s.err = errors.Join(append(errs, s.held.Close())...)
}
