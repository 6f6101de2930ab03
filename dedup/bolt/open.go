package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"sip2gate/dedup/clock"
	"sip2gate/dedup/internal/atomicfile"
	"sip2gate/dedup/memory"
)

// opening is one attempt to open a store.
type opening struct {
	Options
	sealer *sealer
	report Report
	causes []string // of amnesia
}

// Open opens the store at o.Path, or makes it. A store that is damaged, lost
// or sealed under another secret is set aside, what can be read of it is
// carried over into a new one, and the report says so: that is no error.
//
// Errors are ErrInUse, the context's, and whatever makes it impossible to
// keep a store there at all, such as a file system that is read-only. After
// such an error the caller goes on with Fallback.
func Open(ctx context.Context, o Options) (*Store, Report, error) {
	op := &opening{Options: o.filled()}
	s, err := op.open(ctx)
	if err != nil {
		if !errors.Is(err, ErrInUse) && ctx.Err() == nil {
			op.noteMemory(err)
		}
		return nil, op.report, fmt.Errorf("opening the store %s: %w", o.Path, err)
	}
	return s, op.report, nil
}

func (op *opening) open(ctx context.Context) (s *Store, err error) {
	if op.sealer, err = op.Options.sealer(); err != nil {
		return nil, err
	}
	held, err := lock(ctx, op.Path, lockPatience)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, held.Close())
		}
	}()
	if op.memoryNoted() {
		op.forgot("the last run kept its records in memory only")
	}
	op.report.Unclean = present(op.Path + suffixOpening)
	had := present(op.Path + suffixExists)
	if err := writeMarker(op.Path+suffixOpening, "the store is being opened"); err != nil {
		return nil, fmt.Errorf("marking the opening: %w", err)
	}
	old, err := op.examine(ctx, had)
	if err != nil {
		return nil, err
	}
	f, found, err := op.load(old)
	if err != nil {
		return nil, err
	}
	s, err = op.start(f, found, held)
	if err != nil {
		return nil, errors.Join(err, f.db.Close())
	}
	return s, nil
}

// forgot notes a reason why records may be missing.
func (op *opening) forgot(why string) {
	op.causes = append(op.causes, why)
	op.report.Amnesia = strings.Join(op.causes, "; ")
}

// aside gives the file up. What it still shows is returned.
func (op *opening) aside(why string) (contents, error) {
	op.forgot(why)
	path, err := setAside(op.Path)
	if err != nil {
		return contents{}, err
	}
	op.report.SetAside = path
	op.Logger.Warn("store_damaged", "file", path, "why", why, "hint", "it was set aside under this name: keep it for whoever helps")
	found, err := salvage(path, op.sealer)
	if err != nil {
		warnPartly(op.Logger, path, err)
	}
	if found.opened == 0 {
		// Nothing opens under this secret, and keys made with another one
		// are of no use either.
		return contents{}, nil
	}
	op.report.Damaged += found.damaged
	return found, nil
}

// examine looks at what stands at the path before bbolt does, since bbolt
// takes an empty file for a new one and dies of others. It returns what was
// carried over from a file that it had to set aside.
func (op *opening) examine(ctx context.Context, had bool) (old contents, err error) {
	fi, err := os.Lstat(op.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if had {
			op.forgot("the store's file has vanished")
		}
		op.report.Created = !had
		return old, nil
	case err != nil:
		return old, err
	case fi.Mode()&fs.ModeSymlink != 0:
		if fi, err = os.Stat(op.Path); err != nil {
			return op.aside("the store is a link to nowhere")
		}
	}
	if !fi.Mode().IsRegular() {
		return op.aside("there was something else in the store's place")
	}
	if fi.Size() == 0 {
		return op.aside("the store's file was empty")
	}
	// What cannot be opened at all is not damaged: permissions, a file
	// system that is read-only.
	f, err := os.OpenFile(op.Path, os.O_RDWR, 0)
	if err != nil {
		return old, err
	}
	if err := f.Close(); err != nil {
		return old, err
	}
	n, err := validMetas(op.Path)
	if err != nil {
		return old, err
	}
	switch n {
	case 0:
		return op.aside("the store's file was damaged: no valid meta page")
	case 1:
		op.forgot("the store's last changes may be lost: one valid meta page only")
	}
	if op.report.Unclean && op.Check != nil {
		err := op.Check(ctx, op.Path)
		if ctx.Err() != nil {
			return old, ctx.Err()
		}
		if err != nil {
			return op.aside("the store's file was damaged: " + err.Error())
		}
	}
	return old, nil
}

// load opens the file and reads it, after making one if there is none.
func (op *opening) load(old contents) (*file, contents, error) {
	for attempt := 0; ; attempt++ {
		if !present(op.Path) {
			if err := op.create(old); err != nil {
				return nil, contents{}, fmt.Errorf("making a new store: %w", err)
			}
		}
		db, found, err := openAndRead(op.Path, op.sealer, op.bbolt())
		if err == nil && found.sealed > 0 && found.opened == 0 {
			err = fmt.Errorf("%w: nothing in it opens under this secret", ErrDamaged)
			if cerr := db.Close(); cerr != nil {
				return nil, contents{}, cerr
			}
		}
		switch {
		case err == nil:
			op.judge(&found)
			f := newFile(db, op.sealer)
			return f, found, nil
		case errors.Is(err, berrors.ErrTimeout):
			return nil, contents{}, fmt.Errorf("%w: %s", ErrInUse, op.Path)
		case unwilling(err) || attempt > 0:
			return nil, contents{}, err
		}
		if old, err = op.aside(err.Error()); err != nil {
			return nil, contents{}, err
		}
	}
}

// judge reports what is missing from a file that could be read.
func (op *opening) judge(found *contents) {
	op.report.Damaged += found.damaged
	if found.lost > 0 {
		op.forgot(fmt.Sprintf("%d records are damaged beyond their keys", found.lost))
	}
	switch {
	case found.mark == nil:
		op.forgot("the store's mark is damaged")
	case found.damaged == 0 && found.shortSum:
		op.forgot("records are missing from the store")
	}
}

// unwilling tells an operating system that does not let us from a file that
// is damaged.
func unwilling(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno)
}

// sameErrno: the operating system gives the same reason for both.
func sameErrno(a, b error) bool {
	x, ok1 := errors.AsType[syscall.Errno](a)
	y, ok2 := errors.AsType[syscall.Errno](b)
	return ok1 && ok2 && x == y
}

func (o *Options) bbolt() *bbolt.Options {
	return &bbolt.Options{
		Timeout:        lockPatience,
		PageSize:       o.pageSize,              // never the kernel's, which differs between boards
		NoFreelistSync: true,                    // a damaged free list would overwrite records in silence
		FreelistType:   bbolt.FreelistArrayType, // a tenth faster per claim than the map at this size
	}
}

// openAndRead opens a file and reads all of it. On an error nothing is left
// open but, after a fault, the mapping.
func openAndRead(path string, s *sealer, o *bbolt.Options) (db *bbolt.DB, found contents, err error) {
	var opened *os.File
	o.OpenFile = func(name string, flag int, perm os.FileMode) (*os.File, error) {
		f, err := os.OpenFile(name, flag, perm)
		opened = f
		return f, err
	}
	err = guard(func() error {
		var err error
		if db, err = bbolt.Open(path, 0o600, o); err != nil {
			return err
		}
		return found.read(db, s)
	})
	if err != nil && opened != nil {
		// Not db.Close, which waits for a transaction that has faulted. A
		// file that bbolt has closed already is no trouble.
		_ = opened.Close()
	}
	return db, found, err
}

// salvage reads what can be read of a file that is given up. Opened for
// reading only, bbolt does not walk the whole tree before it lets us in.
func salvage(path string, s *sealer) (contents, error) {
	if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() || fi.Size() == 0 {
		return contents{}, err
	}
	db, found, err := openAndRead(path, s, &bbolt.Options{ReadOnly: true, Timeout: lockPatience})
	if err == nil {
		err = db.Close()
	}
	return found, err
}

// create makes a store that holds what was found in the one before. bbolt's
// own creation is not safe against a power cut, so it is made aside.
func (op *opening) create(old contents) error {
	x := memory.NewIndex(op.Slice)
	old.fill(x, nil)
	gate, err := clock.Start(op.Source, old.mark, old.newest())
	if err != nil {
		return err
	}
	if _, err := op.writeAside(op.sealer, x.Drain(), gate.Mark()); err != nil {
		return err
	}
	return op.moveIn()
}

// writeAside makes a file beside the store that holds a batch, syncs and closes
// it. What it returns knows what is in it, and has no file open.
func (o *Options) writeAside(s *sealer, b memory.Batch, m clock.Mark) (*file, error) {
	path := o.Path + suffixNew
	if err := atomicfile.Remove(path); err != nil {
		return nil, err
	}
	db, err := bbolt.Open(path, 0o600, o.bbolt())
	if err != nil {
		return nil, err
	}
	f := newFile(db, s)
	err = f.write(b, m)
	if err == nil {
		err = db.Sync()
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	f.db = nil
	return f, nil
}

// moveIn puts the file made by writeAside in the store's place, durably.
func (o *Options) moveIn() error {
	if err := os.Rename(o.Path+suffixNew, o.Path); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(o.Path))
}

// start sets a store going on a file that has been read.
func (op *opening) start(f *file, found contents, held *os.File) (*Store, error) {
	gate, err := clock.Start(op.Source, found.mark, found.newest())
	if err != nil {
		return nil, err
	}
	x := memory.NewIndex(op.Slice)
	found.fill(x, f)
	f.barren = found.barren
	op.report.Records = x.Len()
	// The mark of this boot, and whatever was not as it should be.
	if err := f.write(x.Drain(), gate.Mark()); err != nil {
		return nil, fmt.Errorf("writing the first mark: %w", err)
	}
	if !present(op.Path + suffixExists) {
		if err := writeMarker(op.Path+suffixExists, "there is a store here; if it is gone, that is a loss"); err != nil {
			return nil, fmt.Errorf("marking that there is a store: %w", err)
		}
	}
	if err := atomicfile.Remove(op.Path + suffixOpening); err != nil {
		return nil, fmt.Errorf("marking the end of the opening: %w", err)
	}
	if err := op.clearMemory(); err != nil {
		return nil, fmt.Errorf("removing the marker of a run in memory: %w", err)
	}
	if op.commit != nil {
		f.commit = op.commit
	}
	s := newStore(op.Options, x, f, gate, held)
	go s.writeBehind() // Close waits for it
	go s.watch()       // ends with it
	return s, nil
}

func warnPartly(log *slog.Logger, path string, err error) {
	log.Warn("store_partly_read", "file", path, "error", err.Error(),
		"hint", "what can be read of it is used; for the rest, a repeat is asked for at the library system where that can be asked")
}

// Fallback is a store in memory for when Open has failed for the reason why.
// What can still be read of the file is in it, so that it is looked up first,
// and the clock goes on from the file's mark.
func Fallback(o Options, why error) (*memory.Store, clock.Clock) {
	o = o.filled()
	m := memory.New(why.Error())
	var found contents
	s, err := o.sealer()
	if err == nil {
		found, err = salvage(o.Path, s)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !sameErrno(err, why) {
			warnPartly(o.Logger, o.Path, err)
		}
		if found.opened == 0 {
			found = contents{} // keys made with another secret are of no use
		}
	}
	for _, e := range found.entries {
		m.Index().Load(e)
	}
	for name, v := range found.values {
		m.Index().LoadValue(name, v)
	}
	gate, err := clock.Start(o.Source, found.mark, found.newest())
	if err != nil {
		return m, clock.Monotonic()
	}
	return m, gate
}
