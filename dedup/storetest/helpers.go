package storetest

import (
	"reflect"
	"testing"
	"time"

	"sip2gate/dedup"
)

func insert(t *testing.T, s dedup.Store, r dedup.Record, now time.Duration) {
	t.Helper()
	standing, err := s.Insert(t.Context(), r, now)
	if err != nil || standing != nil {
		t.Fatalf("Insert(%s) = %v, %v; want it inserted", r.Label, standing, err)
	}
}

func update(t *testing.T, s dedup.Store, r dedup.Record, d dedup.Durability) dedup.Record {
	t.Helper()
	now, err := s.Update(t.Context(), r, d)
	if err != nil {
		t.Fatalf("Update(%s): %v", r.Label, err)
	}
	return now
}

func get(t *testing.T, s dedup.Store, key dedup.Digest) dedup.Record {
	t.Helper()
	r, ok := s.Get(key)
	if !ok {
		t.Fatalf("Get(%.12s): no record", key[:])
	}
	return r
}

func equal(t *testing.T, got, want dedup.Record) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("record is\n%+v\nwant\n%+v", got, want)
	}
}

func absent(t *testing.T, s dedup.Store, key dedup.Digest) {
	t.Helper()
	if r, ok := s.Get(key); ok {
		t.Fatalf("Get: %+v; want no record", r)
	}
}

// at1 is r as a store shows it after its insert.
func at1(r dedup.Record) dedup.Record {
	r.Rev = 1
	return r
}

func labels(rs []dedup.Record) (ls []string) {
	for _, r := range rs {
		ls = append(ls, r.Label)
	}
	return ls
}

func count(s dedup.Store) (n int) {
	for range s.All() {
		n++
	}
	return n
}
