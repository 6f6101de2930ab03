// Package storetest is the conformance suite of dedup.Store. Every store
// passes it, so that the gate need not know which one it has.
package storetest

import (
	"fmt"
	"testing"
	"time"

	"sip2gate/dedup"
)

// Harness is a store under test, empty and open.
type Harness struct {
	Store dedup.Store

	// Reopen simulates a restart and returns the store as it comes back.
	// With clean set the store is closed first; without, the process is
	// taken to have died at this moment. nil: the store does not outlive
	// the process.
	Reopen func(t *testing.T, clean bool) dedup.Store
}

// Run runs the suite; open yields a new, empty store for each test and
// arranges for its end.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	tests := []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"Insert", testInsert},
		{"InsertStanding", testInsertStanding},
		{"InsertOverExpired", testInsertOverExpired},
		{"InsertNeverExpires", testInsertNeverExpires},
		{"InsertRace", testInsertRace},
		{"Update", testUpdate},
		{"UpdateStale", testUpdateStale},
		{"UpdateRace", testUpdateRace},
		{"UpdateMovesObject", testUpdateMovesObject},
		{"UpdateAll", testUpdateAll},
		{"UpdateAllStale", testUpdateAllStale},
		{"UpdateAllIsOneStep", testUpdateAllIsOneStep},
		{"Delete", testDelete},
		{"Get", testGet},
		{"Object", testObject},
		{"All", testAll},
		{"AllWhileChanging", testAllWhileChanging},
		{"Sweep", testSweep},
		{"SweepKeepsEarlyClaims", testSweepKeepsEarlyClaims},
		{"SweepMany", testSweepMany},
		{"Values", testValues},
		{"NoAliases", testNoAliases},
		{"Context", testContext},
		{"Close", testClose},
		{"RestartClean", testRestartClean},
		{"RestartCrash", testRestartCrash},
		{"RestartAfterSweep", testRestartAfterSweep},
		{"RestartOrder", testRestartOrder},
		{"Random", testRandom},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

const (
	second = time.Second
	window = 90 * time.Second
)

// digest is a digest that shows where it came from.
func digest(format string, args ...any) (d dedup.Digest) {
	copy(d[:], fmt.Sprintf(format, args...))
	return d
}

func token(n int) (t dedup.Token) {
	copy(t[:], fmt.Sprintf("token %d", n))
	return t
}

// Record is a claim numbered n, of an object of its own, made at gate time
// at, with every field of a claim set.
func Record(n int, at time.Duration) dedup.Record {
	return dedup.Record{
		Key:       digest("key %d", n),
		Pair:      digest("pair %d", n),
		Object:    digest("object %d", n),
		Subject:   digest("subject %d", n%7),
		Token:     token(n),
		Under:     uint32(n),
		State:     dedup.Claimed,
		Compared:  []dedup.Digest{digest("BO %d", n), digest("AD %d", n)},
		Target:    digest("ILS"),
		Station:   "kiosk-1",
		Scope:     "MAIN",
		Label:     fmt.Sprintf("item-%d", n),
		ClaimedAt: at,
		TouchedAt: at,
		Since:     1796133569,
		Request:   fmt.Appendf(nil, "sealed request %d", n),
	}
}

// completed is r as the gate completes it.
func completed(r dedup.Record, at time.Duration) dedup.Record {
	r.State = dedup.Completed
	r.Marked = true
	r.Delivered = true
	r.CompletedAt = at
	r.TouchedAt = at
	r.Expires = at + window
	r.Request = nil
	r.Answer = []byte("sealed answer")
	return r
}
