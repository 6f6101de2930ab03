package main

import (
	"context"
	"strconv"
	"time"

	"sip2gate/dedup"
)

// timekeeper knows a time that has surely passed. A board without a clock
// wakes in 1970, and certificates must not be judged by that: they are judged
// by the latest of the clock, the build, and what was kept in an earlier run.
type timekeeper struct {
	store dedup.Store
	floor time.Time
}

const (
	keptTime  = "latest-time"
	keepEvery = time.Hour
)

func newTimekeeper(store dedup.Store) *timekeeper {
	k := &timekeeper{store: store, floor: earliest}
	if built, err := time.Parse(time.RFC3339, thisBuild().Time); err == nil && built.After(k.floor) {
		k.floor = built
	}
	if v, ok := store.Value(keptTime); ok {
		if seconds, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			if kept := time.Unix(seconds, 0); kept.After(k.floor) {
				k.floor = kept
			}
		}
	}
	return k
}

// now is the time by which a certificate is judged.
func (k *timekeeper) now() time.Time {
	if now := time.Now(); now.After(k.floor) {
		return now
	}
	return k.floor
}

// keep writes the time down now and then, as long as something keeps the clock
// right: one wrong jump into the future must not spoil every certificate.
func (k *timekeeper) keep(ctx context.Context) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		if now, right := trustedClock(); right && now.After(k.floor) {
			// An error is the store closing; the next run has the older time.
			_ = k.store.Put(ctx, keptTime, strconv.AppendInt(nil, now.Unix(), 10), dedup.Lazy)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
