package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"sip2gate/dedup"
)

func testObject(t *testing.T, h Harness) {
	object := digest("one object")
	if rs := h.Store.Object(object); len(rs) != 0 {
		t.Fatalf("Object of nothing: %v", labels(rs))
	}
	var want []string
	for _, n := range []int{5, 3, 9, 1} { // not the order of the keys
		r := Record(n, time.Duration(len(want))*second)
		r.Object = object
		insert(t, h.Store, r, r.ClaimedAt)
		want = append(want, r.Label)
	}
	insert(t, h.Store, Record(7, 0), 0)
	// A change does not alter the order of the claims.
	update(t, h.Store, get(t, h.Store, Record(5, 0).Key), dedup.Lazy)
	if got := labels(h.Store.Object(object)); !slices.Equal(got, want) {
		t.Errorf("Object = %v, want %v", got, want)
	}
}

func testAll(t *testing.T, h Harness) {
	for range h.Store.All() {
		t.Fatal("an empty store has a record")
	}
	for n := range 20 {
		r := Record(n, time.Duration(n)*time.Hour)
		r.Expires = r.ClaimedAt + 1
		insert(t, h.Store, r, r.ClaimedAt)
	}
	seen := make(map[dedup.Digest]bool)
	for r := range h.Store.All() {
		seen[r.Key] = true
	}
	if len(seen) != 20 {
		t.Errorf("All yields %d records, want 20", len(seen))
	}
	n := 0
	for range h.Store.All() {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("the walk went on after its end: %d records", n)
	}
}

// The walk may be used to change what it shows.
func testAllWhileChanging(t *testing.T, h Harness) {
	for n := range 20 {
		insert(t, h.Store, Record(n, 0), 0)
	}
	for r := range h.Store.All() {
		if err := h.Store.Delete(t.Context(), r.Key, r.Token, dedup.Behind); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(h.Store); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

func testSweep(t *testing.T, h Harness) {
	forever := Record(0, 0)
	insert(t, h.Store, forever, 0)
	for n := 1; n <= 10; n++ {
		r := Record(n, 0)
		r.Expires = time.Duration(n) * second
		insert(t, h.Store, r, 0)
	}
	for _, step := range []struct {
		now           time.Duration
		removed, left int
	}{
		{0, 0, 11}, {second - 1, 0, 11}, {second, 1, 10}, {4 * second, 3, 7}, {4 * second, 0, 7}, {time.Hour, 6, 1},
	} {
		n, err := h.Store.Sweep(t.Context(), step.now)
		if err != nil || n != step.removed {
			t.Errorf("Sweep at %v = %d, %v; want %d", step.now, n, err, step.removed)
		}
		if n := count(h.Store); n != step.left {
			t.Errorf("after the sweep at %v: %d records, want %d", step.now, n, step.left)
		}
	}
	equal(t, get(t, h.Store, forever.Key), at1(forever))
	if rs := h.Store.Object(Record(3, 0).Object); len(rs) != 0 {
		t.Errorf("swept, and still found by its object: %v", labels(rs))
	}
}

// A claim in doubt outlives those of its time, stays what it is, and can be
// changed after.
func testSweepKeepsEarlyClaims(t *testing.T, h Harness) {
	doubt := Record(0, 0)
	doubt.State = dedup.Doubtful
	insert(t, h.Store, doubt, 0)
	want := at1(doubt)
	for hour := range 48 {
		now := time.Duration(hour) * time.Hour
		for i := range 3 {
			r := Record(1+hour*3+i, now)
			r.Expires = now + window
			insert(t, h.Store, r, now)
		}
		if n, err := h.Store.Sweep(t.Context(), now+time.Hour); n != 3 || err != nil {
			t.Fatalf("hour %d: Sweep = %d, %v; want 3", hour, n, err)
		}
		equal(t, get(t, h.Store, doubt.Key), want)
		want = update(t, h.Store, want, dedup.Behind)
	}
}

func testSweepMany(t *testing.T, h Harness) {
	const many = 500
	for n := range many {
		r := Record(n, time.Duration(n)*second)
		r.Expires = r.ClaimedAt + window
		if n%10 == 0 {
			r.Expires = 0
		}
		insert(t, h.Store, r, r.ClaimedAt)
	}
	n, err := h.Store.Sweep(t.Context(), time.Hour)
	if err != nil || n != many-many/10 {
		t.Errorf("Sweep = %d, %v; want %d", n, err, many-many/10)
	}
	for n := range many {
		if _, ok := h.Store.Get(Record(n, 0).Key); ok != (n%10 == 0) {
			t.Fatalf("record %d: present is %v", n, ok)
		}
	}
}

func testValues(t *testing.T, h Harness) {
	if v, ok := h.Store.Value("nothing"); ok {
		t.Errorf("Value of nothing = %q", v)
	}
	put := func(name string, v []byte, d dedup.Durability) {
		t.Helper()
		if err := h.Store.Put(t.Context(), name, v, d); err != nil {
			t.Fatal(err)
		}
	}
	want := func(name, v string) {
		t.Helper()
		if got, ok := h.Store.Value(name); !ok || string(got) != v {
			t.Errorf("Value(%s) = %q, %v; want %q", name, got, ok, v)
		}
	}
	put("a", []byte("1"), dedup.Synced)
	put("b", []byte("2"), dedup.Behind)
	put("empty", []byte{}, dedup.Lazy)
	want("a", "1")
	want("b", "2")
	want("empty", "")
	put("a", []byte("3"), dedup.Lazy)
	want("a", "3")
	put("a", nil, dedup.Synced)
	if v, ok := h.Store.Value("a"); ok {
		t.Errorf("Value after its removal = %q", v)
	}
	want("b", "2")
}

// each calls every method that can fail.
func each(ctx context.Context, s dedup.Store, r dedup.Record) map[string]error {
	_, insert := s.Insert(ctx, Record(99, 0), 0)
	_, update := s.Update(ctx, r, dedup.Behind)
	_, updateAll := s.UpdateAll(ctx, []dedup.Record{r}, dedup.Behind)
	_, sweep := s.Sweep(ctx, 1<<62)
	return map[string]error{
		"Insert":    insert,
		"Update":    update,
		"UpdateAll": updateAll,
		"Delete":    s.Delete(ctx, r.Key, r.Token, dedup.Behind),
		"Sweep":     sweep,
		"Put":       s.Put(ctx, "name", []byte("v"), dedup.Behind),
	}
}

// A call whose context has ended does nothing.
func testContext(t *testing.T, h Harness) {
	r := Record(1, 0)
	r.Expires = second
	insert(t, h.Store, r, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range each(ctx, h.Store, at1(r)) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want the context's error", name, err)
		}
	}
	equal(t, get(t, h.Store, r.Key), at1(r))
	if n := count(h.Store); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

func testClose(t *testing.T, h Harness) {
	r := Record(1, 0)
	insert(t, h.Store, r, 0)
	if err := h.Store.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	for name, err := range each(t.Context(), h.Store, at1(r)) {
		if !errors.Is(err, dedup.ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
	if err := h.Store.Close(); !errors.Is(err, dedup.ErrClosed) {
		t.Errorf("second Close: %v, want ErrClosed", err)
	}
	_ = fmt.Sprint(h.Store.Health()) // must not hang or panic
}
