package serialbridge_test

import (
	"strings"
	"testing"
	"time"
)

// unread makes the ILS silent to reads: nobody knows.
func unread(q *request) bool { return q.is("63") || q.is("17") }

// denyCheckin refuses a 09: what it put in question keeps its mark.
func denyCheckin(q *request) bool {
	if q.is("09") {
		q.reply(edited(q.m.t, "R-CI", "101YNN", "100NNN"))
		return true
	}
	return false
}

// either is the first script that handles a request.
func either(scripts ...func(q *request) bool) func(q *request) bool {
	return func(q *request) bool {
		for _, s := range scripts {
			if s(q) {
				return true
			}
		}
		return false
	}
}

// TestVerdictTable drives each row of the verdict table through a bridge.
func TestVerdictTable(t *testing.T) {
	const d = 15 * time.Second
	first := func(r *rig) *kiosk {
		k := r.serial().loggedIn()
		k.send("F1")
		k.expect("R1", time.Second)
		return k
	}
	other := func(r *rig) *kiosk { return r.connect("192.0.2.7").loggedIn() }
	// inDoubt is a checkout that the ILS never answered, and S1 has its no.
	inDoubt := func(r *rig, lend bool) *kiosk {
		r.ils.on(func(q *request) bool {
			if q.is("11") && q.nth == 1 {
				if lend {
					q.lend()
				}
				return true
			}
			return unread(q)
		})
		k := r.serial().loggedIn()
		k.send("F1")
		k.refused('1', "could not be confirmed", d)
		if n := len(r.gate.Doubts()); n != 1 {
			r.t.Fatalf("%d doubts", n)
		}
		return k
	}
	for _, row := range []struct {
		name                 string
		run                  func(t *testing.T, r *rig)
		elevens, made, renew int
		reads                int // -1: not counted
	}{
		{"none: claim and forward", func(t *testing.T, r *rig) { first(r) }, 1, 1, 0, 0},
		{"expired, same fingerprint: claim", func(t *testing.T, r *rig) {
			k := first(r)
			after(90 * time.Second)
			k.send("F1-DATE")
			k.expect("R1-SEQ", d)
		}, 2, 1, 1, 0},
		{"expired, other fingerprint: claim", func(t *testing.T, r *rig) {
			k := first(r)
			after(90 * time.Second)
			k.send("F1-PIN")
			k.expect("R1-SEQ", d)
			r.event("checkout_conflict", 0)
		}, 2, 1, 1, 0},

		{"in flight, own: join", func(t *testing.T, r *rig) {
			r.ils.on(holding(5 * time.Second))
			k := r.serial().loggedIn()
			k.send("F1")
			after(time.Second)
			k.send("F1-SEQ")
			k.expect("R1-SEQ", d)
			k.none(d)
			r.event("checkout_joined", 1)
		}, 1, 1, 0, 0},
		{"in flight, another station: wait, then verify", func(t *testing.T, r *rig) {
			r.ils.on(holding(5 * time.Second))
			k, o := r.serial().loggedIn(), other(r)
			k.send("F1")
			after(time.Second)
			o.send("F1-SEQ")
			k.expect("R1", d)
			o.expect("R1-SEQ", d)
			r.event("checkout_joined", 0)
		}, 1, 1, 0, 1},
		{"in flight, other fingerprint: wait, then refuse", func(t *testing.T, r *rig) {
			r.ils.on(holding(5 * time.Second))
			k, o := r.serial().loggedIn(), other(r)
			k.send("F1")
			after(time.Second)
			o.send("F1-PIN")
			o.none(3 * time.Second)
			k.expect("R1", d)
			o.refused('2', "differs", d)
			r.event("checkout_conflict", 1)
		}, 1, 1, 0, 1},

		{"completed, own: replay", func(t *testing.T, r *rig) {
			k := first(r)
			k.send("F1-SEQ")
			k.expect("R1-SEQ", time.Second)
		}, 1, 1, 0, 0},
		{"completed, own, undelivered: verify", func(t *testing.T, r *rig) {
			r.ils.on(holding(time.Second))
			k := other(r)
			k.send("F1")
			after(100 * time.Millisecond)
			k.hangUp()
			after(2 * time.Second)
			k = other(r)
			k.send("F1-SEQ")
			k.expect("R1-SEQ", d)
		}, 1, 1, 0, 1},
		{"completed, own, marked: verify", func(t *testing.T, r *rig) {
			k, o := first(r), other(r)
			r.ils.on(denyCheckin)
			o.send("CI")
			o.read(time.Second)
			k.send("F1-SEQ")
			k.expect("R1-SEQ", d)
		}, 1, 1, 0, 1},
		{"completed, another station, charged: replay", func(t *testing.T, r *rig) {
			first(r)
			o := other(r)
			o.send("F1-SEQ")
			o.expect("R1-SEQ", d)
			if e := r.log.events("duplicate_checkout_suppressed"); len(e) != 1 || e[0]["unverified"] != false {
				t.Errorf("logged %v", e)
			}
		}, 1, 1, 0, 1},
		{"completed, another date, absent: claim", func(t *testing.T, r *rig) {
			k := first(r)
			r.ils.checkedIn(item1)
			k.send("F1-DATE")
			k.expect("R1-SEQ", d)
		}, 2, 2, 0, -1},
		{"completed, another date, unknown: replay, and say so", func(t *testing.T, r *rig) {
			k := first(r)
			r.ils.on(unread)
			begin := time.Now()
			k.send("F1-DATE")
			k.expect("R1-SEQ", d)
			if time.Since(begin) > 3*time.Second {
				t.Errorf("verified for %v", time.Since(begin))
			}
			if e := r.log.events("duplicate_checkout_suppressed"); len(e) != 1 || e[0]["unverified"] != true {
				t.Errorf("logged %v", e)
			}
		}, 1, 1, 0, -1},
		{"completed, marked, unknown: ask staff", func(t *testing.T, r *rig) {
			k := first(r)
			r.ils.on(either(denyCheckin, unread))
			k.send("CI")
			k.read(time.Second)
			k.send("F1-DATE")
			k.refused('2', "ask staff", d)
		}, 1, 1, 0, -1},
		{"completed, other fingerprint, charged: refuse", func(t *testing.T, r *rig) {
			k := first(r)
			k.send("F1-PIN")
			k.refused('2', "differs", d)
			r.event("checkout_conflict", 1)
		}, 1, 1, 0, 1},
		{"completed, other fingerprint, absent: claim", func(t *testing.T, r *rig) {
			k := first(r)
			r.ils.checkedIn(item1)
			k.send("F1-PIN")
			k.expect("R1-SEQ", d)
			r.event("checkout_conflict", 0)
		}, 2, 2, 0, -1},
		{"completed, other fingerprint, unknown: refuse", func(t *testing.T, r *rig) {
			k := first(r)
			r.ils.on(unread)
			k.send("F1-PIN")
			k.refused('2', "differs", d)
			r.event("checkout_conflict", 1)
		}, 1, 1, 0, -1},
		{"undelivered, unknown, in the window: replay, and say so", func(t *testing.T, r *rig) {
			k := inDoubt(r, true)
			r.ils.on(nil)
			after(20 * time.Second) // settled as lent, and nobody was told
			r.ils.on(unread)
			k.send("F1-DATE")
			if got := k.lends(item1, d); !strings.Contains(got, "Already on loan to you") {
				t.Errorf("got %q", got)
			}
		}, 1, 1, 0, -1},
		{"undelivered, unknown, a window later: ask staff", func(t *testing.T, r *rig) {
			k := inDoubt(r, true)
			r.ils.on(nil)
			after(20*time.Second + 90*time.Second)
			r.ils.on(unread)
			k.send("F1-DATE")
			k.refused('2', "ask staff", d)
		}, 1, 1, 0, -1},
		{"undelivered, charged, a week later: replay", func(t *testing.T, r *rig) {
			k := inDoubt(r, true)
			r.ils.on(nil)
			after(168 * time.Hour)
			k.send("F1-DATE")
			k.lends(item1, d)
		}, 1, 1, 0, -1},

		{"in doubt, same, lent: the read's answer", func(t *testing.T, r *rig) {
			k := inDoubt(r, true)
			r.ils.on(nil)
			k.send("F1-DATE")
			k.lends(item1, d)
			r.event("checkout_settled", 1)
		}, 1, 1, 0, -1},
		{"in doubt, other fingerprint, lent: refuse", func(t *testing.T, r *rig) {
			k := inDoubt(r, true)
			r.ils.on(nil)
			k.send("F1-PIN")
			k.refused('2', "differs", d)
			r.event("checkout_conflict", 1)
		}, 1, 1, 0, -1},
		{"in doubt, other fingerprint, not lent: claim after settle", func(t *testing.T, r *rig) {
			k := inDoubt(r, false)
			r.ils.on(nil)
			after(20 * time.Second)
			if n := r.ils.checkouts(item1); n != 1 {
				t.Errorf("%d 11s before settle", n)
			}
			k.send("F1-PIN")
			k.expect("R1-SEQ", d)
		}, 2, 1, 0, -1},
		{"in doubt, unknown: ask staff, for ever", func(t *testing.T, r *rig) {
			k := inDoubt(r, true)
			for range 3 {
				after(time.Hour)
				k.send("F1-DATE")
				k.refused('2', "ask staff", d)
			}
		}, 1, 1, 0, -1},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				row.run(t, r)
				r.ils.want(item1, row.elevens, row.made, row.renew)
				if n := r.ils.reads(); row.reads >= 0 && n != row.reads {
					t.Errorf("%d reads, want %d", n, row.reads)
				}
			})
		})
	}
}
