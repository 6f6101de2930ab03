package storetest

import (
	"sync"
	"sync/atomic"
	"testing"

	"sip2gate/dedup"
)

func testInsert(t *testing.T, h Harness) {
	r := Record(1, 10*second)
	insert(t, h.Store, r, 10*second)
	equal(t, get(t, h.Store, r.Key), at1(r))
}

func testInsertStanding(t *testing.T, h Harness) {
	first := Record(1, 10*second)
	insert(t, h.Store, first, 10*second)
	other := Record(1, 11*second)
	other.Token = token(2)
	standing, err := h.Store.Insert(t.Context(), other, 11*second)
	if err != nil || standing == nil {
		t.Fatalf("Insert of a key that stands = %v, %v", standing, err)
	}
	equal(t, *standing, at1(first))
	equal(t, get(t, h.Store, first.Key), at1(first))
}

func testInsertOverExpired(t *testing.T, h Harness) {
	old := Record(1, 10*second)
	old.Expires = 20 * second
	insert(t, h.Store, old, 10*second)

	again := Record(1, 19*second)
	again.Token = token(2)
	again.Object = digest("another object")
	if standing, err := h.Store.Insert(t.Context(), again, 20*second-1); err != nil || standing == nil {
		t.Fatalf("Insert just before the end = %v, %v; want the standing record", standing, err)
	}
	again.ClaimedAt = 20 * second
	insert(t, h.Store, again, 20*second)
	equal(t, get(t, h.Store, old.Key), at1(again))
	if rs := h.Store.Object(old.Object); len(rs) != 0 {
		t.Errorf("the expired record is still found by its object: %v", labels(rs))
	}
	if n := count(h.Store); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

func testInsertNeverExpires(t *testing.T, h Harness) {
	r := Record(1, 0) // Expires is 0
	insert(t, h.Store, r, 0)
	standing, err := h.Store.Insert(t.Context(), r, 1<<62)
	if err != nil || standing == nil {
		t.Fatalf("Insert over a record that never expires = %v, %v", standing, err)
	}
}

func testInsertRace(t *testing.T, h Harness) {
	const claimers, rounds = 64, 8
	for round := range rounds {
		var won atomic.Int32
		var winner atomic.Value
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for i := range claimers {
			wg.Go(func() {
				r := Record(round, 0)
				r.Token = token(round*claimers + i)
				<-begin
				standing, err := h.Store.Insert(t.Context(), r, 0)
				switch {
				case err != nil:
					t.Errorf("Insert: %v", err)
				case standing == nil:
					won.Add(1)
					winner.Store(r.Token)
				case standing.Key != r.Key:
					t.Errorf("the standing record has another key")
				}
			})
		}
		close(begin)
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d of %d claimers won, want 1", won.Load(), claimers)
		}
		if r := get(t, h.Store, Record(round, 0).Key); r.Token != winner.Load() {
			t.Fatalf("the record is not the winner's")
		}
	}
}

func testGet(t *testing.T, h Harness) {
	absent(t, h.Store, digest("nothing"))
	r := Record(1, 0)
	r.Expires = second
	insert(t, h.Store, r, 0)
	// Get does not ask for the time: it shows what has expired too.
	equal(t, get(t, h.Store, r.Key), at1(r))
	empty := dedup.Record{Key: digest("empty")}
	insert(t, h.Store, empty, 0)
	equal(t, get(t, h.Store, empty.Key), at1(empty))
}
