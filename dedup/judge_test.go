package dedup_test

import (
	"testing"
	"time"

	"sip2gate/dedup"
)

// TestJudge is the verdict table, row by row.
func TestJudge(t *testing.T) {
	const window = 90 * time.Second
	record := func(s dedup.State, edit func(r *dedup.Record)) *dedup.Record {
		r := &dedup.Record{State: s}
		if s == dedup.Completed {
			r.CompletedAt, r.TouchedAt, r.Delivered = 100*time.Second, 100*time.Second, true
			r.Expires = dedup.Lifetime(r, window, 336*time.Hour)
		}
		if edit != nil {
			edit(r)
		}
		return r
	}
	completed := record(dedup.Completed, nil)
	marked := record(dedup.Completed, func(r *dedup.Record) { r.Marked = true })
	unheard := record(dedup.Completed, func(r *dedup.Record) {
		r.Delivered = false
		r.Expires = dedup.Lifetime(r, window, 336*time.Hour)
	})
	claimed, doubtful := record(dedup.Claimed, nil), record(dedup.Doubtful, nil)

	const in, last, end = 110 * time.Second, 190*time.Second - 1, 190 * time.Second
	type facts = dedup.Facts
	for _, c := range []struct {
		name string
		r    *dedup.Record
		f    facts
		want dedup.Decision
	}{
		{"none", nil, facts{Now: in}, dedup.Claim},
		{"none, own", nil, facts{Now: in, Own: true}, dedup.Claim},
		{"none, held", nil, facts{Now: in, Held: true}, dedup.Wait},
		{"expired, same", completed, facts{Now: end, Same: true}, dedup.Claim},
		{"expired, own", completed, facts{Now: end, Same: true, Own: true}, dedup.Claim},
		{"expired, other", completed, facts{Now: end}, dedup.Claim},
		{"expired, marked", marked, facts{Now: end, Same: true}, dedup.Claim},
		{"expired, held", completed, facts{Now: end, Same: true, Held: true}, dedup.Wait},

		{"in flight, own", claimed, facts{Now: in, Same: true, Own: true}, dedup.Join},
		{"in flight, not own", claimed, facts{Now: in, Same: true}, dedup.Wait},
		{"in flight, other", claimed, facts{Now: in}, dedup.Wait},
		{"in flight, other of the same machine", claimed, facts{Now: in, Own: true}, dedup.Wait},
		{"in flight since ever", claimed, facts{Now: 1000 * time.Hour, Same: true}, dedup.Wait},

		{"completed, own", completed, facts{Now: in, Same: true, Own: true}, dedup.Replay},
		{"completed, own, at the last moment", completed, facts{Now: last, Same: true, Own: true}, dedup.Replay},
		{"completed, own, held", completed, facts{Now: in, Same: true, Own: true, Held: true}, dedup.Wait},
		{"completed, own, marked", marked, facts{Now: in, Same: true, Own: true}, dedup.Verify},
		{"completed, own, unheard", unheard, facts{Now: in, Same: true, Own: true}, dedup.Verify},
		{"completed, same", completed, facts{Now: in, Same: true}, dedup.Verify},
		{"completed, same, held", completed, facts{Now: in, Same: true, Held: true, Read: dedup.Charged}, dedup.Wait},
		{"completed, same, charged", completed, facts{Now: in, Same: true, Read: dedup.Charged}, dedup.Replay},
		{"completed, same, absent and not ended yet", completed, facts{Now: in, Same: true, Read: dedup.Absent}, dedup.Verify},
		{"completed, same, unknown", completed, facts{Now: in, Same: true, Read: dedup.Unreadable}, dedup.ReplayUnverified},
		{"marked, charged", marked, facts{Now: in, Same: true, Read: dedup.Charged}, dedup.Replay},
		{"marked, unknown", marked, facts{Now: in, Same: true, Read: dedup.Unreadable}, dedup.AskStaff},
		{"marked, own, unknown", marked, facts{Now: in, Same: true, Own: true, Read: dedup.Unreadable}, dedup.AskStaff},
		{"unheard, unknown, in the window", unheard, facts{Now: last, Same: true, Read: dedup.Unreadable}, dedup.ReplayUnverified},
		{"unheard, unknown, a window later", unheard, facts{Now: end + 1, Same: true, Read: dedup.Unreadable}, dedup.AskStaff},
		{"unheard, charged, a week later", unheard, facts{Now: 168 * time.Hour, Same: true, Read: dedup.Charged}, dedup.Replay},
		{"unheard, not asked, a week later", unheard, facts{Now: 168 * time.Hour, Same: true}, dedup.Verify},

		{"completed, other", completed, facts{Now: in}, dedup.Verify},
		{"completed, other of the same machine", completed, facts{Now: in, Own: true}, dedup.Verify},
		{"completed, other, held", completed, facts{Now: in, Held: true}, dedup.Wait},
		{"completed, other, charged", completed, facts{Now: in, Read: dedup.Charged}, dedup.Conflict},
		{"completed, other, unknown", completed, facts{Now: in, Read: dedup.Unreadable}, dedup.Conflict},
		{"completed, other, marked, unknown", marked, facts{Now: in, Read: dedup.Unreadable}, dedup.Conflict},

		{"in doubt, own", doubtful, facts{Now: in, Same: true, Own: true}, dedup.Settle},
		{"in doubt, same", doubtful, facts{Now: in, Same: true}, dedup.Settle},
		{"in doubt, other", doubtful, facts{Now: in}, dedup.Settle},
		{"in doubt, held", doubtful, facts{Now: in, Same: true, Held: true}, dedup.Settle},
		{"in doubt since ever", doubtful, facts{Now: 1000 * time.Hour, Same: true}, dedup.Settle},
	} {
		c.f.Window = window
		if got := dedup.Judge(c.r, c.f); got != c.want {
			t.Errorf("%s: decision %d, want %d", c.name, got, c.want)
		}
	}
}

func TestSameRequest(t *testing.T) {
	keys := dedup.NewKeyer([]byte("unit-test-secret-not-for-prod-32"), false)
	pair := dedup.Digest{1}
	compared := func(fee, pin string) []dedup.Digest {
		return keys.Fingerprint(pair, [][]byte{[]byte(fee), []byte(pin)})
	}
	for _, c := range []struct {
		name                  string
		first, then           []dedup.Digest
		firstUpload, isUpload bool
		want                  bool
	}{
		{"equal", compared("N", "4711"), compared("N", "4711"), false, false, true},
		{"other PIN", compared("N", "4711"), compared("N", "4712"), false, false, false},
		{"no PIN", compared("N", "4711"), compared("N", ""), false, false, false},
		{"fee accepted", compared("N", "4711"), compared("Y", "4711"), false, false, false},
		{"upload without PIN", compared("N", "4711"), compared("N", ""), false, true, true},
		{"after an upload without PIN", compared("N", ""), compared("N", "4711"), true, false, true},
		{"upload with the fee accepted", compared("N", "4711"), compared("Y", "4711"), false, true, false},
		{"nothing kept", nil, compared("N", "4711"), false, false, false},
	} {
		if got := dedup.SameRequest(&dedup.Record{Compared: c.first, Partial: c.firstUpload}, c.then, c.isUpload); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestObstacle(t *testing.T) {
	me, other := dedup.Digest{1}, dedup.Digest{2}
	const before, from = 29 * time.Second, 30 * time.Second
	for _, c := range []struct {
		name    string
		state   dedup.State
		subject dedup.Digest
		now     time.Duration
		want    dedup.Decision
	}{
		{"another's in flight", dedup.Claimed, other, before, dedup.Wait},
		{"another's in flight for long", dedup.Claimed, other, time.Hour, dedup.Wait},
		{"my own under another key, in flight", dedup.Claimed, me, before, dedup.Wait},
		{"another's in doubt, may still be carried out", dedup.Doubtful, other, before, dedup.Wait},
		{"another's in doubt, settle over", dedup.Doubtful, other, from, dedup.Claim},
		{"my own under another key, in doubt", dedup.Doubtful, me, from, dedup.Settle},
		{"another's completed", dedup.Completed, other, before, dedup.Claim},
		{"my own under another key, completed", dedup.Completed, me, before, dedup.Claim},
	} {
		r := &dedup.Record{State: c.state, Subject: c.subject}
		if got := dedup.Obstacle(r, me, c.now, from); got != c.want {
			t.Errorf("%s: decision %d, want %d", c.name, got, c.want)
		}
	}
}

func TestConcerned(t *testing.T) {
	me, other := dedup.Digest{1}, dedup.Digest{2}
	for _, s := range []dedup.State{dedup.Claimed, dedup.Doubtful, dedup.Completed} {
		r := &dedup.Record{State: s, Subject: me}
		done := s == dedup.Completed
		if dedup.Concerned(r, nil) != done || dedup.Concerned(r, &other) != done || dedup.Concerned(r, &me) {
			t.Errorf("a record %s: checkin %v, another's checkout %v, my own %v",
				s, dedup.Concerned(r, nil), dedup.Concerned(r, &other), dedup.Concerned(r, &me))
		}
	}
}

func TestSettleDoubt(t *testing.T) {
	const from = 30 * time.Second
	for _, c := range []struct {
		result dedup.ReadResult
		begun  time.Duration
		want   dedup.ReadResult
	}{
		{dedup.Charged, 0, dedup.Charged},
		{dedup.Charged, from, dedup.Charged},
		{dedup.Absent, from - 1, dedup.Unreadable},
		{dedup.Absent, from, dedup.Absent},
		{dedup.Unreadable, from, dedup.Unreadable},
	} {
		if got := dedup.SettleDoubt(c.result, c.begun, from); got != c.want {
			t.Errorf("%s, begun at %v: %s, want %s", c.result, c.begun, got, c.want)
		}
	}
}

func TestLifetime(t *testing.T) {
	const window, retention = 90 * time.Second, 336 * time.Hour
	for _, c := range []struct {
		name string
		r    dedup.Record
		want time.Duration
	}{
		{"delivered", dedup.Record{Delivered: true, CompletedAt: 10 * time.Second, TouchedAt: 10 * time.Second}, 100 * time.Second},
		{"delivered again", dedup.Record{Delivered: true, CompletedAt: 10 * time.Second, TouchedAt: 50 * time.Second}, 140 * time.Second},
		{"nobody got it", dedup.Record{CompletedAt: 10 * time.Second, TouchedAt: 10 * time.Second}, 10*time.Second + retention},
		{"nobody got it, asked for at the very end", dedup.Record{CompletedAt: 0, TouchedAt: retention}, retention + window},
	} {
		if got := dedup.Lifetime(&c.r, window, retention); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
