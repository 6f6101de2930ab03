package bolt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sip2gate/dedup"
	"sip2gate/dedup/bolt"
	"sip2gate/dedup/storetest"
)

// TestMain lets the test binary be the child that examines a store file or
// holds it.
func TestMain(m *testing.M) {
	switch path := os.Getenv("STORE_TEST_PATH"); os.Getenv("STORE_TEST_CHILD") {
	case "check":
		if err := bolt.CheckFile(path); err != nil {
			println(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	case "hold":
		os.Exit(hold(path))
	}
	os.Exit(m.Run())
}

func child(ctx context.Context, what, path string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), "STORE_TEST_CHILD="+what, "STORE_TEST_PATH="+path)
	return cmd
}

// check is Options.Check as the gate has it: this program, in a child.
func check(ctx context.Context, path string) error {
	return child(ctx, "check", path).Run()
}

// There are many records, in five time slices.
const many = 300

func numbered(n int) dedup.Record { return storetest.Record(n, time.Duration(n)*time.Second) }

// damaged is a store with many records that was closed and then hurt. The
// marker of an opening that did not end is there: what a crash in the attempt
// to open it leaves.
func damaged(t *testing.T, hurt func(t *testing.T, path string)) bolt.Options {
	t.Helper()
	o := options(t, t.TempDir())
	s, _ := open(t, o)
	for n := range many {
		r := numbered(n)
		if _, err := s.Insert(t.Context(), r, r.ClaimedAt); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Put(t.Context(), "name", []byte("value"), dedup.Synced); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	hurt(t, o.Path)
	if err := os.WriteFile(o.Path+".opening", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o.Check = check
	return o
}

// right fails the test if the store shows anything that was not put in it.
func right(t *testing.T, s dedup.Store) (whole, bare int) {
	t.Helper()
	known := make(map[dedup.Digest]dedup.Record)
	for n := range many {
		r := numbered(n)
		r.Rev = 1
		known[r.Key] = r
	}
	for r := range s.All() {
		want, ok := known[r.Key]
		switch {
		case ok && reflect.DeepEqual(r, want):
			whole++
		case r.State == dedup.Doubtful && r.Object == dedup.Digest{} && r.Request == nil && r.Expires == 0:
			bare++
		default:
			t.Fatalf("a wrong record: %+v", r)
		}
	}
	return whole, bare
}

func overwrite(t *testing.T, path string, at int64, with []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(with, at); err != nil {
		t.Fatal(err)
	}
}

func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

func TestDamagedFile(t *testing.T) {
	cut := func(keep func(size int64) int64) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			if err := os.Truncate(path, keep(size(t, path))); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name string
		hurt func(t *testing.T, path string)
	}{
		{"empty", cut(func(int64) int64 { return 0 })},
		{"one byte", cut(func(int64) int64 { return 1 })},
		{"one page", cut(func(int64) int64 { return 1024 })},
		{"four pages", cut(func(int64) int64 { return 4096 })},
		{"cut to a quarter", cut(func(n int64) int64 { return n / 4 })},
		{"cut to an odd length", cut(func(n int64) int64 { return n/3 + 77 })},
		{"last three quarters zeros", func(t *testing.T, path string) {
			n := size(t, path) / 4
			overwrite(t, path, n, make([]byte, 3*n))
		}},
		{"noise from 8192 on", func(t *testing.T, path string) {
			overwrite(t, path, 8192, noise(int(size(t, path)-8192)))
		}},
		{"both meta pages zeros", func(t *testing.T, path string) {
			overwrite(t, path, 0, make([]byte, 2048))
		}},
		{"both meta pages one bit off", func(t *testing.T, path string) {
			b := read(t, path)
			overwrite(t, path, 40, []byte{b[40] ^ 1})
			overwrite(t, path, 1024+40, []byte{b[1024+40] ^ 1})
		}},
		{"text", func(t *testing.T, path string) {
			if err := os.WriteFile(path, bytes.Repeat([]byte("not a store\n"), 1000), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"a directory", func(t *testing.T, path string) {
			if err := errors.Join(os.Remove(path), os.MkdirAll(path+"/lost+found", 0o700)); err != nil {
				t.Fatal(err)
			}
		}},
		{"a link to nowhere", func(t *testing.T, path string) {
			if err := errors.Join(os.Remove(path), os.Symlink("nowhere", path)); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := damaged(t, test.hurt)
			before, beforeErr := os.ReadFile(o.Path)
			s, report := open(t, o)
			if report.Amnesia == "" || !report.Unclean || report.Created {
				t.Errorf("report: %+v", report)
			}
			if !strings.HasPrefix(report.SetAside, o.Path+".damaged-") {
				t.Fatalf("set aside as %q", report.SetAside)
			}
			after, afterErr := os.ReadFile(report.SetAside)
			if !bytes.Equal(before, after) || (beforeErr == nil) != (afterErr == nil) {
				t.Errorf("what was set aside is not what was there: %v, %v", beforeErr, afterErr)
			}
			whole, bare := right(t, s)
			t.Logf("%d records whole, %d bare; %s", whole, bare, report.Amnesia)
			insert(t, s, many+1)
			closeStore(t, s)
			// From then on all is well.
			s, report = open(t, o)
			if report.Amnesia != "" || report.SetAside != "" || report.Damaged != 0 || report.Unclean {
				t.Errorf("the next start: %+v", report)
			}
			if !has(t, s, many+1) {
				t.Error("the new store has forgotten its record")
			}
		})
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestVanishedFile(t *testing.T) {
	o := damaged(t, func(t *testing.T, path string) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	})
	_, report := open(t, o)
	if report.Amnesia == "" || report.Created || report.SetAside != "" {
		t.Errorf("report: %+v", report)
	}
}

func TestSetAsideTwice(t *testing.T) {
	o := options(t, t.TempDir())
	seen := make(map[string]bool)
	for range 3 {
		if err := os.WriteFile(o.Path, []byte("rubbish"), 0o600); err != nil {
			t.Fatal(err)
		}
		s, report := open(t, o)
		closeStore(t, s)
		if err := os.Remove(o.Path); err != nil {
			t.Fatal(err)
		}
		if seen[report.SetAside] {
			t.Fatalf("%s was used twice", report.SetAside)
		}
		seen[report.SetAside] = true
	}
	for path := range seen {
		if got := read(t, path); string(got) != "rubbish" {
			t.Errorf("%s holds %q", path, got)
		}
	}
}

// One meta page gone: bbolt goes back one commit in silence, and Open tells.
func TestOneMetaPage(t *testing.T) {
	for page := range 2 {
		o := damaged(t, func(t *testing.T, path string) {
			overwrite(t, path, int64(page)*1024+50, []byte{0xFF, 0xFE, 0xFD})
		})
		s, report := open(t, o)
		if report.Amnesia == "" || report.SetAside != "" {
			t.Errorf("page %d: report: %+v", page, report)
		}
		if whole, bare := right(t, s); whole < many-1 || bare != 0 {
			t.Errorf("page %d: %d whole, %d bare", page, whole, bare)
		}
	}
}

// A record that does not authenticate is in doubt under its key.
func TestDamagedRecord(t *testing.T) {
	o := damaged(t, func(t *testing.T, path string) {
		// The sealed body stands before its key in the leaf, nine bytes of
		// the entry's name in between. The keys are in clear.
		b := read(t, path)
		key := storetest.Record(17, 0).Key
		spots := indexes(b, key[:])
		if len(spots) == 0 {
			t.Fatal("the key is not in the file")
		}
		for _, i := range spots {
			overwrite(t, path, int64(i-9-60), []byte{b[i-9-60] ^ 4})
		}
	})
	s, report := open(t, o)
	if report.Damaged != 1 || report.SetAside != "" || report.Amnesia != "" || report.Records != many {
		t.Errorf("report: %+v", report)
	}
	r, ok := s.Get(storetest.Record(17, 0).Key)
	if !ok || r.State != dedup.Doubtful || r.Rev != 1 || r.Label != "" {
		t.Errorf("the damaged record is handed out as %+v, %v", r, ok)
	}
	if standing, err := s.Insert(t.Context(), storetest.Record(17, 0), 0); err != nil || standing == nil {
		t.Errorf("its next checkout is not in doubt: %v, %v", standing, err)
	}
	if whole, bare := right(t, s); whole != many-1 || bare != 1 {
		t.Errorf("%d whole, %d bare", whole, bare)
	}
	closeStore(t, s)
	// It is sealed anew as what it now is, and can be settled.
	s, report = open(t, o)
	if report.Damaged != 0 || report.Amnesia != "" || report.Records != many {
		t.Errorf("the next start: %+v", report)
	}
	r, _ = s.Get(storetest.Record(17, 0).Key)
	if err := s.Delete(t.Context(), r.Key, r.Token, dedup.Synced); err != nil {
		t.Error(err)
	}
}

func indexes(b, sep []byte) (at []int) {
	for i := 0; ; {
		j := bytes.Index(b[i:], sep)
		if j < 0 {
			return at
		}
		at = append(at, i+j)
		i += j + len(sep)
	}
}

// A page that cannot be read costs the records after it in its time slice,
// not those of other slices.
func TestDamagedPage(t *testing.T) {
	for name, with := range map[string][]byte{
		"entries without end": {2, 0, 0xFF, 0xFF}, // flags and count of a leaf
		"no kind of page":     {0x40, 0, 1, 0},
		"a branch":            {1, 0, 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := damaged(t, func(t *testing.T, path string) {
				key := numbered(75).Key
				for _, i := range indexes(read(t, path), key[:]) {
					overwrite(t, path, int64(leafOf(t, path, i)+8), with)
				}
			})
			s, report := open(t, o)
			if report.SetAside == "" || report.Amnesia == "" {
				t.Errorf("report: %+v", report)
			}
			if whole, _ := right(t, s); whole < many-60 || whole == many {
				t.Errorf("%d records were carried over, want those of at least four slices", whole)
			}
		})
	}
}

// leafOf finds the page that holds the byte at i: the last page header before
// it that names its own place.
func leafOf(t *testing.T, path string, i int) int {
	t.Helper()
	b := read(t, path)
	for at := i / 1024 * 1024; at > 0; at -= 1024 {
		if binary.NativeEndian.Uint64(b[at:]) == uint64(at/1024) {
			return at
		}
	}
	t.Fatal("no page holds it")
	return 0
}

// Whatever bit flips, no record is ever wrong, and no loss is silent.
func TestBitFlips(t *testing.T) {
	flips := 50
	if testing.Short() {
		flips = 12
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	base := damaged(t, func(*testing.T, string) {})
	whole := read(t, base.Path)
	var harmless, told int
	for range flips {
		dir := crashed(t, filepath.Dir(base.Path))
		o := base
		o.Path = filepath.Join(dir, "store.db")
		at := rnd.IntN(len(whole))
		overwrite(t, o.Path, int64(at), []byte{whole[at] ^ 1<<rnd.IntN(8)})
		s, report := open(t, o)
		n, bare := right(t, s)
		switch {
		case n == many && bare == 0:
			harmless++
		case report.Amnesia != "" || report.Damaged > 0:
			told++
		default:
			t.Errorf("byte %d: %d records whole, %d bare, and nobody is told: %+v", at, n, bare, report)
		}
		closeStore(t, s)
	}
	if told == 0 {
		t.Error("no flip hit anything: the test is blind")
	}
	t.Logf("%d harmless, %d told", harmless, told)
}

// Without the marker of an opening that did not end nothing is checked first;
// with it, and a file that is sound, nothing is set aside.
func TestCheckIsAskedFirst(t *testing.T) {
	o := damaged(t, func(*testing.T, string) {})
	asked := 0
	o.Check = func(ctx context.Context, path string) error {
		asked++
		if path != o.Path {
			t.Errorf("asked to check %s", path)
		}
		return check(ctx, path)
	}
	for i := range 2 {
		s, report := open(t, o)
		if asked != 1 || report.Unclean != (i == 0) || report.SetAside != "" || report.Amnesia != "" || report.Records != many {
			t.Errorf("opening %d: asked %d times, report %+v", i, asked, report)
		}
		closeStore(t, s)
	}
}

func TestCheckSaysNo(t *testing.T) {
	o := damaged(t, func(*testing.T, string) {})
	o.Check = func(context.Context, string) error { return errors.New("signal: segmentation fault") }
	s, report := open(t, o)
	if report.SetAside == "" || !strings.Contains(report.Amnesia, "segmentation fault") {
		t.Errorf("report: %+v", report)
	}
	// What could be read was carried over all the same.
	if whole, _ := right(t, s); whole != many {
		t.Errorf("%d records were carried over, want %d", whole, many)
	}
	if v, ok := s.Value("name"); !ok || string(v) != "value" {
		t.Errorf("the value was not carried over: %q", v)
	}
}

func TestCheckIsCutShort(t *testing.T) {
	o := damaged(t, func(*testing.T, string) {})
	ctx, cancel := context.WithCancel(t.Context())
	o.Check = func(ctx context.Context, _ string) error {
		cancel()
		return ctx.Err()
	}
	if _, report, err := bolt.Open(ctx, o); !errors.Is(err, context.Canceled) || report.SetAside != "" {
		t.Errorf("Open = %+v, %v", report, err)
	}
	o.Check = check
	if _, report := open(t, o); !report.Unclean || report.Amnesia != "" || report.Records != many {
		t.Errorf("the next start: %+v", report)
	}
}

func TestCheckFile(t *testing.T) {
	o := damaged(t, func(*testing.T, string) {})
	before := read(t, o.Path)
	if err := bolt.CheckFile(o.Path); err != nil {
		t.Errorf("a sound store: %v", err)
	}
	if !bytes.Equal(read(t, o.Path), before) {
		t.Error("the check has changed the file")
	}
	if err := bolt.CheckFile(o.Path + ".none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	overwrite(t, o.Path, 2048, noise(len(before)-2048))
	if err := check(t.Context(), o.Path); err == nil {
		t.Error("noise passes for a store")
	}
}
