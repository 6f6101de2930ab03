package serialbridge

import (
	"context"
	"time"

	"sip2gate/dedup"
	"sip2gate/serialbridge/ils"
	"sip2gate/serialbridge/sip2"
)

// readAbout asks the ILS about one record. The claim's own request is used
// where it is still there: the PIN in it is the one that was right then. Else
// own, the request at hand, names the same loan.
func (st *station) readAbout(ctx context.Context, link *ils.Link, rec dedup.Record, own *sip2.Message, details bool) dedup.Reading {
	rd := dedup.Reading{Result: dedup.Unreadable}
	if rec.State != dedup.Completed && rec.Target != (dedup.Digest{}) && rec.Target != st.b.cfg.Target {
		st.log.Warn("read_not_made", "why", "the checkout went to another ILS address than the one configured now")
		return rd
	}
	m := own
	if frame, err := st.b.gate.Request(&rec); err == nil && frame != nil {
		claimed := sip2.Parse(frame, st.cfg.Delimiter)
		m = &claimed
	}
	if m == nil {
		return rd
	}
	return st.read(ctx, link, m, details)
}

// read asks the ILS whether the loan that a checkout asks for stands.
func (st *station) read(ctx context.Context, link *ils.Link, m *sip2.Message, details bool) dedup.Reading {
	got := link.Read(ctx, query(m), details)
	switch got.Result {
	case ils.Charged:
		return dedup.Reading{Result: dedup.Charged, Answer: st.lent(m, got)}
	case ils.Absent:
		return dedup.Reading{Result: dedup.Absent}
	}
	item, _ := m.Field("AB")
	st.log.Info("read_unclear", "item", string(dedup.Trim(item)), "why", got.Note)
	return dedup.Reading{Result: dedup.Unreadable}
}

func query(m *sip2.Message) ils.Query {
	field := func(id string) []byte { v, _ := m.Field(id); return v }
	q := ils.Query{
		Institution: field("AO"), Patron: dedup.Trim(field("AA")), Item: dedup.Trim(field("AB")),
		Terminal: field("AC"), Date: m.Fixed("transaction_date"),
	}
	if ad, ok := m.Field("AD"); ok {
		q.Password = ad
	}
	return q
}

// lent is a 12 ok=1 of what the ILS says of a loan: no due date but its own,
// renewal N, and a text that says that the loan may be an older one.
func (st *station) lent(m *sip2.Message, r ils.Reading) []byte {
	magnetic, desensitize := st.b.srv.Flags()
	b := builder{delim: st.cfg.Delimiter, m: m, text: st.cfg.Messages.Lent}
	b = b.start("121N" + string(magnetic) + string(desensitize))
	if len(r.Date) == 18 {
		b = b.fixed(string(r.Date))
	} else {
		b = b.date()
	}
	frame := b.echo("AO", "AA", "AB").value("AJ", string(r.Title)).value("AH", string(r.Due)).screen()
	if st.b.srv.Trailers() {
		frame = sip2.AppendTrailer(frame, true, '0') // the number is the newest request's when it is given
	}
	return frame
}

// logSettled tells what a reading has settled.
func (st *station) logSettled(rec dedup.Record, did dedup.Settled) {
	var outcome string
	switch did {
	case dedup.SettledLent:
		outcome = "lent"
	case dedup.SettledNotLent:
		outcome = "not lent"
	default:
		return
	}
	st.log.Info("checkout_settled", "dedup_key", dedup.KeyString(rec.Key),
		"institution", rec.Scope, "item", rec.Label, "outcome", outcome)
}

// pauses are the growing pauses between reads about one doubt.
type pauses struct{ following time.Duration }

const (
	firstPause  = time.Second
	widestPause = 5 * time.Minute
)

func newPauses() *pauses { return &pauses{firstPause} }

func (p *pauses) next() time.Duration {
	d := p.following
	p.following = min(2*p.following, widestPause)
	return d
}

// pulse wakes a station's settling loop: there is a new doubt, or the ILS is
// back.
type pulse chan struct{}

func (p pulse) beat() {
	select {
	case p <- struct{}{}:
	default:
	}
}

// patronsTurn is how long a new doubt is left to the patron who waits: his own
// wait reads first.
const patronsTurn = 5 * time.Second

// backgroundRead bounds a read that nobody waits for, connecting included.
const backgroundRead = 30 * time.Second

type dueRead struct {
	at    time.Time
	pause *pauses
}

// settleDoubts reads about the station's doubts, without anybody asking, until
// each is settled: at once for those of the last run, then with growing pauses.
func (st *station) settleDoubts(ctx context.Context) {
	due := make(map[dedup.Token]*dueRead)
	first := true
	heart := st.b.hearts.start("station " + st.cfg.Name + ": settling doubts")
	defer heart.stop()
	for {
		heart.beat()
		next := st.settleDue(ctx, due, first, heart)
		first = false
		timer := time.NewTimer(min(heartbeat, time.Until(next)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-st.pulse:
			timer.Stop()
			for _, d := range due {
				d.pause = newPauses()
				d.at = earlier(d.at, time.Now().Add(d.pause.next()))
			}
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// settleDue makes the reads that are due and returns when the next one is.
func (st *station) settleDue(ctx context.Context, due map[dedup.Token]*dueRead, first bool, heart *heart) (next time.Time) {
	next = time.Now().Add(time.Hour)
	if !st.b.srv.Readable() {
		return next
	}
	open := make(map[dedup.Token]bool)
	for _, rec := range st.b.gate.Doubts() {
		if !st.owns(&rec) || rec.Request == nil || rec.Target != st.b.cfg.Target {
			continue
		}
		open[rec.Token] = true
		d := due[rec.Token]
		if d == nil {
			d = &dueRead{at: time.Now(), pause: newPauses()}
			if !first {
				d.at = d.at.Add(patronsTurn)
			}
			due[rec.Token] = d
		}
		if time.Until(d.at) <= 0 {
			if ctx.Err() != nil {
				return next
			}
			heart.beat()
			if st.settleOne(ctx, rec) {
				delete(due, rec.Token)
				continue
			}
			d.at = time.Now().Add(d.pause.next())
			// The moment from which a negative read counts is worth a read.
			if left := st.b.gate.NegativeFrom(rec) - st.b.gate.Now(); left > 0 {
				d.at = earlier(d.at, time.Now().Add(left))
			}
		}
		next = earlier(next, d.at)
	}
	for token := range due {
		if !open[token] {
			delete(due, token)
		}
	}
	return next
}

// owns: a doubt of a station that is no longer configured falls to the first.
func (st *station) owns(rec *dedup.Record) bool {
	if rec.Station == st.cfg.Name {
		return true
	}
	for _, other := range st.b.stations {
		if other.cfg.Name == rec.Station {
			return false
		}
	}
	return st == st.b.stations[0]
}

func (st *station) settleOne(ctx context.Context, rec dedup.Record) bool {
	link, done := st.borrow()
	defer done()
	ctx, cancel := context.WithTimeout(ctx, backgroundRead)
	defer cancel()
	begun := st.b.gate.Now()
	rd := st.readAbout(ctx, link, rec, nil, true)
	rd.Begun = begun
	did, now, err := st.b.gate.Settle(context.WithoutCancel(ctx), rec, rd)
	if err != nil {
		st.log.Error("gate_failed", "error", err.Error())
	}
	st.logSettled(now, did)
	return did == dedup.SettledLent || did == dedup.SettledNotLent
}

// borrow finds a link for a read of the gate's own: the station's, one of a
// kiosk that is connected, or else one for this read only.
func (st *station) borrow() (link *ils.Link, done func()) {
	if st.line != nil {
		return st.line.link, func() {}
	}
	login, status := st.mem.newest()
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, s := range st.sessions {
		if s.peer.link.Up() {
			return s.peer.link, func() {}
		}
	}
	p := newReader(st, login, status)
	return p.link, func() {
		ctx, cancel := context.WithTimeout(context.Background(), st.drainTime())
		defer cancel()
		p.close(ctx)
	}
}
