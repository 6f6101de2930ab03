package clock

import (
	"sync"
	"time"
)

type monotonic struct{ start time.Time }

// Monotonic is a clock that starts at zero and follows the process's
// monotonic time. In a testing/synctest bubble it follows the bubble's.
func Monotonic() Clock { return monotonic{time.Now()} }

func (m monotonic) Now() time.Duration { return time.Since(m.start) }

// Manual is a clock and a source that stand still until they are told to
// move. The zero value is a boot without a name at zero.
type Manual struct {
	mu   sync.Mutex
	boot string
	t    time.Duration
}

// NewManual is a manual clock in the boot called id, t after it.
func NewManual(id string, t time.Duration) *Manual { return &Manual{boot: id, t: t} }

// Advance moves the clock by d.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.t += d
}

// Reboot begins a boot called id, uptime ago.
func (m *Manual) Reboot(id string, uptime time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.boot, m.t = id, uptime
}

// Now is the time since the boot.
func (m *Manual) Now() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.t
}

// BootID is the name of the boot.
func (m *Manual) BootID() (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.boot, nil
}

// Boottime is the time since the boot.
func (m *Manual) Boottime() (time.Duration, error) { return m.Now(), nil }
