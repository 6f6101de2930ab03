package storetest

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"sip2gate/dedup"
)

func (h *Harness) restart(t *testing.T, clean bool) dedup.Store {
	t.Helper()
	if h.Reopen == nil {
		t.Skip("the store ends with its process")
	}
	h.Store = h.Reopen(t, clean)
	return h.Store
}

func testRestartClean(t *testing.T, h Harness) {
	want := make(map[dedup.Digest]dedup.Record)
	for n, d := range []dedup.Durability{dedup.Synced, dedup.Behind, dedup.Lazy} {
		insert(t, h.Store, Record(n, 0), 0)
		r := update(t, h.Store, completed(get(t, h.Store, Record(n, 0).Key), second), d)
		want[r.Key] = r
		insert(t, h.Store, Record(n+10, 0), 0)
		if err := h.Store.Delete(t.Context(), Record(n+10, 0).Key, token(n+10), d); err != nil {
			t.Fatal(err)
		}
		if err := h.Store.Put(t.Context(), d2s(d), []byte(d2s(d)), d); err != nil {
			t.Fatal(err)
		}
	}
	s := h.restart(t, true)
	if n := count(s); n != len(want) {
		t.Errorf("%d records after the restart, want %d", n, len(want))
	}
	for key, r := range want {
		equal(t, get(t, s, key), r)
	}
	for _, d := range []dedup.Durability{dedup.Synced, dedup.Behind, dedup.Lazy} {
		if v, ok := s.Value(d2s(d)); !ok || string(v) != d2s(d) {
			t.Errorf("Value(%s) = %q, %v", d2s(d), v, ok)
		}
	}
	// And it goes on from there.
	r := get(t, s, Record(1, 0).Key)
	r.Station = "after"
	update(t, s, r, dedup.Synced)
	insert(t, s, Record(50, 0), 0)
}

func d2s(d dedup.Durability) string { return []string{"synced", "behind", "lazy"}[d] }

func testRestartCrash(t *testing.T, h Harness) {
	for n := range 6 {
		insert(t, h.Store, Record(n, 0), 0)
	}
	done := update(t, h.Store, completed(get(t, h.Store, Record(1, 0).Key), second), dedup.Synced)
	rs, err := h.Store.UpdateAll(t.Context(), []dedup.Record{
		completed(get(t, h.Store, Record(2, 0).Key), second),
		completed(get(t, h.Store, Record(3, 0).Key), second),
	}, dedup.Synced)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Store.Delete(t.Context(), Record(4, 0).Key, token(4), dedup.Synced); err != nil {
		t.Fatal(err)
	}
	if err := h.Store.Put(t.Context(), "name", []byte("v"), dedup.Synced); err != nil {
		t.Fatal(err)
	}
	s := h.restart(t, false)
	equal(t, get(t, s, Record(0, 0).Key), at1(Record(0, 0)))
	equal(t, get(t, s, done.Key), done)
	equal(t, get(t, s, rs[0].Key), rs[0])
	equal(t, get(t, s, rs[1].Key), rs[1])
	absent(t, s, Record(4, 0).Key)
	equal(t, get(t, s, Record(5, 0).Key), at1(Record(5, 0)))
	if v, ok := s.Value("name"); !ok || string(v) != "v" {
		t.Errorf("Value = %q, %v", v, ok)
	}
}

func testRestartAfterSweep(t *testing.T, h Harness) {
	for n := range 200 {
		r := Record(n, time.Duration(n)*second)
		if r.Expires = r.ClaimedAt + window; n%20 == 0 {
			r.Expires = 0
		}
		insert(t, h.Store, r, r.ClaimedAt)
	}
	if n, err := h.Store.Sweep(t.Context(), time.Hour); n != 190 || err != nil {
		t.Fatalf("Sweep = %d, %v; want 190", n, err)
	}
	s := h.restart(t, false)
	if n := count(s); n != 10 {
		t.Errorf("%d records after the restart, want 10", n)
	}
	for n := 0; n < 200; n += 20 {
		equal(t, get(t, s, Record(n, 0).Key), at1(func() dedup.Record {
			return Record(n, time.Duration(n)*second)
		}()))
	}
}

func testRestartOrder(t *testing.T, h Harness) {
	var want []string
	add := func(s dedup.Store, n int, at time.Duration) {
		r := Record(n, at)
		r.Object = digest("one object")
		insert(t, s, r, at)
		want = append(want, r.Label)
	}
	// Claims of one moment and of different ones, in any order of keys.
	for i, n := range []int{8, 2, 5, 1} {
		add(h.Store, n, time.Duration(i/2)*time.Hour)
	}
	s := h.restart(t, false)
	add(s, 3, 2*time.Hour)
	add(s, 0, 2*time.Hour)
	s = h.restart(t, true)
	if got := labels(s.Object(digest("one object"))); !slices.Equal(got, want) {
		t.Errorf("Object = %v, want %v", got, want)
	}
}

// A long random run is compared with a plain map, over restarts.
func testRandom(t *testing.T, h Harness) {
	rnd := rand.New(rand.NewPCG(1, 2))
	model := make(map[dedup.Digest]dedup.Record)
	var now time.Duration
	tokens := 1000
	for range 3000 {
		now += time.Duration(rnd.IntN(4000)) * time.Millisecond
		key := Record(rnd.IntN(60), 0).Key
		was, stands := model[key]
		switch rnd.IntN(8) {
		case 0, 1, 2:
			r := Record(rnd.IntN(60), now)
			tokens++
			r.Token = token(tokens)
			if was, stands = model[r.Key]; stands && was.Expired(now) {
				stands = false
			}
			standing, err := h.Store.Insert(t.Context(), r, now)
			if err != nil || (standing != nil) != stands {
				t.Fatalf("Insert = %v, %v; want standing %v", standing, err, stands)
			}
			if stands {
				equal(t, *standing, was)
			} else {
				model[r.Key] = at1(r)
			}
		case 3, 4, 5:
			if stands {
				model[key] = update(t, h.Store, completed(was, now), dedup.Durability(rnd.IntN(3)))
			}
		case 6:
			if stands {
				if err := h.Store.Delete(t.Context(), key, was.Token, dedup.Durability(rnd.IntN(3))); err != nil {
					t.Fatal(err)
				}
				delete(model, key)
			}
		case 7:
			if rnd.IntN(4) > 0 {
				continue
			}
			if _, err := h.Store.Sweep(t.Context(), now); err != nil {
				t.Fatal(err)
			}
			for key, r := range model {
				if r.Expired(now) {
					delete(model, key)
				}
			}
			if h.Reopen != nil && rnd.IntN(4) == 0 {
				h.restart(t, true)
			}
		}
	}
	got := make(map[dedup.Digest]dedup.Record)
	for r := range h.Store.All() {
		got[r.Key] = r
	}
	if !reflect.DeepEqual(got, model) {
		t.Errorf("the store holds %d records and the model %d, or they differ", len(got), len(model))
	}
}
