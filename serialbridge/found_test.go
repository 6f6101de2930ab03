package serialbridge_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sip2gate/serialbridge"
	"sip2gate/serialbridge/port"
)

// A read that looked before the 11 was carried out, and whose answer the WAN
// holds up until another read has shown the loan, ends nothing.
func TestFoundStaleNegative(t *testing.T) {
	for _, c := range []struct {
		name    string
		slow    string // the read that is held up
		resolve []string
	}{{"two links", "63", []string{"63"}}, {"default reads", "17", []string{"63", "17"}}} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(func(q *request) bool {
					switch {
					case q.is("11") && q.nth == 1:
						go func() { after(6 * time.Second); q.lend() }() // never answered, carried out at 6 s
						return true
					case q.is(c.slow) && q.nth == 1: // the ILS looks at 5 s
						answer := strings.ReplaceAll(string(frameOf(t, "R-II-IN")), item1, q.field("AB"))
						if c.slow == "63" {
							answer = q.patron()
						}
						stamped := q.stamped(answer)
						after(4 * time.Second)
						q.raw(stamped)
						return true
					}
					return false
				})
				k, o := r.serial().loggedIn(), r.connect("192.0.2.7").loggedIn()
				k.send("F1")
				after(7 * time.Second)
				o.send("F1")
				o.read(15 * time.Second)
				k.read(15 * time.Second)
				r.ils.want(item1, 1, 1, 0)
			}, func(r *rig) { r.ilsTimeout = 5 * time.Second; r.resolve = c.resolve })
		})
	}
}

func TestFoundPausesListen(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool {
			switch {
			case q.is("11"):
				return true
			case q.is("63"):
				q.reply(strings.ReplaceAll(q.patron(), "BLY", "BLN"))
				return true
			}
			return false
		})
		o := r.connect("192.0.2.7").loggedIn()
		o.send("F2")
		o.read(15 * time.Second)
		o.conn.Close()
		after(time.Minute)
		before, conns := len(r.ils.sent("63")), r.ils.connections()
		after(time.Hour)
		if n, c := len(r.ils.sent("63"))-before, r.ils.connections()-conns; n > 30 || c > 30 {
			t.Errorf("%d reads and %d connections in the hour after", n, c)
		}
	})
}

func TestFoundPausesSilentReads(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool { return q.is("11") || q.is("63") || q.is("17") })
		o := r.serial().loggedIn()
		o.send("F1")
		o.read(15 * time.Second)
		after(time.Minute)
		before, conns := len(r.ils.sent("63")), r.ils.connections()
		after(time.Hour)
		if n, c := len(r.ils.sent("63"))-before, r.ils.connections()-conns; n > 30 || c > 60 {
			t.Errorf("%d reads and %d connections in the hour after", n, c)
		}
	})
}

func TestFoundLoginRefused(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool {
			if q.is("11") {
				return true
			}
			if q.is("93") && q.nth > 1 {
				q.reply("R-LOGIN-N")
				return true
			}
			return false
		})
		o := r.serial().loggedIn()
		o.send("F1")
		o.read(15 * time.Second)
		after(time.Minute)
		before := len(r.ils.sent("93"))
		after(time.Hour)
		if n := len(r.ils.sent("93")) - before; n > 60 {
			t.Errorf("%d logins that are refused in the hour after", n)
		}
		if up, down := len(r.log.events("ils_up")), len(r.log.events("ils_down")); up > 2 || down > 2 {
			t.Errorf("the link flaps: up %d times, down %d times", up, down)
		}
	})
}

func TestFoundStatusNotReplayed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		k.send("STAT")
		k.read(time.Second)
		r.ils.hangUp()
		after(100 * time.Millisecond)
		r.ils.connecting(slowly(1500 * time.Millisecond))
		n := len(r.ils.sent(""))
		k.send("STAT")
		k.read(5 * time.Second)
		after(3 * time.Second)
		k.send("F1")
		k.read(15 * time.Second)
		if got := r.ils.since(n); got != "93 99 11" {
			t.Errorf("new connection got %q, want 93 99 11", got)
		}
	})
}

func TestFoundLoginNotReplayed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		r.ils.hangUp()
		after(100 * time.Millisecond)
		r.ils.connecting(slowly(6 * time.Second))
		n := len(r.ils.sent(""))
		k.send("LOGIN")
		k.read(5 * time.Second)
		after(4 * time.Second)
		k.send("F1")
		k.read(15 * time.Second)
		if got := r.ils.since(n); got != "93 11" {
			t.Errorf("new connection got %q, want 93 11\n%s", got, r.log)
		}
	}, func(r *rig) {
		r.edit = func(c *serialbridge.Config) { c.Stations[0].Timeout = 5 * time.Second }
	})
}

func TestFoundReopen(t *testing.T) {
	var opens atomic.Int32
	bubble(t, func(t *testing.T, r *rig) {
		after(time.Hour)
		if n := opens.Load(); n > 1500 {
			t.Errorf("opened %d times in an hour", n)
		}
	}, func(r *rig) {
		r.edit = func(c *serialbridge.Config) {
			c.Stations[0].Open = func(context.Context) (port.Conn, error) {
				opens.Add(1)
				a, b := net.Pipe()
				b.Close()
				return a, nil
			}
		}
	})
}
