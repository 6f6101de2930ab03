// Package backoff is the one retry timer: for redialling the ILS, reopening a
// port whose adapter was pulled, and accepting again after a failed accept.
//
// The pauses double from Min to Max. Each is drawn at random from the upper
// half of its step, so that the stations of a branch that lost the same WAN
// at the same moment do not come back in the same millisecond.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Defaults of a Timer whose fields are zero.
const (
	DefaultMin = 250 * time.Millisecond
	DefaultMax = 4 * time.Second
)

// Timer counts the failures in a row and waits accordingly. The zero value is
// ready to use. It belongs to one goroutine: its methods must not be called at
// the same time.
type Timer struct {
	// Min is the longest first pause; zero or less means DefaultMin.
	Min time.Duration
	// Max is the longest pause of all; zero or less means DefaultMax. A Max
	// under Min counts as Min.
	Max time.Duration

	step time.Duration // the longest the next pause may be; 0 before the first
}

// Next returns the pause to make after one more failure: at least half of the
// current step, at most the whole of it, never more than Max.
func (t *Timer) Next() time.Duration {
	lo, hi := t.bounds()
	step := max(t.step, lo)
	step = min(step, hi)
	// Doubling is done on what is left below the cap: no overflow with a Max
	// near the largest Duration.
	if step > hi/2 {
		t.step = hi
	} else {
		t.step = 2 * step
	}
	half := step / 2
	return half + rand.N(step-half+1)
}

// Wait makes the pause that Next gives. It returns early, with the context's
// error, when ctx ends; nil means that it is time for the next attempt.
func (t *Timer) Wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	timer := time.NewTimer(t.Next())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Reset begins again at Min: to be called after a success.
func (t *Timer) Reset() { t.step = 0 }

// bounds returns Min and Max with the defaults filled in.
func (t *Timer) bounds() (lo, hi time.Duration) {
	lo, hi = t.Min, t.Max
	if lo <= 0 {
		lo = DefaultMin
	}
	if hi <= 0 {
		hi = DefaultMax
	}
	return lo, max(lo, hi)
}
