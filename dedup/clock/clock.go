// Package clock tells the time on a board that has none.
//
// A Raspberry Pi has no clock of its own: it wakes in 1970 or where it went to
// sleep, and jumps when the network answers. Whatever must expire is
// therefore counted in gate time: the running time that the appliance is sure
// of. It comes from the kernel's boot-time clock, is carried over restarts by
// a persisted Mark, and never reads the wall clock. Its only error is to run
// slow by the time that the power was off, which keeps a claim too long,
// never too short.
package clock

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Clock tells gate time. Now never decreases and may be called from any
// goroutine.
type Clock interface {
	Now() time.Duration
}

// Mark ties gate time to a moment of one boot. It is persisted so that the
// next run can go on counting from it.
type Mark struct {
	BootID string        // of the boot in which the mark was made; "" if unknown
	Boot   time.Duration // boot-time clock when it was made
	Gate   time.Duration // gate time at that moment
}

// Source is where running time comes from.
type Source interface {
	// BootID names this boot: equal within a boot, different in the next.
	// "" means that it is not known; then no time is taken to have passed
	// since a mark.
	BootID() (string, error)
	// Boottime is the time since the boot, suspend included.
	Boottime() (time.Duration, error)
}

// Gate is gate time as it runs. It is safe for concurrent use.
type Gate struct {
	src    Source
	bootID string
	start  time.Duration // boot time at Start
	base   time.Duration // gate time at Start
	last   atomic.Int64  // largest gate time given out
}

// Start begins to count gate time from what the last run left. mark is nil if
// none was found; floor is the largest gate time that any record shows, below
// which gate time cannot be.
func Start(src Source, mark *Mark, floor time.Duration) (*Gate, error) {
	boot, err := src.Boottime()
	if err != nil {
		return nil, fmt.Errorf("reading the boot-time clock: %w", err)
	}
	id, err := src.BootID()
	if err != nil {
		id = "" // unknown: counts like a reboot of which no uptime is sure
	}
	g := &Gate{src: src, bootID: id, start: boot}
	if mark != nil {
		g.base = resume(*mark, id, boot)
	}
	g.base = max(g.base, floor, 0)
	g.last.Store(int64(g.base))
	return g, nil
}

// resume is the gate time at boot time boot of the boot called id. A time
// namespace can shift the boot-time clock under the same boot id, so a clock
// that is behind the mark is another boot too.
func resume(m Mark, id string, boot time.Duration) time.Duration {
	switch {
	case id == "":
		return m.Gate
	case id == m.BootID && boot >= m.Boot:
		return m.Gate + boot - m.Boot
	default:
		// A reboot: the uptime has passed for sure. How long the power was
		// off nobody knows; it counts as nothing.
		return m.Gate + boot
	}
}

// Now is the gate time. A source that fails leaves it standing.
func (g *Gate) Now() time.Duration {
	now, _ := g.now()
	return now
}

// Mark is what has to be persisted so that the next run can go on from here.
func (g *Gate) Mark() Mark {
	now, boot := g.now()
	return Mark{BootID: g.bootID, Boot: boot, Gate: now}
}

func (g *Gate) now() (gate, boot time.Duration) {
	boot, err := g.src.Boottime()
	if err != nil {
		boot = g.start
	}
	gate = g.base + boot - g.start
	for {
		last := g.last.Load()
		if int64(gate) <= last {
			return time.Duration(last), boot
		}
		if g.last.CompareAndSwap(last, int64(gate)) {
			return gate, boot
		}
	}
}
