package dedup

import (
	"context"
	"errors"
	"iter"
	"time"
)

// ErrStale is returned by a change whose token or revision is not the
// record's any more. The record is as it was.
var ErrStale = errors.New("record has changed since it was read")

// ErrClosed is returned by every method of a closed store.
var ErrClosed = errors.New("store is closed")

// Durability says how long a change may take to reach the disk. Whatever it
// is, the change is seen by every later call on the same store at once.
type Durability uint8

const (
	// Synced: the call returns when the change is on the disk.
	Synced Durability = iota
	// Behind: the change is written at once, the call does not wait.
	Behind
	// Lazy: the change goes out with the next write, or within five seconds.
	Lazy
)

// Health is the state of a store. Durable is false while changes are kept in
// memory only; Why then says, in words for staff, what is wrong.
type Health struct {
	Durable bool
	Why     string
	Since   time.Time
}

// Store keeps records and a few small named values. All methods may be called
// at the same time from any goroutine.
//
// A store that cannot write does not fail: it goes on in memory, says so in
// Health, and writes what has changed as soon as it can (the branch keeps
// lending). Errors are ErrStale, ErrClosed, or the context's.
type Store interface {
	// Insert adds r, unless a record that has not expired at now has its
	// key: then nothing changes and that record is returned. The test and
	// the insert are one step. It returns when r is on the disk.
	Insert(ctx context.Context, r Record, now time.Duration) (standing *Record, err error)

	// Update replaces the record with r's key if its Token and Rev are
	// still those of r, and returns the record as it now stands.
	Update(ctx context.Context, r Record, d Durability) (Record, error)

	// UpdateAll is Update for several records in one transaction: all or,
	// with ErrStale, none of them.
	UpdateAll(ctx context.Context, rs []Record, d Durability) ([]Record, error)

	// Delete removes the record with this key if it has this token.
	Delete(ctx context.Context, key Digest, token Token, d Durability) error

	// Get returns the record with this key, expired or not.
	Get(key Digest) (Record, bool)

	// Object returns the records of one object, in the order of their claims.
	Object(object Digest) []Record

	// All yields every record. Changes made during the walk may or may not
	// be seen.
	All() iter.Seq[Record]

	// Sweep removes records that have expired at now, in small steps, and
	// returns how many.
	Sweep(ctx context.Context, now time.Duration) (int, error)

	// Put keeps a small value under a name (nil removes it); Value returns it.
	Put(ctx context.Context, name string, value []byte, d Durability) error
	Value(name string) ([]byte, bool)

	Health() Health

	// Close writes what is waiting and closes the store.
	Close() error
}
