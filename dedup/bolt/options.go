// Package bolt keeps the gate's records in one bbolt file.
//
// The records live in memory, in a memory.Index that has the say; the file is
// written behind it by one goroutine, which puts everything that waits into
// one transaction. Opening reads and authenticates the whole file once.
//
// A file that is cut short or damaged under a running gate makes the process
// die of a fault on a mapped page, in whatever goroutine touches it. That
// cannot be recovered from and is not meant to be: the next start finds out
// what is left.
package bolt

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.etcd.io/bbolt"

	"sip2gate/dedup"
	"sip2gate/dedup/clock"
)

var (
	// ErrInUse means that another process has the store open.
	ErrInUse = errors.New("the store is in use by another process")
	// ErrDamaged means that a store file does not hold together.
	ErrDamaged = errors.New("the store is damaged")
)

// Options say how a store is opened. Path, Secret and Source must be set.
type Options struct {
	Path   string // of the file; its directory must exist
	Secret []byte // from which the key is derived that seals every record
	// Former are secrets under which records may still be sealed. What is
	// found under one is sealed anew.
	Former [][]byte
	Source clock.Source

	// Slice is the length of the time slices in which expired records are
	// dropped: an eighth of the window or so. 0 is one minute. It may
	// change from run to run.
	Slice time.Duration
	// RunDir is where the marker of a run without the store is left if the
	// disk of the store cannot take it: /run, or "" for nowhere.
	RunDir string
	Logger *slog.Logger // nil: none

	// Check examines the file at path before it is opened when the last
	// opening did not come to an end, best by CheckFile in a child process.
	// An error sets the file aside; a check that could not be carried out
	// is to return nil. If Check is nil the file is opened unchecked.
	Check func(ctx context.Context, path string) error
	// OnHealth is called when Health changes, one call at a time. It must
	// not call the store, and not take long.
	OnHealth func(dedup.Health)

	// Patience is how long a commit may take before the store counts as
	// degraded and its callers are let go: the branch keeps lending though
	// the card hangs. 0 is five seconds.
	Patience time.Duration

	// For tests: the page size of a new file (0: 1024), and what carries a
	// transaction out once the store is open (nil: bbolt's Update).
	pageSize int
	commit   func(*bbolt.DB, func(*bbolt.Tx) error) error
}

const (
	defaultPageSize = 1024 // what a loan writes grows with it; see BenchmarkLoan
	lockPatience    = 2 * time.Second
	lazyDelay       = 5 * time.Second  // of changes that are written lazily
	markEvery       = 60 * time.Second // gate time that a crash may lose
	retryEvery      = 3 * time.Second  // while the store cannot be written
)

// filled is a copy of o with defaults for what is not set.
func (o Options) filled() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnHealth == nil {
		o.OnHealth = func(dedup.Health) {}
	}
	if o.Patience <= 0 {
		o.Patience = 5 * time.Second
	}
	if o.pageSize == 0 {
		o.pageSize = defaultPageSize
	}
	return o
}

func (o *Options) sealer() (*sealer, error) {
	return newSealer(append([][]byte{o.Secret}, o.Former...)...)
}

// Report says what was found when the store was opened.
type Report struct {
	// Created: there was no store, and never had been: a first start.
	Created bool
	// Amnesia says why records of before may be missing; "" if none are.
	Amnesia string
	// SetAside is the path under which a damaged store was kept; "" if none.
	SetAside string
	// Damaged is the number of records that did not authenticate. Those
	// whose key still shows are in the store as in doubt, with nothing but
	// the key.
	Damaged int
	// Unclean: the last opening did not come to an end.
	Unclean bool
	// Records is the number of records in the store.
	Records int
}
