package serialbridge

import (
	"time"

	"sip2gate/dedup"
	"sip2gate/serialbridge/sip2"
)

// This file is about checkouts that must not be taken for new work just
// because nothing is known of them: after the store was lost, and those that a
// kiosk lent off line and uploads.

// look reads whether the loan stands of which nothing is known. The first read
// is made at once; when one proved nothing there is a pause before the next.
func (w *wait) look(v dedup.Verdict, pause *pauses) {
	w.setWhy(unanswered)
	if w.req.Blind.Result != dedup.NotRead {
		w.pauseFor(v, pause.next())
		if w.ctx.Err() != nil {
			return
		}
	}
	w.atILS.Store(true)
	begun := w.s.st.b.gate.Now()
	w.req.Blind = w.s.st.read(w.ctx, w.s.peer.link, &w.msg, true)
	w.req.Blind.Begun = begun
}

// dates tells a kiosk's uploads by their transaction dates: one that is older
// than the newest it has sent by more than it would retry was made off line,
// even where the kiosk uploads as ordinary frames (3M's "Ignore Offline").
type dates struct{ newest time.Time }

// stale takes in the date of a request and reports whether it is one of those.
func (d *dates) stale(m *sip2.Message, horizon time.Duration) bool {
	t, ok := transactionDate(m.Fixed("transaction_date"))
	if !ok {
		return false
	}
	if t.After(d.newest) {
		d.newest = t
		return false
	}
	return t.Before(d.newest.Add(-horizon))
}

// transactionDate reads the 18 characters without their zone: dates are only
// compared with others of the same kiosk.
func transactionDate(b []byte) (time.Time, bool) {
	if len(b) != 18 {
		return time.Time{}, false
	}
	t, err := time.Parse("20060102150405", string(b[:8])+string(b[12:]))
	return t, err == nil
}
