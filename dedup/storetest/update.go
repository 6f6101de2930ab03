package storetest

import (
	"errors"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"sip2gate/dedup"
)

func testUpdate(t *testing.T, h Harness) {
	r := Record(1, 10*second)
	insert(t, h.Store, r, 10*second)
	for i, d := range []dedup.Durability{dedup.Synced, dedup.Behind, dedup.Lazy} {
		was := get(t, h.Store, r.Key)
		want := completed(was, 12*second)
		want.Station = []string{"a", "b", "c"}[i]
		got := update(t, h.Store, want, d)
		want.Rev = was.Rev + 1
		equal(t, got, want)
		equal(t, get(t, h.Store, r.Key), want)
	}
}

func testUpdateStale(t *testing.T, h Harness) {
	r := Record(1, 0)
	if _, err := h.Store.Update(t.Context(), r, dedup.Synced); !errors.Is(err, dedup.ErrStale) {
		t.Errorf("Update of nothing: %v, want ErrStale", err)
	}
	insert(t, h.Store, r, 0)
	now := get(t, h.Store, r.Key)
	for name, change := range map[string]func(*dedup.Record){
		"another token":  func(r *dedup.Record) { r.Token = token(2) },
		"an older state": func(r *dedup.Record) { r.Rev-- },
		"a newer state":  func(r *dedup.Record) { r.Rev++ },
	} {
		bad := now
		change(&bad)
		bad.Station = "changed"
		if _, err := h.Store.Update(t.Context(), bad, dedup.Synced); !errors.Is(err, dedup.ErrStale) {
			t.Errorf("Update with %s: %v, want ErrStale", name, err)
		}
	}
	equal(t, get(t, h.Store, r.Key), now)
}

// Of many who saw the same revision one changes it.
func testUpdateRace(t *testing.T, h Harness) {
	const claimers = 64
	insert(t, h.Store, Record(1, 0), 0)
	seen := get(t, h.Store, Record(1, 0).Key)
	var won, stale atomic.Int32
	var wg sync.WaitGroup
	for range claimers {
		wg.Go(func() {
			switch _, err := h.Store.Update(t.Context(), seen, dedup.Synced); {
			case err == nil:
				won.Add(1)
			case errors.Is(err, dedup.ErrStale):
				stale.Add(1)
			default:
				t.Errorf("Update: %v", err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || stale.Load() != claimers-1 {
		t.Fatalf("%d updates were made and %d were stale, want 1 and %d", won.Load(), stale.Load(), claimers-1)
	}
}

func testUpdateMovesObject(t *testing.T, h Harness) {
	insert(t, h.Store, Record(1, 0), 0)
	r := get(t, h.Store, Record(1, 0).Key)
	old := r.Object
	r.Object = digest("elsewhere")
	update(t, h.Store, r, dedup.Behind)
	if rs := h.Store.Object(old); len(rs) != 0 {
		t.Errorf("still found by the old object: %v", labels(rs))
	}
	if rs := h.Store.Object(r.Object); len(rs) != 1 {
		t.Errorf("%d records found by the new object, want 1", len(rs))
	}
}

func testUpdateAll(t *testing.T, h Harness) {
	var rs []dedup.Record
	for n := range 5 {
		insert(t, h.Store, Record(n, 0), 0)
		rs = append(rs, completed(get(t, h.Store, Record(n, 0).Key), second))
	}
	got, err := h.Store.UpdateAll(t.Context(), rs, dedup.Synced)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range rs {
		want.Rev++
		equal(t, got[i], want)
		equal(t, get(t, h.Store, want.Key), want)
	}
	if rs, err := h.Store.UpdateAll(t.Context(), nil, dedup.Synced); len(rs) != 0 || err != nil {
		t.Errorf("UpdateAll of nothing = %v, %v", rs, err)
	}
}

func testUpdateAllStale(t *testing.T, h Harness) {
	var now []dedup.Record
	for n := range 3 {
		insert(t, h.Store, Record(n, 0), 0)
		now = append(now, get(t, h.Store, Record(n, 0).Key))
	}
	stale := slices.Clone(now)
	stale[2].Rev = 7
	twice := []dedup.Record{now[0], now[1], now[0]}
	missing := []dedup.Record{now[0], Record(9, 0)}
	for name, rs := range map[string][]dedup.Record{"stale": stale, "twice": twice, "missing": missing} {
		for i := range rs {
			rs[i].Station = "changed"
		}
		if _, err := h.Store.UpdateAll(t.Context(), rs, dedup.Synced); !errors.Is(err, dedup.ErrStale) {
			t.Errorf("%s: UpdateAll: %v, want ErrStale", name, err)
		}
	}
	for _, want := range now[:3] {
		want.Station = "kiosk-1"
		equal(t, get(t, h.Store, want.Key), want)
	}
}

// Whoever looks at the records of an object sees all of a change or none.
func testUpdateAllIsOneStep(t *testing.T, h Harness) {
	const keys, rounds = 4, 50
	var rs []dedup.Record
	for n := range keys {
		r := Record(n, 0)
		r.Object = digest("one object")
		insert(t, h.Store, r, 0)
		rs = append(rs, get(t, h.Store, r.Key))
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			var revs []uint64
			for _, r := range h.Store.Object(digest("one object")) {
				revs = append(revs, r.Rev)
			}
			if len(slices.Compact(revs)) != 1 {
				t.Errorf("half of a change was seen: revisions %v", revs)
				return
			}
		}
	})
	for range rounds {
		var err error
		if rs, err = h.Store.UpdateAll(t.Context(), rs, dedup.Behind); err != nil {
			t.Error(err)
			break
		}
	}
	close(done)
	wg.Wait()
}

func testDelete(t *testing.T, h Harness) {
	r := Record(1, 0)
	insert(t, h.Store, r, 0)
	if err := h.Store.Delete(t.Context(), r.Key, token(2), dedup.Synced); !errors.Is(err, dedup.ErrStale) {
		t.Errorf("Delete with another token: %v, want ErrStale", err)
	}
	equal(t, get(t, h.Store, r.Key), at1(r))
	// A later revision of the same claim is still that claim.
	update(t, h.Store, get(t, h.Store, r.Key), dedup.Behind)
	if err := h.Store.Delete(t.Context(), r.Key, r.Token, dedup.Synced); err != nil {
		t.Fatal(err)
	}
	absent(t, h.Store, r.Key)
	if rs := h.Store.Object(r.Object); len(rs) != 0 {
		t.Errorf("still found by its object: %v", labels(rs))
	}
	if err := h.Store.Delete(t.Context(), r.Key, r.Token, dedup.Synced); !errors.Is(err, dedup.ErrStale) {
		t.Errorf("Delete of nothing: %v, want ErrStale", err)
	}
	insert(t, h.Store, r, 0)
}

func testNoAliases(t *testing.T, h Harness) {
	r := Record(1, 0)
	r.Answer = []byte("answer")
	want := at1(Record(1, 0))
	want.Answer = []byte("answer")
	spoil := func(r dedup.Record) {
		clear(r.Request)
		clear(r.Answer)
		clear(r.Compared)
	}
	insert(t, h.Store, r, 0)
	spoil(r)
	equal(t, get(t, h.Store, r.Key), want)
	spoil(get(t, h.Store, r.Key))
	for _, r := range h.Store.Object(r.Object) {
		spoil(r)
	}
	for r := range h.Store.All() {
		spoil(r)
	}
	if standing, err := h.Store.Insert(t.Context(), r, 0); err != nil {
		t.Fatal(err)
	} else {
		spoil(*standing)
	}
	equal(t, get(t, h.Store, r.Key), want)
	in := get(t, h.Store, r.Key)
	out := update(t, h.Store, in, dedup.Behind)
	spoil(in)
	spoil(out)
	want.Rev++
	equal(t, get(t, h.Store, r.Key), want)

	v := []byte("value")
	if err := h.Store.Put(t.Context(), "name", v, dedup.Behind); err != nil {
		t.Fatal(err)
	}
	clear(v)
	got, _ := h.Store.Value("name")
	clear(got)
	if got, _ := h.Store.Value("name"); !reflect.DeepEqual(got, []byte("value")) {
		t.Errorf("Value = %q after the caller wrote to his slices", got)
	}
}
