//go:build !linux

package clock

import (
	"sync"
	"time"
)

// System is the kernel's boot-time clock and boot id. On systems other than
// Linux it is a stand-in that knows only the time since the process started.
func System() Source { return process{} }

// process counts from when the package was first used and knows no boot id.
type process struct{}

var started = sync.OnceValue(time.Now)

func (process) BootID() (string, error)          { return "", nil }
func (process) Boottime() (time.Duration, error) { return time.Since(started()), nil }
