// Package memory keeps records in memory. Its Index is the one implementation
// of what a store means; Store is the index alone, the fall-back of a gate
// whose disk has failed, and the durable store is the same index with a file
// behind it.
package memory

import (
	"bytes"
	"iter"
	"slices"
	"sync"
	"time"

	"sip2gate/dedup"
)

// Entry is a record with its place in the order of claims.
type Entry struct {
	Record dedup.Record
	Seq    uint64 // higher for a later claim; kept for the record's life
	Slice  int64  // the time slice that it is filed under
}

// Index is the authoritative state of a store: records by key and by object,
// expiry by time slice, and named values. It is safe for concurrent use, and
// hands out and takes in copies only.
//
// Every change returns a Commit: the batch of changes that it belongs to.
// Whoever writes an index to a disk takes the batches with Drain; where
// nobody does, they gather and are ignored.
type Index struct {
	width time.Duration // of a time slice

	mu      sync.RWMutex
	records map[dedup.Digest]*Entry
	objects map[dedup.Digest][]*Entry // in the order of claims
	slices  map[int64]*slice
	values  map[string][]byte
	seq     uint64
	closed  bool

	changed       map[dedup.Digest]struct{} // since the last Drain
	changedValues map[string]struct{}
	commit        Commit
}

// slice is the records whose claims fell into one stretch of gate time.
type slice struct {
	entries map[*Entry]struct{}
	soonest time.Duration // no record expires earlier; 0: none will
}

// NewIndex is an empty index whose time slices are width long (a minute if
// width is not positive).
func NewIndex(width time.Duration) *Index {
	if width <= 0 {
		width = time.Minute
	}
	return &Index{
		width:         width,
		records:       make(map[dedup.Digest]*Entry),
		objects:       make(map[dedup.Digest][]*Entry),
		slices:        make(map[int64]*slice),
		values:        make(map[string][]byte),
		changed:       make(map[dedup.Digest]struct{}),
		changedValues: make(map[string]struct{}),
		commit:        newCommit(),
	}
}

// Insert is the first half of dedup.Store's: it changes the memory.
func (x *Index) Insert(r dedup.Record, now time.Duration) (standing *dedup.Record, c Commit, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, c, dedup.ErrClosed
	}
	if e := x.records[r.Key]; e != nil {
		if !e.Record.Expired(now) {
			s := clone(e.Record)
			return &s, c, nil
		}
		x.remove(e)
	}
	r = clone(r)
	r.Rev = 1
	x.seq++
	x.add(&Entry{Record: r, Seq: x.seq, Slice: x.sliceAt(r.ClaimedAt)})
	return nil, x.touch(r.Key), nil
}

// Update is dedup.Store's UpdateAll: all of rs or none.
func (x *Index) Update(rs ...dedup.Record) (now []dedup.Record, c Commit, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, c, dedup.ErrClosed
	}
	seen := make(map[dedup.Digest]struct{}, len(rs))
	for _, r := range rs {
		e := x.records[r.Key]
		if _, twice := seen[r.Key]; twice || e == nil || e.Record.Token != r.Token || e.Record.Rev != r.Rev {
			return nil, c, dedup.ErrStale
		}
		seen[r.Key] = struct{}{}
	}
	for _, r := range rs {
		old := x.records[r.Key]
		r = clone(r)
		r.Rev++
		x.remove(old)
		x.add(&Entry{Record: r, Seq: old.Seq, Slice: old.Slice})
		c = x.touch(r.Key)
		now = append(now, clone(r))
	}
	return now, c, nil
}

// Delete is the first half of dedup.Store's.
func (x *Index) Delete(key dedup.Digest, token dedup.Token) (c Commit, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return c, dedup.ErrClosed
	}
	e := x.records[key]
	if e == nil || e.Record.Token != token {
		return c, dedup.ErrStale
	}
	x.remove(e)
	return x.touch(key), nil
}

// Get returns the record with this key, expired or not.
func (x *Index) Get(key dedup.Digest) (dedup.Record, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	e := x.records[key]
	if e == nil {
		return dedup.Record{}, false
	}
	return clone(e.Record), true
}

// Object returns the records of one object, in the order of their claims.
func (x *Index) Object(object dedup.Digest) []dedup.Record {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var rs []dedup.Record
	for _, e := range x.objects[object] {
		rs = append(rs, clone(e.Record))
	}
	return rs
}

// All yields every record in the order of the claims, as they stood when the
// walk began; one that has been removed since is left out. The lock is not
// held while the caller has a record.
func (x *Index) All() iter.Seq[dedup.Record] {
	return func(yield func(dedup.Record) bool) {
		x.mu.RLock()
		entries := make([]*Entry, 0, len(x.records))
		for _, e := range x.records {
			entries = append(entries, e)
		}
		x.mu.RUnlock()
		slices.SortFunc(entries, bySeq)
		for _, e := range entries {
			if r, ok := x.Get(e.Record.Key); ok && !yield(r) {
				return
			}
		}
	}
}

// Len is the number of records, expired ones included.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.records)
}

// Put is the first half of dedup.Store's.
func (x *Index) Put(name string, value []byte) (c Commit, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return c, dedup.ErrClosed
	}
	if value == nil {
		delete(x.values, name)
	} else {
		x.values[name] = append([]byte{}, value...)
	}
	x.changedValues[name] = struct{}{}
	return x.commit, nil
}

// Value returns the value with this name.
func (x *Index) Value(name string) ([]byte, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	v, ok := x.values[name]
	return bytes.Clone(v), ok
}

// Close makes every later change fail with dedup.ErrClosed. It reports
// whether the index was open.
func (x *Index) Close() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	open := !x.closed
	x.closed = true
	return open
}

func (x *Index) sliceAt(t time.Duration) int64 { return int64(t / x.width) }

// touch notes that the record with this key has changed.
func (x *Index) touch(key dedup.Digest) Commit {
	x.changed[key] = struct{}{}
	return x.commit
}

func (x *Index) add(e *Entry) {
	x.records[e.Record.Key] = e
	same := x.objects[e.Record.Object]
	at, _ := slices.BinarySearchFunc(same, e, bySeq)
	x.objects[e.Record.Object] = slices.Insert(same, at, e)
	s := x.slices[e.Slice]
	if s == nil {
		s = &slice{entries: make(map[*Entry]struct{})}
		x.slices[e.Slice] = s
	}
	s.entries[e] = struct{}{}
	if t := e.Record.Expires; t != 0 && (s.soonest == 0 || t < s.soonest) {
		s.soonest = t
	}
}

func (x *Index) remove(e *Entry) {
	delete(x.records, e.Record.Key)
	same := x.objects[e.Record.Object]
	if i := slices.Index(same, e); i >= 0 {
		same = slices.Delete(same, i, i+1)
	}
	if len(same) == 0 {
		delete(x.objects, e.Record.Object)
	} else {
		x.objects[e.Record.Object] = same
	}
	s := x.slices[e.Slice]
	delete(s.entries, e)
	if len(s.entries) == 0 {
		delete(x.slices, e.Slice)
	}
}

func bySeq(a, b *Entry) int {
	switch {
	case a.Seq < b.Seq:
		return -1
	case a.Seq > b.Seq:
		return 1
	}
	return 0
}

// clone is a copy of r that shares no memory with it.
func clone(r dedup.Record) dedup.Record {
	r.Compared = slices.Clone(r.Compared)
	r.Request = bytes.Clone(r.Request)
	r.Answer = bytes.Clone(r.Answer)
	return r
}
