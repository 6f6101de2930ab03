package serialbridge

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Health has three notions of well-being, each with its reasons. A reboot
// mends no cable and no WAN: only Alive is for a watchdog.
type Health struct {
	Alive   bool // every loop has moved lately
	Healthy bool // and every port is open, and the store is durable
	Ready   bool // and no link's last attempt to reach the ILS failed
	Why     []string
}

// stuckAfter is how long a loop may go without moving. Each moves at least
// every heartbeat when it has nothing else to do.
const (
	heartbeat  = 10 * time.Second
	stuckAfter = time.Minute
)

// Health reports how the bridge and its store are. It may be called at any
// time from any goroutine.
func (b *Bridge) Health() Health {
	h := Health{Why: b.hearts.stuck()}
	h.Alive = len(h.Why) == 0
	h.Healthy = h.Alive
	for _, s := range b.Stations() {
		if !s.Open {
			h.Healthy = false
			h.Why = append(h.Why, fmt.Sprintf("station %s: the port is not open: %s", s.Name, s.Why))
		}
	}
	if store := b.gate.Store().Health(); !store.Durable {
		h.Healthy = false
		h.Why = append(h.Why, "the store: "+store.Why)
	}
	h.Ready = h.Healthy
	for _, s := range b.Stations() {
		if s.LinkBad {
			h.Ready = false
			h.Why = append(h.Why, fmt.Sprintf("station %s: the ILS cannot be reached", s.Name))
		}
	}
	return h
}

// hearts are the loops that must move.
type hearts struct {
	mu   sync.Mutex
	last map[*heart]time.Time
}

type heart struct {
	all  *hearts
	name string
}

// start registers a loop. Stop it when the loop ends.
func (h *hearts) start(name string) *heart {
	one := &heart{h, name}
	one.beat()
	return one
}

func (o *heart) beat() {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	if o.all.last == nil {
		o.all.last = make(map[*heart]time.Time)
	}
	o.all.last[o] = time.Now()
}

func (o *heart) stop() {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	delete(o.all.last, o)
}

// stuck names the loops that have not moved for too long.
func (h *hearts) stuck() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for o, last := range h.last {
		if age := time.Since(last); age > stuckAfter {
			out = append(out, fmt.Sprintf("%s has not moved for %d seconds", o.name, int(age.Seconds())))
		}
	}
	slices.Sort(out)
	return out
}
