package bolt_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"sip2gate/dedup"
	"sip2gate/dedup/bolt"
	"sip2gate/dedup/clock"
	"sip2gate/dedup/storetest"
)

var testSecret = bytes.Repeat([]byte("0123456789abcdef"), 2)

func options(t testing.TB, dir string) bolt.Options {
	return bolt.Options{
		Path:   filepath.Join(dir, "store.db"),
		Secret: testSecret,
		Source: clock.NewManual("boot", 0),
	}
}

// open opens a store that ends with the test.
func open(t testing.TB, o bolt.Options) (*bolt.Store, bolt.Report) {
	t.Helper()
	s, report, err := bolt.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // most tests have closed it
	return s, report
}

// crashed copies what a crash at this moment would leave on the disk.
func crashed(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		dir := t.TempDir()
		s, _ := open(t, options(t, dir))
		return storetest.Harness{
			Store: s,
			Reopen: func(t *testing.T, clean bool) dedup.Store {
				if clean {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				} else {
					dir = crashed(t, dir)
				}
				var report bolt.Report
				s, report = open(t, options(t, dir))
				if report.Amnesia != "" || report.Damaged != 0 || report.Unclean || report.Created {
					t.Errorf("report after a restart: %+v", report)
				}
				return s
			},
		}
	})
}
