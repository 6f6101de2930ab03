package serialbridge

import (
	"log/slog"
	"slices"
	"time"

	"sip2gate/dedup"
)

// history is what a kiosk sent last, as far as it tells a machine's own repeat
// from a person's second try. It is guarded by its station's mutex.
type history struct {
	valid    bool
	identity dedup.Digest // of the checkout: key and fingerprint
	date     string       // its transaction date as sent
	last     time.Duration
	spoke    bool // this connection has sent a request other than 93, 97, 99

	machine *history // the first connection of the machine that this one goes on from; nil: this
}

// origin names the machine behind a connection, as far as its repeats show it.
func (h *history) origin() *history {
	if h.machine != nil {
		return h.machine
	}
	return h
}

// checkoutTrace names one checkout as its machine repeats it.
type checkoutTrace struct {
	identity dedup.Digest
	date     string
	at       time.Duration
}

// repeats reports whether c is the machine's own repeat of what h holds: the
// same request with the same transaction date, no other one in between, within
// the time in which the machine may still retry.
func (h *history) repeats(c checkoutTrace, horizon time.Duration) bool {
	return h.valid && h.identity == c.identity && h.date == c.date && c.at-h.last <= horizon
}

// maxTraces bounds how many connections of one address are remembered.
const maxTraces = 64

// observe takes in a checkout of a connection from addr and reports whether it
// is the machine's own repeat, and how long after its last transmission. For a
// listening station the connection may be new: then what another one from the
// same address sent last counts, once.
func (st *station) observe(h *history, addr string, c checkoutTrace, horizon time.Duration) (own bool, gap time.Duration) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if own = h.repeats(c, horizon); own {
		gap = c.at - h.last
	} else if !h.spoke && addr != "" {
		for _, other := range st.traces[addr] {
			if other != h && other.repeats(c, horizon) {
				own, gap = true, c.at-other.last
				other.valid = false
				h.machine = other.origin()
				break
			}
		}
	}
	h.valid, h.identity, h.date, h.last, h.spoke = true, c.identity, c.date, c.at, true
	if addr != "" && !slices.Contains(st.traces[addr], h) {
		traces := append(st.traces[addr], h)
		if len(traces) > maxTraces {
			traces = traces[1:]
		}
		st.traces[addr] = traces
	}
	return own, gap
}

// interrupt notes a request that is no checkout to be gated: what comes after
// it is no machine's repeat of what came before.
func (st *station) interrupt(h *history) {
	st.mu.Lock()
	defer st.mu.Unlock()
	h.valid, h.spoke = false, true
}

// forget drops what can be no repeat's original any more.
func (st *station) forget(now, horizon time.Duration) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for addr, traces := range st.traces {
		traces = slices.DeleteFunc(traces, func(h *history) bool {
			return !h.valid || now-h.last > horizon
		})
		if len(traces) == 0 {
			delete(st.traces, addr)
			continue
		}
		st.traces[addr] = traces
	}
}

// patience is how long a kiosk waits before it sends again: as configured, or
// as it has shown.
type patience struct {
	configured time.Duration
	shown      time.Duration
	early      int
	shortest   time.Duration
}

// minPatience: below this no answer could be in time.
const minPatience = 5 * time.Second

// saw takes in the gap before a machine's own repeat of what has not been
// answered yet. Three in a row that are shorter than the configured timeout show the kiosk's real one.
func (p *patience) saw(gap time.Duration, log *slog.Logger) {
	if gap >= p.shown {
		p.early = 0
		return
	}
	if p.early == 0 || gap < p.shortest {
		p.shortest = gap
	}
	p.early++
	if p.early < 3 {
		return
	}
	p.early = 0
	if shown := max(p.shortest, minPatience); shown < p.shown {
		p.shown = shown
		log.Warn("station_impatient", "configured_ms", p.configured.Milliseconds(),
			"shown_ms", shown.Milliseconds(),
			"hint", "the kiosk repeats sooner than this station's timeout says: set timeout as on the kiosk")
	}
}
