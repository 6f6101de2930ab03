package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// trustedClock is the wall clock, and whether something keeps it right: the
// kernel says so, and it is not behind a time that has surely passed.
func trustedClock() (time.Time, bool) {
	var tx unix.Timex
	state, err := unix.Adjtimex(&tx)
	now := time.Now()
	return now, err == nil && state != unix.TIME_ERROR && tx.Status&unix.STA_UNSYNC == 0 && now.After(earliest)
}
