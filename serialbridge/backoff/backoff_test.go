package backoff_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"sip2gate/serialbridge/backoff"
)

func TestPausesDoubleUpToTheCap(t *testing.T) {
	tm := backoff.Timer{Min: 100 * time.Millisecond, Max: time.Second}
	for i, step := range []time.Duration{100, 200, 400, 800, 1000, 1000, 1000} {
		step *= time.Millisecond
		if got := tm.Next(); got < step/2 || got > step {
			t.Errorf("pause %d = %v, want between %v and %v", i, got, step/2, step)
		}
	}
	tm.Reset()
	if got := tm.Next(); got > 100*time.Millisecond {
		t.Errorf("pause after Reset = %v, want at most Min", got)
	}
}

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		name        string
		timer       backoff.Timer
		first, last time.Duration
	}{
		{"zero value", backoff.Timer{}, backoff.DefaultMin, backoff.DefaultMax},
		{"Max under Min", backoff.Timer{Min: time.Minute, Max: time.Second}, time.Minute, time.Minute},
		{"negative", backoff.Timer{Min: -1, Max: -1}, backoff.DefaultMin, backoff.DefaultMax},
		{"no overflow", backoff.Timer{Min: 1, Max: math.MaxInt64 - 1}, 1, math.MaxInt64 - 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.timer.Next(); got < c.first/2 || got > c.first {
				t.Errorf("first pause = %v, want between half and all of %v", got, c.first)
			}
			var got time.Duration
			for range 70 {
				got = c.timer.Next()
			}
			if got < c.last/2 || got > c.last {
				t.Errorf("last pause = %v, want between half and all of %v", got, c.last)
			}
		})
	}
}

func TestPausesAreSpread(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 20 {
		tm := backoff.Timer{Min: time.Hour}
		seen[tm.Next()] = true
	}
	if len(seen) < 2 {
		t.Error("twenty timers chose the same pause: a branch would redial in step")
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := backoff.Timer{Min: 10 * time.Second}
		start := time.Now()
		if err := tm.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d < 5*time.Second || d > 10*time.Second {
			t.Errorf("waited %v, want between 5s and 10s", d)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if err := tm.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait on an ending context = %v", err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("woke after %v, want 1s", d)
		}
		start = time.Now()
		if err := tm.Wait(ctx); err == nil || time.Since(start) != 0 {
			t.Error("Wait on an ended context must return at once with its error")
		}
	})
}
