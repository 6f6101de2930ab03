package bolt_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"sip2gate/dedup"
	"sip2gate/dedup/bolt"
	"sip2gate/dedup/clock"
	"sip2gate/dedup/storetest"
)

// disk is a disk that can be told to fail.
type disk struct {
	commits atomic.Int32
	before  atomic.Pointer[error] // fails before anything is written
	after   atomic.Pointer[error] // is written, and then an error is reported
	hang    chan struct{}         // if set, every commit waits for it
	noSync  bool
}

func (d *disk) commit(db *bbolt.DB, fn func(*bbolt.Tx) error) error {
	d.commits.Add(1)
	if d.hang != nil {
		<-d.hang
	}
	if err := d.before.Load(); err != nil {
		return *err
	}
	db.NoSync = d.noSync
	err := db.Update(fn)
	if err := d.after.Load(); err != nil {
		return *err
	}
	return err
}

// events collects what OnHealth is told.
type events struct {
	mu  sync.Mutex
	all []dedup.Health
}

func (e *events) add(h dedup.Health) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, h)
}

func (e *events) durable() (ds []bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.all {
		ds = append(ds, h.Durable)
	}
	return ds
}

func insert(t testing.TB, s dedup.Store, n int) {
	t.Helper()
	r := storetest.Record(n, 0)
	if standing, err := s.Insert(t.Context(), r, 0); err != nil || standing != nil {
		t.Fatalf("Insert(%d) = %v, %v", n, standing, err)
	}
}

func has(t testing.TB, s dedup.Store, n int) bool {
	t.Helper()
	_, ok := s.Get(storetest.Record(n, 0).Key)
	return ok
}

func closeStore(t testing.TB, s *bolt.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDiskFailsAndRecovers(t *testing.T) {
	for _, kind := range []string{"not written", "written all the same"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) { failAndRecover(t, dir, kind == "not written") })
		})
	}
}

func failAndRecover(t *testing.T, dir string, before bool) {
	var d disk
	var told events
	o := options(t, dir).WithCommit(d.commit)
	o.OnHealth = told.add
	s, _ := open(t, o)
	insert(t, s, 1)

	fault := error(&os.PathError{Op: "write", Path: o.Path, Err: syscall.ENOSPC})
	fail := &d.after
	if before {
		fail = &d.before
	}
	fail.Store(&fault)
	insert(t, s, 2) // the branch keeps lending
	if h := s.Health(); h.Durable || h.Why != "the disk is full" {
		t.Errorf("health is %+v", h)
	}
	if !has(t, s, 2) {
		t.Error("the record is not in memory")
	}
	if _, err := os.Stat(o.Path + ".memory"); err != nil {
		t.Errorf("no marker for the next start: %v", err)
	}
	tried := d.commits.Load()
	insert(t, s, 3) // each new write is an attempt
	if d.commits.Load() == tried {
		t.Error("a new write was no attempt")
	}
	tried = d.commits.Load()
	<-time.After(10 * time.Second) // of the bubble's time
	if n := d.commits.Load() - tried; n < 2 || n > 5 {
		t.Errorf("%d attempts in ten seconds", n)
	}
	fail.Store(nil)
	<-time.After(4 * time.Second)
	synctest.Wait()
	if h := s.Health(); !h.Durable || h.Why != "" {
		t.Errorf("health after the disk has recovered: %+v", h)
	}
	if _, err := os.Stat(o.Path + ".memory"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the marker is still there: %v", err)
	}
	if got := told.durable(); !slices.Equal(got, []bool{false, true}) {
		t.Errorf("OnHealth was told %v, want one fault and one recovery", got)
	}
	// What was in memory only is on the disk.
	c, report := open(t, options(t, crashed(t, filepath.Dir(o.Path))))
	for n := 1; n <= 3; n++ {
		if !has(t, c, n) {
			t.Errorf("record %d is not on the disk", n)
		}
	}
	if report.Amnesia != "" || report.Damaged != 0 {
		t.Errorf("report: %+v", report)
	}
	closeStore(t, c)
	closeStore(t, s)
}

func TestDiskStillBadAtClose(t *testing.T) {
	dir := t.TempDir()
	var d disk
	s, _ := open(t, options(t, dir).WithCommit(d.commit))
	insert(t, s, 1)
	fault := errors.New("fault")
	d.before.Store(&fault)
	insert(t, s, 2)
	if err := s.Close(); !errors.Is(err, fault) {
		t.Errorf("Close: %v, want the fault", err)
	}
	s, report := open(t, options(t, dir))
	if report.Amnesia == "" {
		t.Error("the next start does not know that records were in memory only")
	}
	if !has(t, s, 1) || has(t, s, 2) {
		t.Error("the store does not hold what was written, and only that")
	}
	closeStore(t, s)
	if _, report = open(t, options(t, dir)); report.Amnesia != "" {
		t.Errorf("the start after that: %+v", report)
	}
}

// bbolt dies of damaged pages. The gate must not: it lends from memory, and the
// file is left as it is for the next start.
func TestFilePanics(t *testing.T) {
	dir := t.TempDir()
	commits := 0
	o := options(t, dir).WithCommit(func(db *bbolt.DB, fn func(*bbolt.Tx) error) error {
		commits++
		return db.Update(func(tx *bbolt.Tx) error {
			if err := fn(tx); err != nil {
				return err
			}
			panic("page 6 already freed")
		})
	})
	s, _ := open(t, o)
	insert(t, s, 1)
	if h := s.Health(); h.Durable || !strings.Contains(h.Why, "already freed") {
		t.Errorf("health: %+v", h)
	}
	insert(t, s, 2)
	if !has(t, s, 1) || !has(t, s, 2) {
		t.Error("the records are not in memory")
	}
	if err := s.Close(); !errors.Is(err, bolt.ErrDamaged) {
		t.Errorf("Close: %v", err)
	}
	if commits != 1 {
		t.Errorf("%d commits on a file that bbolt has died of", commits)
	}
	if _, report := open(t, options(t, crashed(t, dir))); report.Amnesia == "" {
		t.Errorf("the next start does not know: %+v", report)
	}
}

// The marker goes where it can be left.
func TestMarkerElsewhere(t *testing.T) {
	dir, run := filepath.Join(t.TempDir(), "state"), t.TempDir()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var d disk
	o := options(t, dir).WithCommit(d.commit)
	o.RunDir = run
	s, _ := open(t, o)
	// Without its directory the disk takes no new files.
	if err := os.Rename(dir, dir+".gone"); err != nil {
		t.Fatal(err)
	}
	fault := errors.New("fault")
	d.before.Store(&fault)
	insert(t, s, 1)
	if _, err := os.Stat(bolt.RunMarker(o)); err != nil {
		t.Errorf("no marker in the other place: %v", err)
	}
}

func TestDiskHangs(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := disk{hang: make(chan struct{})}
		var told events
		o := options(t, dir).WithCommit(d.commit)
		o.OnHealth = told.add
		o.Patience = 2 * time.Second
		o.RunDir = t.TempDir()
		s, _ := open(t, o)
		began := time.Now()
		insert(t, s, 1)
		if took := time.Since(began); took < o.Patience || took > 2*o.Patience {
			t.Errorf("the first caller was kept for %v", took)
		}
		if h := s.Health(); h.Durable {
			t.Errorf("health is %+v", h)
		}
		began = time.Now()
		insert(t, s, 2)
		if took := time.Since(began); took != 0 {
			t.Errorf("the second caller was kept for %v", took)
		}
		if _, err := os.Stat(bolt.RunMarker(o)); err != nil {
			t.Errorf("no marker for the next start: %v", err)
		}
		close(d.hang)
		<-time.After(time.Second)
		synctest.Wait()
		if h := s.Health(); !h.Durable {
			t.Errorf("health after the disk has answered: %+v", h)
		}
		if got := told.durable(); !slices.Equal(got, []bool{false, true}) {
			t.Errorf("OnHealth was told %v", got)
		}
		insert(t, s, 3)
		closeStore(t, s)
	})
}

func TestLazyIsWrittenWithinFiveSeconds(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var d disk
		s, _ := open(t, options(t, dir).WithCommit(d.commit))
		put := func(name string) {
			if err := s.Put(t.Context(), name, []byte("v"), dedup.Lazy); err != nil {
				t.Fatal(err)
			}
		}
		put("a")
		<-time.After(4 * time.Second)
		put("b") // does not put it off
		synctest.Wait()
		if n := d.commits.Load(); n != 0 {
			t.Errorf("%d commits after 4 s", n)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if n := d.commits.Load(); n != 1 {
			t.Errorf("%d commits after 5 s, want 1", n)
		}
		put("c")
		insert(t, s, 1) // takes it along
		<-time.After(10 * time.Second)
		synctest.Wait()
		if n := d.commits.Load(); n != 2 {
			t.Errorf("%d commits, want 2: what is lazy goes with the next write", n)
		}
		closeStore(t, s)
	})
}

func TestMarkIsWrittenEveryMinute(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var d disk
		o := options(t, dir).WithCommit(d.commit)
		src := clock.NewManual("boot", 0)
		o.Source = src
		s, _ := open(t, o)
		<-time.After(10 * time.Minute)
		synctest.Wait()
		if n := d.commits.Load(); n != 0 {
			t.Errorf("%d commits of a store without records", n)
		}
		insert(t, s, 1)
		src.Advance(7 * time.Minute)
		<-time.After(7 * time.Minute)
		synctest.Wait()
		if n := d.commits.Load(); n != 8 {
			t.Errorf("%d commits in seven minutes, want the claim and 7 marks", n)
		}
		// The power fails; the next boot knows of the seven minutes.
		o = options(t, crashed(t, filepath.Dir(o.Path)))
		o.Source = clock.NewManual("next", time.Second)
		c, _ := open(t, o)
		if got := c.Clock().Now(); got != 7*time.Minute+time.Second {
			t.Errorf("gate time after the reboot is %v, want 7m1s", got)
		}
		closeStore(t, c)
		closeStore(t, s)
	})
}

func TestGroupCommit(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		const claimers = 64
		d := disk{hang: make(chan struct{})}
		s, _ := open(t, options(t, dir).WithCommit(d.commit))
		var wg sync.WaitGroup
		for n := range claimers {
			wg.Go(func() { insert(t, s, n) })
		}
		synctest.Wait() // the first commit is under way, all others wait
		close(d.hang)
		wg.Wait()
		if n := d.commits.Load(); n > 2 {
			t.Errorf("%d claims took %d commits, want at most 2", claimers, n)
		}
		c, report := open(t, options(t, crashed(t, dir)))
		if report.Records != claimers {
			t.Errorf("%d records on the disk, want %d", report.Records, claimers)
		}
		closeStore(t, c)
		closeStore(t, s)
	})
}

// A claim is on the disk before Insert returns; a change that is written
// behind is on its way at once.
func TestInsertIsOnDisk(t *testing.T) {
	dir := t.TempDir()
	s, _ := open(t, options(t, dir))
	for n := range 10 {
		insert(t, s, n)
		c, report := open(t, options(t, crashed(t, dir)))
		if report.Records != n+1 || !has(t, c, n) {
			t.Fatalf("claim %d is not on the disk: %+v", n, report)
		}
		closeStore(t, c)
	}
}

func TestFileStaysBounded(t *testing.T) {
	const loans, window = 20000, 90 * time.Second
	dir := t.TempDir()
	d := disk{noSync: true}
	src := clock.NewManual("boot", 0)
	o := options(t, dir).WithCommit(d.commit)
	o.Source = src
	o.Slice = 10 * time.Second
	s, _ := open(t, o)
	var early int64
	for n := range uint64(loans) {
		now := s.Clock().Now()
		r := loan(n, now)
		r.Answer = make([]byte, 400)
		if r.Expires = now + window; n%1000 == 0 {
			r.Expires = 0 // in doubt, and nobody settles it
		}
		// Synced now and then only, so that batches are as at a busy branch.
		if _, err := s.Insert(t.Context(), r, now); err != nil {
			t.Fatal(err)
		}
		src.Advance(time.Second / 10)
		if n%100 == 0 {
			if _, err := s.Sweep(t.Context(), now); err != nil {
				t.Fatal(err)
			}
		}
		if n == loans/5 {
			early = size(t, o.Path)
		}
	}
	if late := size(t, o.Path); late > early {
		t.Errorf("the file grew from %d to %d bytes", early, late)
	}
	src.Advance(time.Hour)
	if _, err := s.Sweep(t.Context(), s.Clock().Now()); err != nil {
		t.Fatal(err)
	}
	left := 0
	for range s.All() {
		left++
	}
	if left != loans/1000 {
		t.Errorf("%d records are left, want %d", left, loans/1000)
	}
	closeStore(t, s)
	// What is left stands together, not in a slice each.
	if n := slicesIn(t, o.Path); n > 13 {
		t.Errorf("%d time slices for %d records", n, left)
	}
	if _, report := open(t, options(t, dir)); report.Records != left || report.Amnesia != "" {
		t.Errorf("report: %+v", report)
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return fi.Size()
}

func slicesIn(t *testing.T, path string) (n int) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
			if name[0] == 's' {
				n++
			}
			return nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// The budget of a loan: see BenchmarkLoan.
func TestLoanFitsItsBudget(t *testing.T) {
	const live, loans, budget = 1000, 200, 16 << 10
	src := clock.NewManual("boot", 0)
	o := options(t, t.TempDir())
	o.Source = src
	o.Slice = live / 10 * time.Second
	s, _ := open(t, o)
	var began int64
	for n := range uint64(live + loans) {
		if n == live {
			began = written(t)
		}
		lend(t, s, n, live*time.Second)
		src.Advance(time.Second)
		if n%20 == 0 {
			if _, err := s.Sweep(t.Context(), s.Clock().Now()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if each := (written(t) - began) / loans; each > budget {
		t.Errorf("a loan hands %d bytes to pwrite, more than %d", each, budget)
	} else {
		t.Logf("a loan hands %d bytes to pwrite", each)
	}
}
