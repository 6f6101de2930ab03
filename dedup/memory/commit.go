package memory

import (
	"maps"
	"slices"
	"sync"
	"time"

	"sip2gate/dedup"
)

// Commit is a batch of changes on its way to the disk.
type Commit struct{ s *commitState }

type commitState struct {
	done chan struct{}
	once sync.Once
}

func newCommit() Commit { return Commit{&commitState{done: make(chan struct{})}} }

// Done is closed when writing the batch has been tried. The zero Commit,
// which stands for no change, has a nil channel.
func (c Commit) Done() <-chan struct{} {
	if c.s == nil {
		return nil
	}
	return c.s.done
}

// Finish closes Done. It may be called more than once.
func (c Commit) Finish() { c.s.once.Do(func() { close(c.s.done) }) }

// Batch is what has changed since the last Drain, as it stands now: one
// consistent cut through the index. The records in it are the index's own and
// must not be written to.
type Batch struct {
	Commit
	Records []Entry           // that are new or have changed
	Gone    []dedup.Digest    // that are no more
	Values  map[string][]byte // nil: removed
}

// Empty reports whether there is nothing to write.
func (b Batch) Empty() bool { return len(b.Records)+len(b.Gone)+len(b.Values) == 0 }

// Shift moves every time in the batch's records by d: from one clock to
// another.
func (b Batch) Shift(d time.Duration) {
	for i := range b.Records {
		r := &b.Records[i].Record
		r.ClaimedAt += d
		r.TouchedAt += d
		if r.CompletedAt != 0 {
			r.CompletedAt += d
		}
		if r.Expires != 0 {
			r.Expires += d
		}
	}
}

// Drain takes the batch that has been gathering and begins the next.
func (x *Index) Drain() Batch {
	x.mu.Lock()
	defer x.mu.Unlock()
	b := Batch{Commit: x.commit}
	for key := range x.changed {
		if e := x.records[key]; e != nil {
			b.Records = append(b.Records, *e)
		} else {
			b.Gone = append(b.Gone, key)
		}
	}
	if len(x.changedValues) > 0 {
		b.Values = make(map[string][]byte, len(x.changedValues))
		for name := range x.changedValues {
			b.Values[name] = x.values[name]
		}
	}
	clear(x.changed)
	clear(x.changedValues)
	x.commit = newCommit()
	return b
}

// Snapshot is everything there is, in the order of the claims: one consistent
// cut through the index. It takes nothing out of the next batch. The records
// in it are the index's own and must not be written to.
func (x *Index) Snapshot() ([]Entry, map[string][]byte) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	entries := make([]Entry, 0, len(x.records))
	for _, e := range x.records {
		entries = append(entries, *e)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return bySeq(&a, &b) })
	return entries, maps.Clone(x.values)
}

// Return puts a batch back that could not be written: what it names will be
// in the next one, as it then stands.
func (x *Index) Return(b Batch) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range b.Records {
		x.changed[e.Record.Key] = struct{}{}
	}
	for _, key := range b.Gone {
		x.changed[key] = struct{}{}
	}
	for name := range b.Values {
		x.changedValues[name] = struct{}{}
	}
}

// Load files a record as it was found on a disk, Rev and place included,
// over one with its key of an earlier claim. It is no change.
func (x *Index) Load(e Entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if old := x.records[e.Record.Key]; old != nil {
		if old.Seq > e.Seq {
			return
		}
		x.remove(old)
	}
	e.Record = clone(e.Record)
	x.seq = max(x.seq, e.Seq)
	x.add(&e)
}

// LoadValue files a value as it was found on a disk.
func (x *Index) LoadValue(name string, value []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.values[name] = append([]byte{}, value...)
}

// Touch puts the record with this key into the next batch though it has not
// changed: its copy on the disk is not as it should be.
func (x *Index) Touch(key dedup.Digest) Commit {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.touch(key)
}

// TouchValue is Touch for a value.
func (x *Index) TouchValue(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.changedValues[name] = struct{}{}
}

// Adopt takes over what a batch of another index says, whatever stands here.
func (x *Index) Adopt(b Batch) Commit {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range b.Records {
		if old := x.records[e.Record.Key]; old != nil {
			x.remove(old)
		}
		x.seq++
		x.add(&Entry{Record: clone(e.Record), Seq: x.seq, Slice: x.sliceAt(e.Record.ClaimedAt)})
		x.touch(e.Record.Key)
	}
	for _, key := range b.Gone {
		if old := x.records[key]; old != nil {
			x.remove(old)
			x.touch(key)
		}
	}
	for name, v := range b.Values {
		if v == nil {
			delete(x.values, name)
		} else {
			x.values[name] = append([]byte{}, v...)
		}
		x.changedValues[name] = struct{}{}
	}
	return x.commit
}
