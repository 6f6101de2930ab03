package port

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestDrain(t *testing.T) {
	perByte := Serial{}.WireTime
	// sending gives a queue that empties at the line's speed; it stops at stuck.
	sending := func(n, stuck int) func() (int, error) {
		start := time.Now()
		return func() (int, error) {
			gone := int(float64(time.Since(start)) / float64(perByte(1)))
			return max(n-gone, stuck), nil
		}
	}
	for _, c := range []struct {
		name   string
		queued func() func() (int, error)
		want   bool
		least  time.Duration
		most   time.Duration
	}{
		{"nothing waits", func() func() (int, error) { return sending(0, 0) }, true, 0, 0},
		{"an answer goes out whole", func() func() (int, error) { return sending(200, 0) }, true, perByte(200), perByte(200) + drainGrace},
		{"a line that stands still is left", func() func() (int, error) { return sending(200, 200) }, false, 0, perByte(200) + drainGrace},
		{"so is one that stops midway", func() func() (int, error) { return sending(200, 50) }, false, 0, perByte(250) + 2*drainGrace},
		{"and one with too much to say", func() func() (int, error) { return sending(1<<20, 0) }, false, drainLimit, drainLimit},
		{"a device that is gone", func() func() (int, error) {
			return func() (int, error) { return 0, errors.New("input/output error") }
		}, false, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				got := drain(c.queued(), perByte)
				took := time.Since(start)
				if got != c.want || took < c.least || took > c.most {
					t.Errorf("drain = %v after %v, want %v within %v to %v", got, took, c.want, c.least, c.most)
				}
			})
		})
	}
}
