package port

import "time"

const (
	drainLimit = 2 * time.Second       // the longest that closing a line waits in all
	drainGrace = 50 * time.Millisecond // beyond the time the bytes need on the wire
)

// drain waits until queued reports an empty output queue and returns true. It
// returns false when the queue stands still, cannot be asked, or is not empty
// within drainLimit. wire gives the time that n bytes take on the line.
func drain(queued func() (int, error), wire func(n int) time.Duration) bool {
	deadline := time.Now().Add(drainLimit)
	before := -1
	for {
		n, err := queued()
		if err != nil {
			return false
		}
		if n == 0 {
			return true
		}
		left := time.Until(deadline)
		if n == before || left <= 0 {
			return false
		}
		before = n
		<-time.After(min(wire(n)+drainGrace, left))
	}
}
