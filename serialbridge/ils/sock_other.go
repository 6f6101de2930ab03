//go:build !linux

package ils

import (
	"syscall"
	"time"
)

// setUserTimeout has no counterpart here; the appliance runs on Linux.
func setUserTimeout(syscall.RawConn, time.Duration) error { return nil }
