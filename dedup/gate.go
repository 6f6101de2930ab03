package dedup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sip2gate/dedup/clock"
)

// Options configure a gate. Store, Clock and Secret are required.
type Options struct {
	Store  Store
	Clock  clock.Clock // gate time, never the wall clock
	Secret []byte
	Match  bool // the sequence is part of the identity

	// Former are the secrets before this one, the newest first, under which
	// there may still be records. Retired is called by Sweep for one that no
	// record needs any more; after an error it is kept, and the next sweep
	// tries again. It must not call the gate.
	Former  [][]byte
	Retired func(ctx context.Context, secret []byte) error

	Window         time.Duration // how long an answer somebody got is repeated; default 90 s
	DoubtRetention time.Duration // how long a doubt keeps its sealed request; default 336 h
	Settle         time.Duration // the longest the ILS may take to carry out what it never answered; default 60 s
	ILSTimeout     time.Duration // the longest the kernel may go on sending after a kill; default 10 s

	// Amnesia: records of an earlier run may be missing. For an hour each
	// transmission of which nothing is known is read before it is sent.
	Amnesia bool

	Target Digest       // which ILS the requests go to
	Wall   func() int64 // wall clock in Unix seconds for staff, 0 if not known to be right; nil: never known
}

// Gate decides what becomes of each transmission. It is safe for concurrent
// use; decisions on one object are made one after the other.
type Gate struct {
	store Store
	clock clock.Clock
	opt   Options

	ring   atomic.Pointer[ring]
	rotate sync.Mutex // held while the ring is replaced

	amnesia struct{ until, negative time.Duration } // gate time

	mu    sync.Mutex
	items map[Digest]*item
}

// amnesiaLasts is how long after a loss each unknown transmission is read.
const amnesiaLasts = time.Hour

// keptAmnesia names the gate time at which it ends, kept over restarts.
const keptAmnesia = "amnesia-until"

// New makes a gate over a store and takes stock of it: whatever was claimed
// when the last run ended is in doubt from now on, and an object with a mark
// is held until a change that left before the end can no longer be at work.
func New(ctx context.Context, opt Options) (*Gate, error) {
	opt.Window = cmpOr(opt.Window, 90*time.Second)
	opt.DoubtRetention = cmpOr(opt.DoubtRetention, 336*time.Hour)
	opt.Settle = cmpOr(opt.Settle, time.Minute)
	opt.ILSTimeout = cmpOr(opt.ILSTimeout, 10*time.Second)
	secrets, err := newRing(opt.Match, append([][]byte{opt.Secret}, opt.Former...)...)
	if err != nil {
		return nil, err
	}
	g := &Gate{
		store: opt.Store, clock: opt.Clock, opt: opt,
		items: make(map[Digest]*item),
	}
	g.ring.Store(secrets)
	return g, g.takeStock(ctx)
}

func cmpOr(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

// takeStock runs once, before anybody else has the gate.
func (g *Gate) takeStock(ctx context.Context) error {
	late := g.clock.Now() + g.opt.ILSTimeout + g.opt.Settle
	g.amnesia.negative = late
	if v, ok := g.store.Value(keptAmnesia); ok {
		if until, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			g.amnesia.until = time.Duration(until)
		}
	}
	if g.opt.Amnesia {
		g.amnesia.until = g.clock.Now() + amnesiaLasts
		until := strconv.AppendInt(nil, int64(g.amnesia.until), 10)
		if err := g.store.Put(ctx, keptAmnesia, until, Behind); err != nil {
			return fmt.Errorf("keep that records were lost: %w", err)
		}
	}
	for r := range g.store.All() {
		switch {
		case r.State == Claimed:
			r.State = Doubtful
			if _, err := g.store.Update(ctx, r, Lazy); err != nil {
				return fmt.Errorf("take over the claim %s of the last run: %w", KeyString(r.Key), err)
			}
			fallthrough
		case r.State == Doubtful:
			it := g.item(r.Object)
			it.negative[r.Token] = late
			it.leave()
		default:
			if r.Marked {
				it := g.item(r.Object)
				it.hold = max(it.hold, late)
				it.leave()
			}
			if err := g.reopenWindow(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// reopenWindow lets the window of an answer that somebody got run from now, or
// from its end if that has passed: the last transmission or delivery before a
// kill may not have reached the disk, and it cannot have come later.
func (g *Gate) reopenWindow(ctx context.Context, r Record) error {
	latest := min(r.Expires, g.clock.Now())
	if !r.Delivered || r.TouchedAt >= latest || latest+g.opt.Window <= g.clock.Now() {
		return nil
	}
	r.TouchedAt = latest
	r.Expires = Lifetime(&r, g.opt.Window, g.opt.DoubtRetention)
	if _, err := g.store.Update(ctx, r, Lazy); err != nil {
		return fmt.Errorf("keep %s for another window: %w", KeyString(r.Key), err)
	}
	return nil
}

// Now is gate time: it never goes back, whatever the wall clock does.
func (g *Gate) Now() time.Duration { return g.clock.Now() }

// Store is the gate's store, for lists and health.
func (g *Gate) Store() Store { return g.store }

// Keys is the keyer of the current secret. After Rotate it is another one.
func (g *Gate) Keys() *Keyer { return g.ring.Load().newest().keys }

// item is the volatile side of one object: who is in flight, what changes of
// it are under way, and until when nothing may be believed.
type item struct {
	g      *Gate
	object Digest
	refs   int // guarded by Gate.mu

	mu       sync.Mutex // held while a decision on the object is made
	flights  map[Digest]*Flight
	changing int           // checkins and cancels forwarded and not ended
	hold     time.Duration // until then no request of the object is sent and no mark is cleared
	changed  time.Duration // when the newest change ended, or may at the latest
	negative map[Token]time.Duration
	released map[Digest]time.Duration // subject → when a read released a doubt of his
	news     chan struct{}            // closed and replaced when something has changed
}

// item enters the object: it returns with the item locked. leave it again.
func (g *Gate) item(object Digest) *item {
	g.mu.Lock()
	it := g.items[object]
	if it == nil {
		it = &item{
			g: g, object: object,
			flights:  make(map[Digest]*Flight),
			negative: make(map[Token]time.Duration),
			released: make(map[Digest]time.Duration),
			changed:  -1, // no change yet
			news:     make(chan struct{}),
		}
		g.items[object] = it
	}
	it.refs++
	g.mu.Unlock()
	it.mu.Lock()
	return it
}

func (it *item) leave() {
	it.mu.Unlock()
	it.g.mu.Lock()
	it.refs--
	it.g.mu.Unlock()
}

// tell wakes all who wait for the object to change. The item is locked.
func (it *item) tell() {
	close(it.news)
	it.news = make(chan struct{})
}

// disturbed reports whether a change of the object was, or may have been,
// under way at or after gate time since. The item is locked.
func (it *item) disturbed(since time.Duration) bool {
	return it.changing > 0 || it.changed >= since
}

// idle reports whether nothing would be lost if the item were forgotten.
func (it *item) idle(now time.Duration) bool {
	const overlap = 10 * time.Minute // longer than any read lasts
	const comesBack = time.Hour      // longer than a patron queues at the desk
	for _, at := range it.released {
		if at+comesBack > now {
			return false
		}
	}
	return it.refs == 0 && len(it.flights) == 0 && it.changing == 0 && it.hold <= now &&
		(it.changed < 0 || it.changed+overlap <= now) && len(it.negative) == 0
}

// negativeFrom is when a negative read of a doubt begins to count. A doubt
// that this run knows nothing of counts from now on.
func (it *item) negativeFrom(r *Record) time.Duration {
	from, ok := it.negative[r.Token]
	if !ok {
		from = it.g.clock.Now() + it.g.opt.Settle
		it.negative[r.Token] = from
	}
	return from
}

// longestWait is how long an expired record is kept all the same: whether it
// had expired is decided by when a transmission arrived, and none of those
// that came in time still waits then.
const longestWait = 5 * time.Minute

// Sweep ends what has ended by age: expired records, sealed requests of old
// doubts, and volatile state nobody needs. Call it every minute or so.
func (g *Gate) Sweep(ctx context.Context) (removed int, err error) {
	now := g.clock.Now()
	for r := range g.store.All() {
		if r.State == Doubtful && r.Request != nil && now >= r.ClaimedAt+g.opt.DoubtRetention {
			if err := g.eraseRequest(ctx, r); err != nil {
				return 0, fmt.Errorf("erase the request of an old doubt: %w", err)
			}
		}
	}
	removed, err = g.store.Sweep(ctx, now-longestWait)
	if err != nil {
		return removed, fmt.Errorf("remove expired records: %w", err)
	}
	if err := g.retire(ctx); err != nil {
		return removed, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for object, it := range g.items {
		if it.refs == 0 && it.idle(now) {
			delete(g.items, object)
		}
	}
	return removed, nil
}

func (g *Gate) eraseRequest(ctx context.Context, r Record) error {
	it := g.item(r.Object)
	defer it.leave()
	r.Request = nil
	_, err := g.store.Update(ctx, r, Behind)
	if errors.Is(err, ErrStale) { // settled meanwhile
		return nil
	}
	return err
}

// Doubts returns the records in doubt, for settling and for staff.
func (g *Gate) Doubts() []Record {
	var out []Record
	for r := range g.store.All() {
		if r.State == Doubtful {
			out = append(out, r)
		}
	}
	return out
}

// Request opens the sealed request of a record: nil if it was erased.
func (g *Gate) Request(r *Record) ([]byte, error) {
	if r.Request == nil {
		return nil, nil
	}
	return g.ring.Load().open(r.label("request"), r.Request)
}

// ErrNoAnswer: nobody has given this record an answer yet. Staff said that the
// loan was made, and no read has shown it.
var ErrNoAnswer = errors.New("there is no stored answer")

// Answer opens the stored answer of a completed record. It returns ErrNoAnswer
// if there is none.
func (g *Gate) Answer(r *Record) ([]byte, error) {
	if r.Answer == nil {
		return nil, ErrNoAnswer
	}
	return g.ring.Load().open(r.label("answer"), r.Answer)
}

func (r *Record) label(what string) []byte {
	b := make([]byte, 0, len(what)+len(r.Key)+len(r.Token))
	b = append(b, what...)
	b = append(b, r.Key[:]...)
	return append(b, r.Token[:]...)
}

func newToken() Token {
	var t Token
	rand.Read(t[:])
	return t
}
