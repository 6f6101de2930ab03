package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sip2gate/dedup"
	"sip2gate/dedup/bolt"
	"sip2gate/dedup/clock"
	"sip2gate/dedup/memory"
	"sip2gate/dedup/storetest"
)

func TestFirstStart(t *testing.T) {
	o := options(t, t.TempDir())
	if bolt.Exists(o.Path) {
		t.Error("a store exists before the first start")
	}
	s, report := open(t, o)
	if want := (bolt.Report{Created: true}); report != want {
		t.Errorf("report: %+v, want %+v", report, want)
	}
	if h := s.Health(); !h.Durable {
		t.Errorf("health: %+v", h)
	}
	closeStore(t, s)
	if !bolt.Exists(o.Path) {
		t.Error("no store exists after the first start")
	}
	if _, report = open(t, o); report != (bolt.Report{}) {
		t.Errorf("second start: %+v", report)
	}
}

// A first start that was interrupted at any point is begun again, and is no
// amnesia.
func TestFirstStartInterrupted(t *testing.T) {
	for name, leave := range map[string][]string{
		"before anything was made": {".opening"},
		"while it was made":        {".opening", ".new"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, t.TempDir())
			for _, suffix := range leave {
				if err := os.WriteFile(o.Path+suffix, []byte("half"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			o.Check = check
			s, report := open(t, o)
			if want := (bolt.Report{Created: true, Unclean: true}); report != want {
				t.Errorf("report: %+v, want %+v", report, want)
			}
			insert(t, s, 1)
		})
	}
	t.Run("before it was marked", func(t *testing.T) {
		o := options(t, t.TempDir())
		s, _ := open(t, o)
		closeStore(t, s)
		if err := os.Remove(o.Path + ".exists"); err != nil {
			t.Fatal(err)
		}
		s, report := open(t, o)
		if report != (bolt.Report{}) {
			t.Errorf("report: %+v", report)
		}
		closeStore(t, s)
		if err := os.Remove(o.Path); err != nil {
			t.Fatal(err)
		}
		if _, report = open(t, o); report.Amnesia == "" {
			t.Error("the marker was not made up for")
		}
	})
}

// hold keeps a store open until its standard input ends.
func hold(path string) int {
	s, _, err := bolt.Open(context.Background(), bolt.Options{Path: path, Secret: testSecret, Source: clock.System()})
	if err != nil {
		println(err.Error())
		return 1
	}
	println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if s.Close() != nil {
		return 1
	}
	return 0
}

func TestInUse(t *testing.T) {
	o := options(t, t.TempDir())
	cmd := child(t.Context(), "hold", o.Path)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 5)
	if _, err := io.ReadFull(stderr, said); err != nil || string(said) != "open\n" {
		t.Fatalf("the child said %q, %v", said, err)
	}
	began := time.Now()
	_, _, err = bolt.Open(t.Context(), o)
	if !errors.Is(err, bolt.ErrInUse) || !strings.Contains(err.Error(), o.Path) {
		t.Errorf("Open: %v, want ErrInUse naming the file", err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("it took %v to find out", took)
	}
	if _, err := os.Stat(o.Path + ".memory"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a second gate that went away left a marker")
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the first gate was disturbed: %v", err)
	}
	s, _ := open(t, o)
	insert(t, s, 1)
}

func TestOtherSecret(t *testing.T) {
	dir := t.TempDir()
	o := options(t, dir)
	s, _ := open(t, o)
	insert(t, s, 1)
	if err := s.Put(t.Context(), "name", []byte("value"), dedup.Synced); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)

	t.Run("rotated", func(t *testing.T) {
		o := options(t, crashed(t, dir))
		o.Secret, o.Former = bytes.Repeat([]byte("new"), 11), [][]byte{testSecret}
		s, report := open(t, o)
		if report != (bolt.Report{Records: 1}) || !has(t, s, 1) {
			t.Errorf("report: %+v", report)
		}
		closeStore(t, s)
		// All is sealed anew: the former secret is not needed any more.
		o.Former = nil
		s, report = open(t, o)
		if report != (bolt.Report{Records: 1}) || !has(t, s, 1) {
			t.Errorf("without the former secret: %+v", report)
		}
		if v, ok := s.Value("name"); !ok || string(v) != "value" {
			t.Errorf("Value = %q, %v", v, ok)
		}
	})
	t.Run("lost", func(t *testing.T) {
		o := options(t, crashed(t, dir))
		o.Secret = bytes.Repeat([]byte("new"), 11)
		s, report := open(t, o)
		if report.SetAside == "" || report.Amnesia == "" || report.Records != 0 {
			t.Errorf("report: %+v", report)
		}
		insert(t, s, 1)
	})
}

// Gate time goes on over restarts, reboots and crashes.
func TestGateTime(t *testing.T) {
	src := clock.NewManual("boot", time.Hour)
	o := options(t, t.TempDir())
	o.Source = src
	s, _ := open(t, o)
	if got := s.Clock().Now(); got != 0 {
		t.Errorf("a first start is at %v", got)
	}
	src.Advance(10 * time.Minute)
	insert(t, s, 1) // takes the mark along
	src.Advance(5 * time.Second)
	crashedOptions := o
	crashedOptions.Path = filepath.Join(crashed(t, filepath.Dir(o.Path)), "store.db")
	closeStore(t, s)

	src.Advance(time.Minute)
	s, _ = open(t, o)
	if got, want := s.Clock().Now(), 11*time.Minute+5*time.Second; got != want {
		t.Errorf("after a restart: %v, want %v", got, want)
	}
	closeStore(t, s)

	src.Reboot("next boot", 30*time.Second)
	s, _ = open(t, crashedOptions)
	if got, want := s.Clock().Now(), 10*time.Minute+30*time.Second; got != want {
		t.Errorf("after a power cut: %v, want %v", got, want)
	}
	closeStore(t, s)
}

func TestNothingInClear(t *testing.T) {
	dir := t.TempDir()
	o := options(t, dir)
	s, _ := open(t, o)
	r := storetest.Record(1, 0)
	r.Scope, r.Label, r.Station = "SCOPE-IN-CLEAR", "LABEL-IN-CLEAR", "STATION-IN-CLEAR"
	r.Request, r.Answer = []byte("REQUEST-IN-CLEAR"), []byte("ANSWER-IN-CLEAR")
	if _, err := s.Insert(t.Context(), r, 0); err != nil {
		t.Fatal(err)
	}
	r, _ = s.Get(r.Key)
	if _, err := s.Update(t.Context(), r, dedup.Synced); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "the-name", []byte("VALUE-IN-CLEAR"), dedup.Synced); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	var all []byte
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			all = append(all, read(t, path)...)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"IN-CLEAR", string(r.Subject[:10]), string(r.Object[:8]), string(testSecret)} {
		if bytes.Contains(all, []byte(secret)) {
			t.Errorf("%q stands in clear in a file", secret)
		}
	}
	if !bytes.Contains(all, []byte("the-name")) {
		t.Error("the name of a value may be seen, but is not there: the test looks at the wrong files")
	}
}

// The page size is the file's, not the kernel's or the program's.
func TestPageSizes(t *testing.T) {
	for _, n := range []int{1024, 4096, 16384} {
		o := options(t, t.TempDir()).WithPageSize(n)
		s, _ := open(t, o)
		insert(t, s, 1)
		closeStore(t, s)
		s, report := open(t, o.WithPageSize(0))
		if report != (bolt.Report{Records: 1}) || !has(t, s, 1) {
			t.Errorf("page size %d: report %+v", n, report)
		}
		insert(t, s, 2)
	}
}

// The length of the slices may change between runs.
func TestSliceChanges(t *testing.T) {
	o := options(t, t.TempDir())
	for i, width := range []time.Duration{time.Second, time.Hour, time.Minute} {
		o.Slice = width
		s, report := open(t, o)
		if report.Records != i*10 || report.Amnesia != "" {
			t.Errorf("slices of %v: report %+v", width, report)
		}
		for n := range 10 {
			r := storetest.Record(i*10+n, time.Duration(n)*time.Minute)
			r.Expires = time.Hour
			if _, err := s.Insert(t.Context(), r, r.ClaimedAt); err != nil {
				t.Fatal(err)
			}
		}
		closeStore(t, s)
	}
	s, _ := open(t, o)
	if n, err := s.Sweep(t.Context(), time.Hour); n != 30 || err != nil {
		t.Errorf("Sweep = %d, %v; want 30", n, err)
	}
	closeStore(t, s)
	if n := slicesIn(t, o.Path); n != 0 {
		t.Errorf("%d slices are left", n)
	}
}

func TestCannotOpen(t *testing.T) {
	dir := t.TempDir()
	o := options(t, filepath.Join(dir, "none"))
	o.RunDir = dir
	_, _, err := bolt.Open(t.Context(), o)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), o.Path) {
		t.Errorf("Open in a directory that is not there: %v", err)
	}
	// The gate will lend from memory; the next start has to know.
	if err := os.Mkdir(filepath.Dir(o.Path), 0o700); err != nil {
		t.Fatal(err)
	}
	s, report := open(t, o)
	if report.Amnesia == "" {
		t.Errorf("report: %+v", report)
	}
	closeStore(t, s)
	if _, report = open(t, o); report.Amnesia != "" {
		t.Errorf("the start after: %+v", report)
	}
}

// Two gates of one machine leave word in the same place, and their stores have
// the same name: the one must neither read nor remove what the other left.
func TestMarkersOfTwoStores(t *testing.T) {
	dir, run := t.TempDir(), t.TempDir()
	a, b := options(t, filepath.Join(dir, "a")), options(t, filepath.Join(dir, "b"))
	a.RunDir, b.RunDir = run, run
	if _, _, err := bolt.Open(t.Context(), a); err == nil {
		t.Fatal("a store was opened in a directory that is not there")
	}
	for _, o := range []bolt.Options{a, b} {
		if err := os.Mkdir(filepath.Dir(o.Path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s, report := open(t, b)
	if report.Amnesia != "" {
		t.Errorf("the other gate's marker was taken for its own: %q", report.Amnesia)
	}
	closeStore(t, s)
	if _, report = open(t, a); report.Amnesia == "" {
		t.Error("the other gate has removed the marker")
	}
}

// A store that cannot be written is looked at, and gets what it missed.
func TestFallbackAndBack(t *testing.T) {
	src := clock.NewManual("boot", time.Hour)
	o := options(t, t.TempDir())
	o.Source = src
	s, _ := open(t, o)
	insert(t, s, 1)
	insert(t, s, 2)
	src.Advance(10 * time.Minute)
	closeStore(t, s)

	m, c := bolt.Fallback(o, errors.New("read-only file system"))
	if h := m.Health(); h.Durable || h.Why != "read-only file system" {
		t.Errorf("health: %+v", h)
	}
	if got := c.Now(); got != 10*time.Minute {
		t.Errorf("gate time is %v, want 10m", got)
	}
	if !has(t, m, 1) || !has(t, m, 2) {
		t.Error("what the file shows is not looked up")
	}
	insert(t, m, 3)
	r, _ := m.Get(storetest.Record(1, 0).Key)
	if err := m.Delete(t.Context(), r.Key, r.Token, dedup.Behind); err != nil {
		t.Fatal(err)
	}
	if err := m.Put(t.Context(), "name", []byte("v"), dedup.Behind); err != nil {
		t.Fatal(err)
	}

	s, _ = open(t, o)
	if err := s.Adopt(t.Context(), m, c.Now()); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s, report := open(t, o)
	if report != (bolt.Report{Records: 2}) || has(t, s, 1) || !has(t, s, 2) || !has(t, s, 3) {
		t.Errorf("report: %+v", report)
	}
	if v, ok := s.Value("name"); !ok || string(v) != "v" {
		t.Errorf("Value = %q, %v", v, ok)
	}
}

// Records of another clock end when they would have ended.
func TestAdoptShiftsTimes(t *testing.T) {
	src := clock.NewManual("boot", 0)
	o := options(t, t.TempDir())
	o.Source = src
	s, _ := open(t, o)
	src.Advance(100 * time.Hour)
	m := memory.New("for the test")
	r := storetest.Record(1, time.Minute)
	r.Expires = 3 * time.Minute
	if _, err := m.Insert(t.Context(), r, r.ClaimedAt); err != nil {
		t.Fatal(err)
	}
	if err := s.Adopt(t.Context(), m, 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	got, ok := s.Get(r.Key)
	if !ok || got.Expires != 100*time.Hour+time.Minute || got.ClaimedAt != 100*time.Hour-time.Minute || got.CompletedAt != 0 {
		t.Errorf("the record is now %+v", got)
	}
}
