package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"sip2gate/dedup"
	"sip2gate/dedup/internal/atomicfile"
	"sip2gate/dedup/memory"
)

// task is work on the file that the writer does between two transactions.
type task struct {
	run  func() error
	done chan error
}

// do has the writer run something. When the context ends first, what the
// writer has begun is done all the same.
func (s *Store) do(ctx context.Context, run func() error) error {
	t := task{run, make(chan error, 1)}
	select {
	case s.tasks <- t:
	case <-s.ended:
		return dedup.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-t.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Compact writes the file anew, without the room that deleted records have
// left, and puts it in the place of the old one in one step. The store stays
// in use: a claim waits as long as the rewriting lasts, at most. After an
// error the old file stands and goes on being used.
func (s *Store) Compact(ctx context.Context) error {
	err := s.do(ctx, func() error { return s.rewrite(s.file.sealer) })
	if err != nil {
		return fmt.Errorf("compacting the store: %w", err)
	}
	return nil
}

// Rekey is Compact with everything sealed under another secret. Once it has
// returned nil, nothing in the file needs the secret before.
func (s *Store) Rekey(ctx context.Context, secret []byte) error {
	sealer, err := newSealer(secret)
	if err == nil {
		err = s.do(ctx, func() error { return s.rewrite(sealer) })
	}
	if err != nil {
		return fmt.Errorf("sealing the store under another secret: %w", err)
	}
	return nil
}

// rewrite puts a new file, sealed by to, in the place of the file. It is the
// writer's.
func (s *Store) rewrite(to *sealer) error {
	if err := s.write(true); err != nil {
		return err
	}
	s.atDisk(time.Now())
	err := s.replace(to)
	s.atDisk(time.Time{})
	if err != nil || !s.Health().Durable {
		// Whether the disk is well, an ordinary write finds out and tells.
		err = errors.Join(err, s.write(true))
	}
	return err
}

func (s *Store) replace(to *sealer) error {
	entries, values := s.index.Snapshot()
	f, err := s.opt.writeAside(to, memory.Batch{Records: entries, Values: values}, s.gate.Mark())
	if err != nil {
		return err
	}
	f.commit = s.file.commit
	f.reopen = func() (*bbolt.DB, error) {
		// Until the new name is on the disk, a power cut brings the old file
		// back: what is written to the new one would not be durable.
		if err := atomicfile.SyncDir(filepath.Dir(s.opt.Path)); err != nil {
			return nil, err
		}
		return bbolt.Open(s.opt.Path, 0o600, s.opt.bbolt())
	}
	if err := os.Rename(s.opt.Path+suffixNew, s.opt.Path); err != nil {
		return errors.Join(err, atomicfile.Remove(s.opt.Path+suffixNew))
	}
	old := s.file.db
	s.file = f
	// The old file has no name any more. Nothing is lost with it.
	closing := old.Close()
	db, err := f.reopen()
	if err != nil {
		return errors.Join(fmt.Errorf("opening the store that was rewritten: %w", err), closing)
	}
	f.db = db
	return closing
}

// Copy writes the file, as it stands now, to path, for an examination while
// the store is in use. What stands at path is replaced. The bytes come from the
// file as it is on the disk, not from memory. A claim waits as long as the
// copying lasts, at most.
func (s *Store) Copy(ctx context.Context, path string) error {
	err := s.do(ctx, func() error {
		if s.file.db == nil {
			return errors.New("the file is not open")
		}
		s.atDisk(time.Now())
		defer s.atDisk(time.Time{})
		// These two pages a copy has new.
		if n, err := validMetas(s.opt.Path); err != nil || n < 2 {
			return errors.Join(fmt.Errorf("%w: %d of its 2 meta pages are valid", ErrDamaged, n), err)
		}
		return s.file.db.View(func(tx *bbolt.Tx) error { return tx.CopyFile(path, 0o600) })
	})
	if err != nil {
		return fmt.Errorf("copying the store to %s: %w", path, err)
	}
	return nil
}

// Hold keeps gates and other commands away from the store at path until what
// it returns is closed. The error is ErrInUse if a gate has it.
func Hold(ctx context.Context, path string) (*os.File, error) {
	return lock(ctx, path, lockPatience)
}

// Verified is what Verify has found in a file.
type Verified struct {
	Records int  // that authenticate
	Damaged int  // that do not
	Missing bool // there should be others
}

// Verify reads a file, without changing it, and authenticates everything in it
// under the given secrets. Files that CheckFile has not passed can make the
// process die. The file must not be open elsewhere.
func Verify(path string, secrets ...[]byte) (Verified, error) {
	s, err := newSealer(secrets...)
	if err != nil {
		return Verified{}, err
	}
	found, err := salvage(path, s)
	if err != nil {
		return Verified{}, fmt.Errorf("reading %s: %w", path, err)
	}
	if found.sealed > 0 && found.opened == 0 {
		return Verified{}, fmt.Errorf("reading %s: %w: nothing in it opens under this secret", path, ErrDamaged)
	}
	v := Verified{
		Records: len(found.entries) - len(found.bare),
		Damaged: found.damaged,
		Missing: found.mark == nil || found.damaged == 0 && found.shortSum,
	}
	return v, nil
}
