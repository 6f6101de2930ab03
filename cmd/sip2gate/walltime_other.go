//go:build !linux

package main

import "time"

// trustedClock does not know here whether anything keeps the clock right.
func trustedClock() (time.Time, bool) { return time.Now(), false }
