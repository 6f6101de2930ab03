//go:build !linux

package clock

// System is the kernel's boot-time clock and boot id. On systems other than
// Linux it is a stand-in that knows only the time since the process started.
func System() Source { return process{} }
