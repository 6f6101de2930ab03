package bolt_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sip2gate/dedup"
	"sip2gate/dedup/bolt"
	"sip2gate/dedup/storetest"
)

var newSecret = bytes.Repeat([]byte("fedcba9876543210"), 2)

// shrink leaves a store with few records in a file that once held many.
func shrink(t *testing.T, s dedup.Store) {
	t.Helper()
	for n := range 300 {
		insert(t, s, n)
	}
	for n := 3; n < 300; n++ {
		r := storetest.Record(n, 0)
		if err := s.Delete(t.Context(), r.Key, r.Token, dedup.Behind); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Put(t.Context(), "name", []byte("value"), dedup.Synced); err != nil {
		t.Fatal(err)
	}
}

func TestCompact(t *testing.T) {
	dir := t.TempDir()
	o := options(t, dir)
	s, _ := open(t, o)
	shrink(t, s)
	before := size(t, o.Path)
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := size(t, o.Path); after > before/2 {
		t.Errorf("%d bytes before, %d after", before, after)
	}
	// What is written after goes to the new file, and a crash finds it there.
	insert(t, s, 1000)
	again := options(t, crashed(t, dir))
	if v, err := bolt.Verify(again.Path, testSecret); err != nil || v != (bolt.Verified{Records: 4}) {
		t.Errorf("after a crash: %+v, %v", v, err)
	}
	r, report := open(t, again)
	if report.Amnesia != "" || report.Damaged != 0 || report.Records != 4 || !has(t, r, 0) || !has(t, r, 1000) || has(t, r, 5) {
		t.Errorf("after a crash: %+v", report)
	}
	if v, ok := r.Value("name"); !ok || string(v) != "value" {
		t.Errorf("the value: %q", v)
	}
	closeStore(t, s)
	if err := s.Compact(t.Context()); !errors.Is(err, dedup.ErrClosed) {
		t.Errorf("a closed store: %v", err)
	}
}

// Inserts go on while the file is rewritten again and again, and none is lost.
func TestCompactUnderLoad(t *testing.T) {
	dir := t.TempDir()
	s, _ := open(t, options(t, dir))
	const writers, each = 4, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				insert(t, s, w*each+n)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if err := s.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r, report := open(t, options(t, crashed(t, dir)))
	if report.Amnesia != "" || report.Records != writers*each {
		t.Errorf("%+v", report)
	}
	for n := range writers * each {
		if !has(t, r, n) {
			t.Fatalf("record %d is lost", n)
		}
	}
}

// Sealed anew, the old secret opens nothing and the new one everything.
func TestRekey(t *testing.T) {
	dir := t.TempDir()
	o := options(t, dir)
	s, _ := open(t, o)
	shrink(t, s)
	if err := s.Rekey(t.Context(), newSecret); err != nil {
		t.Fatal(err)
	}
	insert(t, s, 1000)
	if v, err := bolt.Verify(crashed(t, dir)+"/store.db", testSecret); !errors.Is(err, bolt.ErrDamaged) {
		t.Errorf("the old secret still opens it: %+v, %v", v, err)
	}
	closeStore(t, s)
	if v, err := bolt.Verify(o.Path, newSecret); err != nil || v != (bolt.Verified{Records: 4}) {
		t.Errorf("under the new secret: %+v, %v", v, err)
	}
	o.Secret = newSecret
	if r, report := open(t, o); report.SetAside != "" || report.Records != 4 || !has(t, r, 1000) {
		t.Errorf("%+v", report)
	}
}

// A secret that was replaced while the store was closed is one of the former
// ones at the next opening, and is needed no more after that.
func TestFormerSecret(t *testing.T) {
	o := options(t, t.TempDir())
	s, _ := open(t, o)
	shrink(t, s)
	closeStore(t, s)
	o.Secret, o.Former = newSecret, [][]byte{testSecret}
	s, report := open(t, o)
	if report.SetAside != "" || report.Records != 3 || report.Damaged != 0 {
		t.Errorf("%+v", report)
	}
	closeStore(t, s)
	if v, err := bolt.Verify(o.Path, newSecret); err != nil || v != (bolt.Verified{Records: 3}) {
		t.Errorf("%+v, %v", v, err)
	}
}

// A rewriting that cannot be done leaves everything as it was.
func TestCompactFails(t *testing.T) {
	for name, hinder := range map[string]func(t *testing.T, path string){
		"no room for the new file": func(t *testing.T, path string) {
			if err := os.MkdirAll(filepath.Join(path+".new", "in-the-way"), 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"it cannot be moved": func(t *testing.T, path string) {
			// The old file is still open, under no name.
			if err := os.Rename(path, path+".elsewhere"); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(path, "in-the-way"), 0o700); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, t.TempDir())
			s, _ := open(t, o)
			shrink(t, s)
			hinder(t, o.Path)
			if err := s.Rekey(t.Context(), newSecret); err == nil {
				t.Fatal("it worked")
			}
			if h := s.Health(); !h.Durable {
				t.Errorf("the store is degraded: %s", h.Why)
			}
			insert(t, s, 1000)
			closeStore(t, s)
			path := o.Path
			if _, err := os.Stat(path + ".elsewhere"); err == nil {
				path += ".elsewhere"
			}
			if v, err := bolt.Verify(path, testSecret); err != nil || v != (bolt.Verified{Records: 4}) {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}

// A disk that fails when the file is to be rewritten is told as ever.
func TestCompactOnABadDisk(t *testing.T) {
	var d disk
	o := options(t, t.TempDir()).WithCommit(d.commit)
	s, _ := open(t, o)
	insert(t, s, 0)
	bad := errors.New("bad")
	d.before.Store(&bad)
	if err := s.Compact(t.Context()); !errors.Is(err, bad) {
		t.Errorf("Compact: %v", err)
	}
	if s.Health().Durable {
		t.Error("the store says that it is well")
	}
	d.before.Store(nil)
	if err := s.Compact(t.Context()); err != nil || !s.Health().Durable {
		t.Errorf("when the disk is well again: %v, %+v", err, s.Health())
	}
	n := d.commits.Load()
	insert(t, s, 1)
	if d.commits.Load() == n {
		t.Error("the new file is written in another way")
	}
}

func TestCopy(t *testing.T) {
	o := options(t, t.TempDir())
	s, _ := open(t, o)
	shrink(t, s)
	to := o.Path + ".copy"
	for range 2 { // the second replaces the first
		if err := s.Copy(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		if err := bolt.CheckFile(to); err != nil {
			t.Error(err)
		}
		if v, err := bolt.Verify(to, testSecret); err != nil || v != (bolt.Verified{Records: 3}) {
			t.Errorf("%+v, %v", v, err)
		}
	}
	// A bit of a record flips.
	data := read(t, to)
	key := storetest.Record(1, time.Duration(0)).Key
	noticed := false
	for _, at := range indexes(data, key[:]) { // some of them in pages that are free
		overwrite(t, to, int64(at-9-60), []byte{data[at-9-60] ^ 4})
		v, err := bolt.Verify(to, testSecret)
		noticed = noticed || err != nil || v.Damaged == 1
		overwrite(t, to, int64(at-9-60), data[at-9-60:at-9-59])
	}
	if !noticed {
		t.Error("a flipped bit is not noticed")
	}
	// A meta page is damaged under the running store.
	overwrite(t, o.Path, 40, noise(16))
	if err := s.Copy(t.Context(), to); !errors.Is(err, bolt.ErrDamaged) {
		t.Errorf("with a damaged meta page: %v", err)
	}
}

func TestHold(t *testing.T) {
	o := options(t, t.TempDir())
	s, _ := open(t, o)
	if _, err := bolt.Hold(t.Context(), o.Path); !errors.Is(err, bolt.ErrInUse) {
		t.Errorf("while a gate runs: %v", err)
	}
	closeStore(t, s)
	held, err := bolt.Hold(t.Context(), o.Path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := bolt.Open(t.Context(), o); !errors.Is(err, bolt.ErrInUse) {
		t.Errorf("a gate starts meanwhile: %v", err)
	}
	held.Close()
}
