package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"

	"sip2gate/dedup"
	"sip2gate/dedup/clock"
	"sip2gate/dedup/memory"
)

// contents is what was found in a file.
type contents struct {
	entries  []memory.Entry
	stale    map[dedup.Digest]bool // found, but not as it should stand there
	bare     map[dedup.Digest]bool // of which only the key could be read
	values   map[string][]byte
	renew    map[string]bool // values sealed under a former secret
	mark     *clock.Mark
	sum      uint64  // as the mark says
	found    uint64  // over the records that were read
	sealed   int     // things that should have authenticated
	opened   int     // things that did
	damaged  int     // records that did not
	lost     int     // of them, those whose key does not show either
	barren   []int64 // slices without a record
	faults   []error // what could not be read at all
	shortSum bool    // the records are not those that the mark knows of
}

// read walks the whole file once. A bucket whose pages fault or make bbolt
// panic is given up, and noted, where the caller wants to go on; the rest is
// read.
func (c *contents) read(db *bbolt.DB, s *sealer) error {
	tx, err := db.Begin(false)
	if err != nil {
		return fmt.Errorf("beginning to read the store: %w", err)
	}
	// On a fault the transaction is left open on purpose: after a fault
	// bbolt's Close waits for ever for it, and the file is given up anyway.
	err = guard(func() error {
		c.stale = make(map[dedup.Digest]bool)
		c.bare = make(map[dedup.Digest]bool)
		c.values = make(map[string][]byte)
		c.renew = make(map[string]bool)
		cur := tx.Cursor()
		for name, _ := cur.First(); name != nil; name, _ = cur.Next() {
			name := bytes.Clone(name)
			if err := guard(func() error { return c.bucket(tx, s, name) }); err != nil {
				c.faults = append(c.faults, fmt.Errorf("bucket %x: %w", name, err))
			}
		}
		return nil
	})
	if err != nil {
		c.faults = append(c.faults, err)
	}
	c.shortSum = c.mark != nil && c.sum != c.found
	if len(c.faults) > 0 {
		return c.faults[0]
	}
	return tx.Rollback()
}

func (c *contents) bucket(tx *bbolt.Tx, s *sealer, name []byte) error {
	b := tx.Bucket(name)
	if b == nil {
		return fmt.Errorf("is not a bucket")
	}
	switch {
	case bytes.Equal(name, bucketMeta):
		c.readMark(b, s)
		return nil
	case bytes.Equal(name, bucketValues):
		return b.ForEach(func(k, v []byte) error {
			c.readValue(s, k, v)
			return nil
		})
	}
	n, ok := parseSlice(name)
	if !ok {
		return fmt.Errorf("has an unknown name")
	}
	return c.readSlice(b, s, n, name)
}

func (c *contents) readMark(b *bbolt.Bucket, s *sealer) {
	sealed := b.Get(keyMark)
	if sealed == nil {
		return
	}
	c.sealed++
	plain, _, err := s.open(bucketMeta, keyMark, sealed)
	if err != nil {
		return
	}
	c.opened++
	if m, sum, err := parseMark(plain); err == nil {
		c.mark, c.sum = &m, sum
	}
}

func (c *contents) readValue(s *sealer, name, sealed []byte) {
	c.sealed++
	plain, former, err := s.open(bucketValues, name, sealed)
	if err != nil {
		return
	}
	c.opened++
	c.values[string(name)] = plain
	if former {
		c.renew[string(name)] = true
	}
}

// readSlice reads the records of one time slice. The two entries of a record
// stand side by side; either may be missing or damaged.
func (c *contents) readSlice(b *bbolt.Bucket, s *sealer, n int64, name []byte) error {
	type pair struct{ key, body []byte }
	var seqs []uint64
	pairs := make(map[uint64]pair)
	walk := func(k, v []byte) error {
		if len(k) != 9 || v == nil {
			c.damaged++
			c.lost++
			return nil
		}
		seq := binary.BigEndian.Uint64(k)
		p, seen := pairs[seq]
		if !seen {
			seqs = append(seqs, seq)
		}
		switch k[8] {
		case suffixKey:
			p.key = v
		case suffixBody:
			p.body = v
		}
		pairs[seq] = p
		return nil
	}
	// What stands before a page that cannot be read is not lost with it.
	err := guard(func() error { return b.ForEach(walk) })
	for _, seq := range seqs {
		p := pairs[seq]
		err = errors.Join(err, guard(func() error {
			c.readPair(s, spot{n, seq}, name, p.key, p.body)
			return nil
		}))
	}
	if len(seqs) == 0 && err == nil {
		c.barren = append(c.barren, n)
	}
	return err
}

func (c *contents) readPair(s *sealer, at spot, bucket, key, body []byte) {
	c.sealed++
	plain, former, err := s.open(bucket, entryKey(at.seq, suffixBody), body)
	if err == nil {
		var r dedup.Record
		if r, err = parseRecord(plain); err == nil {
			c.opened++
			c.entries = append(c.entries, memory.Entry{Record: r, Seq: at.seq, Slice: at.slice})
			c.found += share(at.seq, r.Rev)
			if former || !bytes.Equal(key, r.Key[:]) {
				c.stale[r.Key] = true
			}
			return
		}
	}
	c.damaged++
	if len(key) != len(dedup.Digest{}) {
		c.lost++
		return
	}
	// All that is known is that this transaction was under way. Its next
	// checkout must not be sent unread.
	r := dedup.Record{Key: dedup.Digest(key), State: dedup.Doubtful, Rev: 1}
	r.Pair = r.Key
	c.entries = append(c.entries, memory.Entry{Record: r, Seq: at.seq, Slice: at.slice})
	c.stale[r.Key] = true
	c.bare[r.Key] = true
}

// newest is the largest gate time that any record shows.
func (c *contents) newest() (t time.Duration) {
	for _, e := range c.entries {
		t = max(t, e.Record.ClaimedAt, e.Record.TouchedAt, e.Record.CompletedAt)
	}
	return t
}

// fill puts what was found into an index, and into f where it stands (f may
// be nil: then it stands nowhere yet and all of it is to be written).
func (c *contents) fill(x *memory.Index, f *file) {
	for _, e := range c.entries {
		x.Load(e)
		if f == nil {
			x.Touch(e.Record.Key)
			continue
		}
		f.note(e.Record.Key, spot{e.Slice, e.Seq})
		if !c.bare[e.Record.Key] {
			f.credit(e.Record.Key, share(e.Seq, e.Record.Rev))
		}
		if c.stale[e.Record.Key] || len(f.where[e.Record.Key].spots) > 1 {
			x.Touch(e.Record.Key)
		}
	}
	for name, v := range c.values {
		x.LoadValue(name, v)
		if f == nil || c.renew[name] {
			x.TouchValue(name)
		}
	}
}

// guard runs fn and turns a panic, or a fault on a mapped page, into an
// error. It covers fn's own goroutine only.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	return fn()
}
