package memory_test

import (
	"testing"
	"time"

	"sip2gate/dedup"
	"sip2gate/dedup/memory"
	"sip2gate/dedup/storetest"
)

// expiring is record n, claimed at a moment and expiring at another (0: never).
func expiring(n int, at, end time.Duration) dedup.Record {
	r := storetest.Record(n, at)
	r.Expires = end
	return r
}

func fill(t *testing.T, x *memory.Index, from, to int, at, end time.Duration) {
	t.Helper()
	for n := from; n < to; n++ {
		if standing, _, err := x.Insert(expiring(n, at, end), at); err != nil || standing != nil {
			t.Fatalf("Insert = %v, %v", standing, err)
		}
	}
}

// sweep sweeps to the end and returns what each step's batch would write.
func sweep(t *testing.T, x *memory.Index, now time.Duration) (batches []memory.Batch) {
	t.Helper()
	x.Drain()
	for {
		swept, err := x.Sweep(now)
		if err != nil {
			t.Fatal(err)
		}
		if !swept.More {
			return batches
		}
		batches = append(batches, x.Drain())
	}
}

// A time slice in which all has expired goes in one step, however large.
func TestSweepDropsWholeSlices(t *testing.T) {
	x := memory.NewIndex(time.Minute)
	fill(t, x, 0, 1000, 0, time.Hour)
	fill(t, x, 1000, 1100, 2*time.Minute, time.Hour)
	batches := sweep(t, x, time.Hour)
	if len(batches) != 2 || len(batches[0].Gone) != 1000 || len(batches[1].Gone) != 100 {
		t.Errorf("%d steps for two slices", len(batches))
	}
	if x.Len() != 0 {
		t.Errorf("%d records are left", x.Len())
	}
}

// Where much still lives, only few records are removed at a time.
func TestSweepStepsAreBounded(t *testing.T) {
	x := memory.NewIndex(time.Minute)
	fill(t, x, 0, 200, 0, time.Hour)
	fill(t, x, 200, 500, 0, 0)
	total := 0
	for _, b := range sweep(t, x, time.Hour) {
		if len(b.Gone) > 64 || len(b.Records) > 64 {
			t.Errorf("a step of %d removals and %d moves", len(b.Gone), len(b.Records))
		}
		total += len(b.Gone)
	}
	if total != 200 || x.Len() != 300 {
		t.Errorf("%d removed and %d left, want 200 and 300", total, x.Len())
	}
}

// What outlives its slice is moved to the current one, in bounded steps, and
// the slice is dropped after.
func TestSweepMovesTheLiving(t *testing.T) {
	x := memory.NewIndex(time.Minute)
	fill(t, x, 0, 300, 0, time.Hour)
	fill(t, x, 300, 400, 0, 0)
	now := time.Hour
	moved := 0
	batches := sweep(t, x, now)
	for i, b := range batches {
		if len(b.Records) > 64 {
			t.Errorf("a step of %d moves", len(b.Records))
		}
		for _, e := range b.Records {
			if e.Slice != int64(now/time.Minute) {
				t.Errorf("moved to slice %d", e.Slice)
			}
			if e.Record.Rev != 1 || e.Seq == 0 {
				t.Errorf("a move changed the record: revision %d, place %d", e.Record.Rev, e.Seq)
			}
		}
		moved += len(b.Records)
		if last := i == len(batches)-1; last != (len(b.Gone) > 0) {
			t.Errorf("step %d of %d removes %d", i+1, len(batches), len(b.Gone))
		}
	}
	if moved != 100 || x.Len() != 100 {
		t.Errorf("%d moved and %d left, want 100 and 100", moved, x.Len())
	}
	if more := sweep(t, x, now+time.Hour); len(more) != 0 {
		t.Errorf("the next sweep, with nothing to do, takes %d steps", len(more))
	}
}

// Slices that hold a few records each do not pile up.
func TestSweepMergesSmallSlices(t *testing.T) {
	x := memory.NewIndex(time.Minute)
	const doubts = 200
	for n := range doubts {
		fill(t, x, n, n+1, time.Duration(n)*time.Hour, 0)
	}
	sweep(t, x, doubts*time.Hour)
	slices := make(map[int64]bool)
	for n := range doubts {
		x.Touch(storetest.Record(n, 0).Key)
	}
	for _, e := range x.Drain().Records {
		slices[e.Slice] = true
	}
	if len(slices) > 13 || x.Len() != doubts {
		t.Errorf("%d records in %d slices", x.Len(), len(slices))
	}
}

// A batch that could not be written comes back with the next one, as things
// then stand.
func TestReturn(t *testing.T) {
	x := memory.NewIndex(time.Minute)
	fill(t, x, 0, 2, 0, 0)
	if _, err := x.Put("name", []byte("v")); err != nil {
		t.Fatal(err)
	}
	b := x.Drain()
	if len(b.Records) != 2 || len(b.Values) != 1 {
		t.Fatalf("the first batch holds %d records and %d values", len(b.Records), len(b.Values))
	}
	if !x.Drain().Empty() {
		t.Error("what has been drained is drained again")
	}
	if _, err := x.Delete(storetest.Record(0, 0).Key, storetest.Record(0, 0).Token); err != nil {
		t.Fatal(err)
	}
	x.Return(b)
	b = x.Drain()
	if len(b.Records) != 1 || len(b.Gone) != 1 || len(b.Values) != 1 {
		t.Errorf("the next batch holds %d records, %d removals, %d values", len(b.Records), len(b.Gone), len(b.Values))
	}
}
