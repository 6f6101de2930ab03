package bolt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"sip2gate/dedup/internal/atomicfile"
)

// What stands beside the store file, all of it named after it.
const (
	suffixLock    = ".lock"     // held while a gate runs
	suffixExists  = ".exists"   // there has been a store here
	suffixOpening = ".opening"  // an opening has begun and not ended
	suffixMemory  = ".memory"   // a gate has lent books without the store
	suffixNew     = ".new"      // a store that is being made
	suffixDamaged = ".damaged-" // and a date: a store that was set aside
)

// Exists reports whether there is, or has ever been, a store at path: what
// secret.Load has to know.
func Exists(path string) bool {
	for _, p := range []string{path, path + suffixExists} {
		if _, err := os.Lstat(p); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// lock takes the fixed lock file beside the store. bbolt's own lock goes with
// the file, and a renamed file takes it along.
func lock(ctx context.Context, path string, patience time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path+suffixLock, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the store's lock file: %w", err)
	}
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		held, err := tryLock(f)
		if held {
			return f, nil
		}
		if err == nil {
			select {
			case <-again.C:
				continue
			case <-deadline.C:
				err = fmt.Errorf("%w: %s", ErrInUse, path)
			case <-ctx.Done():
				err = ctx.Err()
			}
		} else {
			err = fmt.Errorf("locking %s: %w", f.Name(), err)
		}
		return nil, errors.Join(err, f.Close())
	}
}

// setAside moves whatever stands at path out of the way, under a name that
// nothing has yet. The date is for people; it may be wrong.
func setAside(path string) (string, error) {
	base := path + suffixDamaged + time.Now().UTC().Format("20060102T150405Z")
	aside := base
	for i := 2; ; i++ {
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			break
		}
		aside = base + "-" + strconv.Itoa(i)
	}
	if err := os.Rename(path, aside); err != nil {
		return "", fmt.Errorf("setting the damaged store aside: %w", err)
	}
	if err := atomicfile.SyncDir(filepath.Dir(path)); err != nil {
		return aside, fmt.Errorf("setting the damaged store aside: %w", err)
	}
	return aside, nil
}

// marker is a small file whose presence is its message. The text is for
// whoever finds it.
func writeMarker(path, text string) error {
	return atomicfile.Write(path, []byte(text+"\n"), 0o600)
}

func present(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// memoryMarkers are the places where a run without the store may be noted.
func (o *Options) memoryMarkers() []string {
	paths := []string{o.Path + suffixMemory}
	if o.RunDir != "" {
		paths = append(paths, filepath.Join(o.RunDir, runName(o.Path)+suffixMemory))
	}
	return paths
}

// runName names a store among those of the whole machine, which share a RunDir
// and as a rule the name of their file.
func runName(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	sum := sha256.Sum256([]byte(path))
	return "sip2gate-" + hex.EncodeToString(sum[:8])
}

// NoteMemory leaves word for the next start that, for the reason why, books are
// lent without the store at o.Path having been opened. Open does so itself.
func NoteMemory(o Options, why error) {
	o = o.filled()
	o.noteMemory(why)
}

// noteMemory leaves word for the next start that books are being lent which
// the store does not know of.
func (o *Options) noteMemory(why error) { o.noteMemoryAt(o.memoryMarkers(), why) }

// noteMemoryElsewhere does so where the store's own disk is not asked.
func (o *Options) noteMemoryElsewhere(why error) { o.noteMemoryAt(o.memoryMarkers()[1:], why) }

func (o *Options) noteMemoryAt(places []string, why error) {
	text := "records were kept in memory only: " + why.Error()
	var errs []error
	for _, p := range places {
		err := writeMarker(p, text)
		if err == nil {
			return
		}
		errs = append(errs, err)
	}
	here, elsewhere := errs[0], errs[len(errs)-1]
	if (sameErrno(here, why) || errors.Is(here, fs.ErrNotExist)) && errors.Is(elsewhere, fs.ErrPermission) {
		return // nothing may be written here at all: why says so, and the caller what to do
	}
	o.Logger.Error("marker_not_left", "error", errors.Join(errs...).Error(),
		"hint", "a restart will not know that checkouts were remembered in memory only, and a repeat of one may make a second loan: do not restart needlessly before the disk can be written")
}

func (o *Options) memoryNoted() bool {
	for _, p := range o.memoryMarkers() {
		if present(p) {
			return true
		}
	}
	return false
}

// clearMemory takes the word back.
func (o *Options) clearMemory() error {
	var errs []error
	for _, p := range o.memoryMarkers() {
		errs = append(errs, atomicfile.Remove(p))
	}
	return errors.Join(errs...)
}
