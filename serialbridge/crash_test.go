package serialbridge_test

import (
	"context"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"sip2gate/dedup"
	"sip2gate/dedup/memory"
	"sip2gate/serialbridge/sip2"
)

// A fragile store forgets at a crash what had not to be on the disk yet: all
// that was written Behind or Lazy since the last Synced write. It is the worst
// disk that keeps its word.
type fragile struct {
	live dedup.Store // what the process sees

	mu     sync.Mutex
	disk   dedup.Store // what a crash leaves
	behind []func(dedup.Store)
	dead   bool
}

func newFragile() *fragile {
	return &fragile{live: memory.New("a test"), disk: memory.New("a test")}
}

// keep makes the same change on the disk: now with all that waits before it,
// or later.
func (s *fragile) keep(d dedup.Durability, change func(dedup.Store)) {
	s.behind = append(s.behind, change)
	if d == dedup.Synced {
		s.flush()
	}
}

func (s *fragile) flush() {
	for _, f := range s.behind {
		f(s.disk)
	}
	s.behind = nil
}

func (s *fragile) enter() error {
	s.mu.Lock()
	if s.dead {
		s.mu.Unlock()
		return dedup.ErrClosed
	}
	return nil
}

func (s *fragile) Insert(ctx context.Context, r dedup.Record, now time.Duration) (*dedup.Record, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	standing, err := s.live.Insert(ctx, r, now)
	if err == nil && standing == nil {
		s.keep(dedup.Synced, func(d dedup.Store) { _, _ = d.Insert(context.Background(), r, now) })
	}
	return standing, err
}

func (s *fragile) Update(ctx context.Context, r dedup.Record, d dedup.Durability) (dedup.Record, error) {
	rs, err := s.UpdateAll(ctx, []dedup.Record{r}, d)
	if err != nil {
		return dedup.Record{}, err
	}
	return rs[0], nil
}

func (s *fragile) UpdateAll(ctx context.Context, rs []dedup.Record, d dedup.Durability) ([]dedup.Record, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	now, err := s.live.UpdateAll(ctx, rs, d)
	if err == nil {
		s.keep(d, func(disk dedup.Store) { _, _ = disk.UpdateAll(context.Background(), rs, d) })
	}
	return now, err
}

func (s *fragile) Delete(ctx context.Context, key dedup.Digest, token dedup.Token, d dedup.Durability) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	err := s.live.Delete(ctx, key, token, d)
	if err == nil {
		s.keep(d, func(disk dedup.Store) { _ = disk.Delete(context.Background(), key, token, d) })
	}
	return err
}

func (s *fragile) Put(ctx context.Context, name string, value []byte, d dedup.Durability) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	err := s.live.Put(ctx, name, value, d)
	if err == nil {
		s.keep(d, func(disk dedup.Store) { _ = disk.Put(context.Background(), name, value, d) })
	}
	return err
}

func (s *fragile) Sweep(ctx context.Context, now time.Duration) (int, error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	n, err := s.live.Sweep(ctx, now)
	if err == nil {
		s.keep(dedup.Behind, func(disk dedup.Store) { _, _ = disk.Sweep(context.Background(), now) })
	}
	return n, err
}

func (s *fragile) Get(key dedup.Digest) (dedup.Record, bool) { return s.live.Get(key) }
func (s *fragile) Object(o dedup.Digest) []dedup.Record      { return s.live.Object(o) }
func (s *fragile) All() iter.Seq[dedup.Record]               { return s.live.All() }
func (s *fragile) Value(name string) ([]byte, bool)          { return s.live.Value(name) }
func (s *fragile) Health() dedup.Health                      { return s.live.Health() }
func (s *fragile) Close() error                              { return s.live.Close() }

// written waits until all that was written behind has reached the disk.
func (s *fragile) written() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
}

// die is the moment of the crash: nothing is written any more, and what is
// left is the disk.
func (s *fragile) die() *fragile {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
	next := newFragile()
	for _, f := range s.history() {
		f(next.live)
		f(next.disk)
	}
	return next
}

// history copies the disk into fresh stores, so that a later crash can tell
// the two apart again.
func (s *fragile) history() []func(dedup.Store) {
	ctx := context.Background()
	var out []func(dedup.Store)
	for r := range s.disk.All() {
		out = append(out, func(d dedup.Store) { _, _ = d.Insert(ctx, r, r.ClaimedAt) })
	}
	for _, station := range []string{"S1", "S2"} {
		for _, what := range []string{"login", "status", "status-answer", "accepted"} {
			name := "station/" + station + "/" + what
			if v, ok := s.disk.Value(name); ok {
				out = append(out, func(d dedup.Store) { _ = d.Put(ctx, name, v, dedup.Synced) })
			}
		}
	}
	return out
}

// onFragile is the setup of a rig that can crash.
func onFragile(r *rig) { r.store = newFragile() }

// kill ends the bridge as kill -9 does, as far as that shows: nothing is
// written any more, the kiosks' lines and the links to the ILS are gone. What
// still runs of it must come to its end, and its word counts for nothing.
func (r *rig) kill(kiosks ...*kiosk) {
	r.t.Helper()
	left := r.store.(*fragile).die()
	r.ils.connecting(refuse)
	r.ils.hangUp()
	for _, k := range kiosks {
		k.hangUp()
	}
	r.cancel()
	<-r.done
	r.ils.connecting(nil)
	r.store = left
}

// crash is a kill and a start at once.
func (r *rig) crash(kiosks ...*kiosk) {
	r.t.Helper()
	r.kill(kiosks...)
	r.start()
}

// seq is a frame with another sequence number, its checksum right.
func seq(t testing.TB, frame string, n byte) string {
	t.Helper()
	f := []byte(strings.TrimSuffix(string(frameOf(t, frame)), "\r"))
	tr := sip2.ReadTrailer(f)
	if !tr.HasSeq {
		t.Fatalf("frame %s has no AY", frame)
	}
	return string(sip2.AppendTrailer(sip2.Body(f, tr), true, '0'+n%10)) + "\r"
}

// of is a frame about another item.
func of(t testing.TB, item, frame string) string {
	t.Helper()
	return edited(t, frame, item1, item)
}

// Items other than item1.
const (
	item2 = "31234000000105" // the one of F3
	item3 = "31234000000303"
	item4 = "31234000000404"
)

const patron2 = "21234000000029"

// reads is how many reads of the gate's own the ILS has got.
func (m *mock) reads() int { return len(m.sent("63")) + len(m.sent("17")) }

// codes are the codes that the ILS has got, in order, without the gate's own
// reads, logins and status requests.
func (m *mock) codes() string {
	var out []string
	for _, f := range m.sent("") {
		switch c := f.raw[:2]; c {
		case "63", "17", "93", "99":
		default:
			out = append(out, c)
		}
	}
	return strings.Join(out, " ")
}

// active is how many loans there are.
func (m *mock) active() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.loans)
}

// lent opens a loan that the gate knows nothing of.
func (m *mock) lent(item, patron string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loans[item] = patron
}

// checkedIn is a checkin at the desk.
func (m *mock) checkedIn(item string) { m.takeBack(item) }

// holding answers 11s truthfully, but so much later.
func holding(d time.Duration) func(q *request) bool {
	return func(q *request) bool {
		if !q.is("11") {
			return false
		}
		q.lend()
		after(d)
		q.reply(q.loan())
		return true
	}
}

// mute lends but never says so to the nth 11, and answers all others.
func mute(nth int) func(q *request) bool {
	return func(q *request) bool {
		if !q.is("11") || q.nth != nth {
			return false
		}
		q.lend()
		return true
	}
}

// event fails unless so many events of a name were logged.
func (r *rig) event(name string, n int) {
	r.t.Helper()
	if got := len(r.log.events(name)); got != n {
		r.t.Errorf("%d events %s, want %d\n%s", got, name, n, r.log)
	}
}

// lends wants a 12 ok=1 about an item.
func (k *kiosk) lends(item string, d time.Duration) string {
	k.r.t.Helper()
	got := k.read(d)
	if !strings.HasPrefix(got, "121") || !strings.Contains(got, "AB"+item+"|") {
		k.r.t.Fatalf("got %q, want a 12 ok=1 for %s\n%s", got, item, k.r.log)
	}
	return got
}

// cut ends all connections at the ILS's side, and the gate has seen it.
func (r *rig) cut() {
	r.ils.hangUp()
	after(time.Millisecond)
}
