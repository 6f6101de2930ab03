package serialbridge_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sip2gate/serialbridge"
	"sip2gate/serialbridge/port"
)

func TestHealth(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		// The rig's store is in memory, which is not durable: that alone
		// makes it unhealthy, and leaves it alive.
		k := r.serial()
		k.send("STAT")
		k.expect("R-STAT-Y", time.Second)
		after(10 * time.Minute)
		h := r.bridge.Health()
		if !h.Alive || h.Healthy || h.Ready || !says(h, "store") || says(h, "S1") {
			t.Errorf("idle for ten minutes: %+v", h)
		}
		r.ils.connecting(refuse)
		r.ils.hangUp()
		k.send("STAT")
		k.read(2 * time.Second)
		if h := r.bridge.Health(); !h.Alive || !says(h, "S1: the ILS cannot be reached") {
			t.Errorf("the ILS away: %+v", h)
		}
		k.hangUp()
		after(time.Second)
		if h := r.bridge.Health(); !h.Alive || !says(h, "S1: the port is not open") {
			t.Errorf("the line away: %+v", h)
		}
	})
}

func TestPortThatCannotBeOpened(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.connect("10.0.0.2")
		k.send("STAT")
		k.expect("R-STAT-Y", time.Second)
		if h := r.bridge.Health(); !says(h, "S1: the port is not open: no such device") {
			t.Errorf("%+v", h)
		}
		if n := len(r.log.events("station_down")); n != 1 {
			t.Errorf("%d events about one port", n)
		}
	}, func(r *rig) {
		r.edit = func(c *serialbridge.Config) {
			c.Stations[0].Open = func(context.Context) (port.Conn, error) { return nil, errors.New("no such device") }
		}
	})
}

func says(h serialbridge.Health, text string) bool {
	return slices.ContainsFunc(h.Why, func(w string) bool { return strings.Contains(w, text) })
}

// A stop lets the exchange under way end: its answer is kept, and given.
func TestStopGivesTheAnswerUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool {
			if !q.is("11") {
				return false
			}
			after(4 * time.Second)
			q.truthful()
			return true
		})
		k := r.serial().loggedIn()
		k.send("F1")
		after(time.Second)
		r.cancel()
		k.expect("R1", 4*time.Second)
		<-r.done
		r.start()
		k = r.serial()
		k.send("F1-SEQ")
		k.expect("R1-SEQ", 3*time.Second)
		r.ils.want(item1, 1, 1, 0)
	})
}
