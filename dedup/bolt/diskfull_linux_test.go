package bolt_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sip2gate/dedup"
	"sip2gate/dedup/bolt"
)

// A disk that is really full: a small file system in memory.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=768k"); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	o := options(t, dir)
	o.RunDir = t.TempDir()
	recovered := make(chan struct{})
	o.OnHealth = func(h dedup.Health) {
		if h.Durable {
			close(recovered)
		}
	}
	s, _ := open(t, o)
	insert(t, s, 0)

	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	n := 1
	for ; s.Health().Durable; n++ {
		if n == 2000 {
			t.Fatal("the disk never was full")
		}
		insert(t, s, n)
	}
	if h := s.Health(); h.Why != "the disk is full" {
		t.Errorf("health: %+v", h)
	}
	insert(t, s, n)
	if _, err := os.Stat(bolt.RunMarker(o)); err != nil {
		t.Errorf("no marker for the next start: %v", err)
	}

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	select { // by itself, without a restart
	case <-recovered:
	case <-time.After(30 * time.Second):
		t.Fatalf("the store does not recover: %+v", s.Health())
	}
	c, report := open(t, options(t, crashed(t, dir)))
	if report.Records != n+1 || report.Amnesia != "" || report.Damaged != 0 {
		t.Errorf("%d records were lent, report %+v", n+1, report)
	}
	closeStore(t, c)
	closeStore(t, s)
}

// fill writes until nothing more fits.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 64 << 10; size > 0; {
		_, err := f.Write(make([]byte, size))
		switch {
		case errors.Is(err, unix.ENOSPC):
			size /= 2
		case err != nil:
			t.Fatal(err)
		}
	}
}
