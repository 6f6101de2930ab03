package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"go.etcd.io/bbolt"

	"sip2gate/dedup"
	"sip2gate/dedup/clock"
	"sip2gate/dedup/memory"
)

// The layout of the file:
//
//	meta      "mark" -> sealed mark: gate time, and what records there must be
//	values    name -> sealed value
//	s<slice>  seq "b" -> the sealed record; seq "k" -> its key
//
// There is one bucket per time slice, so that what has expired goes in one
// piece. In it records stand in the order of their claims: the claim, its
// completion and the claim after it touch the same leaf. The key stands apart
// from the record because it still shows when the record is damaged, and
// because bbolt does not split a leaf of fewer than five entries: with two
// entries each, two records share a leaf instead of four, which saves a
// quarter of what is written. The body stands first because bbolt splits
// before the entry that is too much for the page, which then is a body, not
// the body of a key that has stayed behind.
var (
	bucketMeta   = []byte("meta")
	bucketValues = []byte("values")
	keyMark      = []byte("mark")
)

const (
	slicePrefix = 's'
	suffixBody  = 'b'
	suffixKey   = 'k'
)

func sliceBucket(n int64) []byte {
	// The sign bit is turned so that the names sort as the numbers do.
	return binary.BigEndian.AppendUint64([]byte{slicePrefix}, uint64(n)^1<<63)
}

func parseSlice(name []byte) (int64, bool) {
	if len(name) != 9 || name[0] != slicePrefix {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(name[1:]) ^ 1<<63), true
}

func entryKey(seq uint64, suffix byte) []byte {
	return append(binary.BigEndian.AppendUint64(nil, seq), suffix)
}

// spot is where in the file a record stands.
type spot struct {
	slice int64
	seq   uint64
}

// stored is what the file is known to hold of one key.
type stored struct {
	spots []spot // more than one after a commit whose outcome is unknown
	sum   uint64 // the record's share in the file's sum
}

// file is the bbolt file and what is known to be in it. It belongs to one
// goroutine at a time.
type file struct {
	db      *bbolt.DB
	sealer  *sealer
	where   map[dedup.Digest]stored
	seqs    map[int64]map[uint64]struct{} // by slice: every spot in where
	sum     uint64                        // of where
	dubious bool                          // the last commit failed
	broken  error                         // bbolt died of the file: it is not touched again
	barren  []int64                       // slices in the file without a record: to be dropped

	commit func(*bbolt.DB, func(*bbolt.Tx) error) error // tests make it fail
	reopen func() (*bbolt.DB, error)                    // once the file has been rewritten
}

func newFile(db *bbolt.DB, s *sealer) *file {
	return &file{
		db:     db,
		sealer: s,
		where:  make(map[dedup.Digest]stored),
		seqs:   make(map[int64]map[uint64]struct{}),
		commit: (*bbolt.DB).Update,
	}
}

// share is what a record adds to the sum over all records, by which a file
// shows that none is missing and none is older than it should be.
func share(seq, rev uint64) uint64 {
	x := seq*0x9e3779b97f4a7c15 ^ rev*0xd1342543de82ef95
	x ^= x >> 31
	return x * 0xbf58476d1ce4e5b9
}

// note records that key stands, or may stand, at a spot.
func (f *file) note(key dedup.Digest, at spot) {
	s := f.where[key]
	for _, known := range s.spots {
		if known == at {
			return
		}
	}
	s.spots = append(s.spots, at)
	f.where[key] = s
	seqs := f.seqs[at.slice]
	if seqs == nil {
		seqs = make(map[uint64]struct{})
		f.seqs[at.slice] = seqs
	}
	seqs[at.seq] = struct{}{}
}

// forget is note undone.
func (f *file) forget(key dedup.Digest, at spot) {
	s := f.where[key]
	for i, known := range s.spots {
		if known == at {
			s.spots = append(s.spots[:i:i], s.spots[i+1:]...)
			break
		}
	}
	if len(s.spots) == 0 {
		delete(f.where, key)
	} else {
		f.where[key] = s
	}
	delete(f.seqs[at.slice], at.seq)
	if len(f.seqs[at.slice]) == 0 {
		delete(f.seqs, at.slice)
	}
}

// credit adds what is in the file of key to the sum.
func (f *file) credit(key dedup.Digest, share uint64) {
	s := f.where[key]
	s.sum += share
	f.where[key] = s
	f.sum += share
}

// removal is a key's spot that has to be cleared.
type removal struct {
	key dedup.Digest
	at  spot
}

// write puts one batch and the mark into the file, in one transaction. After
// an error it is unknown whether the batch is there; the caller puts it into
// a later one.
//
// A page that is damaged, or cannot be read any more, makes bbolt panic or the
// mapping fault. That must not end a process which can lend from memory; but
// what bbolt then believes about free pages is not written from any more.
func (f *file) write(b memory.Batch, m clock.Mark) error {
	if f.broken != nil {
		return f.broken
	}
	err := guard(func() error { return f.commitBatch(b, m) })
	if errors.Is(err, ErrDamaged) {
		f.broken = err
	}
	return err
}

func (f *file) commitBatch(b memory.Batch, m clock.Mark) error {
	if f.db == nil { // rewritten, and could not be opened yet
		db, err := f.reopen()
		if err != nil {
			return fmt.Errorf("opening the store that was rewritten: %w", err)
		}
		f.db = db
	}
	if f.dubious {
		if err := rewriteMetas(f.db.Path(), f.db.Info().PageSize); err != nil {
			return fmt.Errorf("writing the store's meta pages again: %w", err)
		}
		f.dubious = false
	}
	old := f.removals(b)
	sum := f.sum
	for _, e := range b.Records {
		sum += share(e.Seq, e.Record.Rev) - f.where[e.Record.Key].sum
	}
	for _, key := range b.Gone {
		sum -= f.where[key].sum
	}
	err := f.commit(f.db, func(tx *bbolt.Tx) error {
		for _, e := range b.Records {
			if err := f.put(tx, e); err != nil {
				return err
			}
		}
		if err := f.clear(tx, old, b.Records); err != nil {
			return err
		}
		for _, n := range f.barren {
			if _, used := f.seqs[n]; !used && !holds(b.Records, n) {
				if err := dropSlice(tx, n); err != nil {
					return err
				}
			}
		}
		if err := f.putValues(tx, b.Values); err != nil {
			return err
		}
		return f.putMark(tx, m, sum)
	})
	for _, e := range b.Records {
		f.note(e.Record.Key, spot{e.Slice, e.Seq})
	}
	if err != nil {
		f.dubious = true
		return err
	}
	for _, r := range old {
		f.forget(r.key, r.at)
	}
	for _, e := range b.Records {
		s := f.where[e.Record.Key]
		s.sum = share(e.Seq, e.Record.Rev)
		f.where[e.Record.Key] = s
	}
	f.sum = sum
	f.barren = nil
	return nil
}

func holds(entries []memory.Entry, slice int64) bool {
	return slices.ContainsFunc(entries, func(e memory.Entry) bool { return e.Slice == slice })
}

// removals lists the spots that are empty once b has been written.
func (f *file) removals(b memory.Batch) (old []removal) {
	for _, e := range b.Records {
		for _, at := range f.where[e.Record.Key].spots {
			if at != (spot{e.Slice, e.Seq}) {
				old = append(old, removal{e.Record.Key, at})
			}
		}
	}
	for _, key := range b.Gone {
		for _, at := range f.where[key].spots {
			old = append(old, removal{key, at})
		}
	}
	return old
}

func (f *file) put(tx *bbolt.Tx, e memory.Entry) error {
	name := sliceBucket(e.Slice)
	b, err := tx.CreateBucketIfNotExists(name)
	if err != nil {
		return fmt.Errorf("making a time slice: %w", err)
	}
	// Records come in order and are not added to a page that is left, so
	// branches may be fuller than bbolt's half. Not much fuller, or a small
	// body would stand in the leaf before its key.
	b.FillPercent = 0.8
	if err := b.Put(entryKey(e.Seq, suffixKey), e.Record.Key[:]); err != nil {
		return fmt.Errorf("writing a key: %w", err)
	}
	body := entryKey(e.Seq, suffixBody)
	if err := b.Put(body, f.sealer.seal(name, body, appendRecord(nil, &e.Record))); err != nil {
		return fmt.Errorf("writing a record: %w", err)
	}
	return nil
}

// clear removes old records; a slice in which nothing is left is dropped in
// one piece, whatever its size.
func (f *file) clear(tx *bbolt.Tx, old []removal, puts []memory.Entry) error {
	left := make(map[int64]int)
	for _, r := range old {
		if _, ok := left[r.at.slice]; !ok {
			left[r.at.slice] = len(f.seqs[r.at.slice])
		}
		left[r.at.slice]--
	}
	for _, e := range puts {
		if _, ok := left[e.Slice]; !ok {
			continue
		}
		if _, known := f.seqs[e.Slice][e.Seq]; !known {
			left[e.Slice]++
		}
	}
	for n, k := range left {
		if k == 0 {
			if err := dropSlice(tx, n); err != nil {
				return err
			}
		}
	}
	for _, r := range old {
		b := tx.Bucket(sliceBucket(r.at.slice))
		if b == nil {
			continue // dropped
		}
		for _, suffix := range []byte{suffixKey, suffixBody} {
			if err := b.Delete(entryKey(r.at.seq, suffix)); err != nil {
				return fmt.Errorf("removing a record: %w", err)
			}
		}
	}
	return nil
}

func dropSlice(tx *bbolt.Tx, n int64) error {
	name := sliceBucket(n)
	if tx.Bucket(name) == nil {
		return nil
	}
	if err := tx.DeleteBucket(name); err != nil {
		return fmt.Errorf("dropping a time slice: %w", err)
	}
	return nil
}

func (f *file) putValues(tx *bbolt.Tx, values map[string][]byte) error {
	if len(values) == 0 {
		return nil
	}
	b, err := tx.CreateBucketIfNotExists(bucketValues)
	if err != nil {
		return fmt.Errorf("making the bucket of values: %w", err)
	}
	for name, v := range values {
		key := []byte(name)
		if v == nil {
			err = b.Delete(key)
		} else {
			err = b.Put(key, f.sealer.seal(bucketValues, key, v))
		}
		if err != nil {
			return fmt.Errorf("writing the value %q: %w", name, err)
		}
	}
	return nil
}

func (f *file) putMark(tx *bbolt.Tx, m clock.Mark, sum uint64) error {
	b, err := tx.CreateBucketIfNotExists(bucketMeta)
	if err != nil {
		return fmt.Errorf("making the meta bucket: %w", err)
	}
	if err := b.Put(keyMark, f.sealer.seal(bucketMeta, keyMark, appendMark(nil, m, sum))); err != nil {
		return fmt.Errorf("writing the mark: %w", err)
	}
	return nil
}

// rewriteMetas writes both meta pages again as the kernel shows them, and
// syncs. A sync that has failed leaves pages that the kernel takes for
// written and the disk has not got; the next commit would then overwrite
// pages that the disk's newest meta page still needs.
func rewriteMetas(path string, pageSize int) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	pages := make([]byte, 2*pageSize)
	if _, err := f.ReadAt(pages, 0); err != nil {
		return err
	}
	if _, err := f.WriteAt(pages, 0); err != nil {
		return err
	}
	return f.Sync()
}
