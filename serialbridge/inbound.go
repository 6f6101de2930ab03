package serialbridge

import (
	"bytes"
	"context"
	"log/slog"
	"time"

	"sip2gate/dedup"
	"sip2gate/serialbridge/ils"
	"sip2gate/serialbridge/sip2"
)

// frame takes in one frame of the kiosk.
func (s *session) frame(in inbound) {
	m := sip2.Parse(in.frame, s.st.cfg.Delimiter)
	if m.Code == sip2.CodeRequestACSResend {
		s.resend(in)
		return
	}
	switch s.peer.checks.judge(&m, doubledCheckout(&m)) {
	case resend:
		s.log.Warn("frame_sent_back", "code", m.Code.String(), "length", len(in.frame))
		s.peer.link.Swallowed()
		s.write(s.peer.checks.resendRequest())
		return
	case insists:
		s.log.Warn("frame_passed_damaged", "code", m.Code.String(), "length", len(in.frame),
			"hint", "the kiosk insists on a wrong checksum: it may be set to another character set")
	}
	if m.Trailer.Valid {
		s.peer.link.UseDetection(true)
		s.st.mem.keepDetects()
	}
	s.lastAnswers = false
	w := s.newWait(in, m)
	if twin := s.twin(w); twin != nil {
		s.join(twin, w)
		return
	}
	switch o := s.outstanding; {
	case o == nil:
		s.start(w)
	case in.batch == o.batch, !o.atILS.Load() && in.at.Sub(o.heard) < pipelined:
		if len(s.queue) == maxQueue {
			s.log.Warn("requests_dropped", "limit", maxQueue,
				"hint", "the kiosk sends without waiting for answers")
			w.end()
			s.peer.link.Swallowed()
			return
		}
		s.queue = append(s.queue, w)
		if w.kind == checkout { // its window moves, whatever becomes of it here
			req := *w.req // the worker's own call changes it
			s.peer.workers.Go(func() { s.st.b.gate.Touch(context.Background(), &req) })
		}
	default:
		// The kiosk has given up: the late answer is for the gate alone. What
		// waits for the link still goes out before this one, in its time.
		if o.kind == checkout || o.atILS.Load() {
			o.end()
		} else {
			time.AfterFunc(time.Until(o.until()), o.end)
		}
		s.start(w)
	}
}

// pipelined is how far apart two requests may come that were sent without
// waiting. SIP2 has no such thing; cuts of a stream do.
const pipelined = time.Second

// newWait classifies a request and takes note of it as what the station sent
// last.
func (s *session) newWait(in inbound, m sip2.Message) *wait {
	w := &wait{s: s, frame: in.frame, msg: m, batch: in.batch, heard: in.at, newest: m.Trailer}
	w.ctx, w.cancel = context.WithCancelCause(context.Background())
	at := s.st.b.gate.Now()
	if ao, ok := m.Field("AO"); ok {
		s.peer.mu.Lock()
		s.peer.institution = ao
		s.peer.mu.Unlock()
	}
	stale := s.peer.dates.stale(&m, s.st.horizon())
	switch m.Code {
	case sip2.CodeLogin:
		w.kind = login
	case sip2.CodeSCStatus:
		w.kind = status
	case sip2.CodeCheckin:
		w.kind = change
	case sip2.CodeCheckout:
		w.kind = s.classifyCheckout(w, at)
		if w.req != nil {
			w.req.Upload = stale || w.req.Partial
		}
	}
	switch w.kind {
	case pass, change:
		s.st.interrupt(s.peer.hist)
	}
	w.deadline = s.deadlineFor(in.at)
	return w
}

func (s *session) classifyCheckout(w *wait, at time.Duration) kind {
	m := &w.msg
	if yes(m, "BI") {
		return change
	}
	aa, _ := m.Field("AA")
	ab, _ := m.Field("AB")
	if len(dedup.Trim(aa)) == 0 || len(dedup.Trim(ab)) == 0 {
		s.log.Warn("checkout_not_gated", "why", "patron or item is empty")
		return pass
	}
	if m.MissingDueDate() {
		s.log.Debug("checkout_without_due_date")
	}
	w.req = checkoutRequest(m, s.st.cfg.Name, at)
	w.req.Waiter = w
	keys := s.st.b.gate.Keys()
	id := keys.Identify(w.req.Scope, w.req.Subject, w.req.Object, w.req.Sequence)
	w.key = id.Key
	all := append([]byte(nil), id.Key[:]...)
	for _, d := range keys.Fingerprint(id.Pair, w.req.Compared) {
		all = append(all, d[:]...)
	}
	w.trace = checkoutTrace{
		identity: keys.Digest("repeat:", all),
		date:     string(m.Fixed("transaction_date")),
		at:       at,
	}
	w.req.Own, w.gap = s.st.observe(s.peer.hist, s.addr, w.trace, s.st.horizon())
	w.req.Origin = s.peer.hist.origin()
	return checkout
}

// horizon is how long after its last transmission the machine may repeat it.
func (st *station) horizon() time.Duration {
	return time.Duration(st.cfg.Retries+1) * st.cfg.Timeout
}

// checkoutRequest says which fields of an 11 make a transaction. Compared are
// BO (absent is N) and AD (absent is empty), nothing else: a retry may come
// with another date, AY, AZ, AC, CH, due date, renewal policy or no-block flag.
func checkoutRequest(m *sip2.Message, station string, at time.Duration) *dedup.Request {
	field := func(id string) []byte { v, _ := m.Field(id); return v }
	r := &dedup.Request{
		Scope: field("AO"), Subject: field("AA"), Object: field("AB"),
		Payload: m.Raw, Station: station, Arrived: at,
		Partial: flag(m, "no_block"),
	}
	if m.Trailer.HasSeq {
		r.Sequence = []byte{m.Trailer.Seq}
	}
	fee := []byte("N")
	if yes(m, "BO") {
		fee = []byte("Y")
	}
	r.Compared = [][]byte{fee, field("AD")}
	return r
}

func yes(m *sip2.Message, id string) bool {
	v, _ := m.Field(id)
	return len(v) > 0 && (v[0] == 'Y' || v[0] == 'y')
}

func flag(m *sip2.Message, name string) bool {
	v := m.Fixed(name)
	return len(v) > 0 && (v[0] == 'Y' || v[0] == 'y')
}

// twin finds the request that w repeats while its answer is still to come. A
// checkout joins only as the machine's own repeat, which by its definition
// follows its twin directly; anything else joins what it equals.
func (s *session) twin(w *wait) *wait {
	if w.kind == checkout {
		last := s.outstanding
		for i := len(s.queue) - 1; i >= 0; i-- {
			if s.queue[i].kind != login && s.queue[i].kind != status {
				last = s.queue[i]
				break
			}
		}
		if w.req.Own && last != nil && last.kind == checkout && last.trace.identity == w.trace.identity {
			return last
		}
		return nil
	}
	if s.outstanding != nil && sameRequest(&s.outstanding.msg, &w.msg) {
		return s.outstanding
	}
	for _, q := range s.queue {
		if sameRequest(&q.msg, &w.msg) {
			return q
		}
	}
	return nil
}

// sameRequest compares all but transaction date, AY and AZ.
func sameRequest(a, b *sip2.Message) bool {
	if a.Code != b.Code || a.Code == sip2.CodeCheckout && yes(a, "BI") != yes(b, "BI") {
		return false
	}
	x, y := sip2.Body(a.Raw, a.Trailer), sip2.Body(b.Raw, b.Trailer)
	if len(x) != len(y) {
		return false
	}
	at := dateAt(a.Code)
	end := at + len("YYYYMMDDZZZZHHMMSS")
	if at < 0 || end > len(x) {
		return bytes.Equal(x, y)
	}
	return bytes.Equal(x[:at], y[:at]) && bytes.Equal(x[end:], y[end:])
}

// dateAt is where a message's transaction date begins; -1: it has none.
func dateAt(c sip2.Code) int {
	at := len(c)
	for _, f := range sip2.FixedFields(c) {
		if f.Name == "transaction_date" {
			return at
		}
		at += f.Len
	}
	return -1
}

// join makes w the newest transmission of twin: it gets the one answer, and
// the kiosk's patience counts from it.
func (s *session) join(twin, w *wait) {
	w.end()
	twin.newest, twin.heard = w.newest, w.heard
	twin.extend(w.deadline)
	s.peer.link.Swallowed()
	if w.kind == checkout {
		if w.batch != twin.batch { // two of one read are no timer's doing
			s.peer.patient.saw(w.gap, s.log)
		}
		w.event("checkout_joined")
	}
}

// resend answers a 97: with the answer to come, with the last frame written if
// that answered the newest request, else with a 96.
func (s *session) resend(in inbound) {
	switch {
	case s.outstanding != nil:
		s.outstanding.extend(s.deadlineFor(in.at))
	case s.lastAnswers && s.lastFrame != nil:
		s.write(s.lastFrame)
	default:
		s.write(s.peer.checks.resendRequest())
	}
}

// learn notes what an exchange shows of logins and status.
func (s *session) learn(w *wait, a *ils.Answer) {
	p, mem := s.peer, s.st.mem
	switch {
	case w.kind == login && a.Msg.Code == sip2.CodeLoginResponse:
		if string(a.Msg.Fixed("ok")) != "1" {
			mem.forgetLogin(w.frame)
			return
		}
		p.mu.Lock()
		p.login = w.frame
		p.mu.Unlock()
		mem.keepLogin(w.frame)
	case w.kind == status && a.Msg.Code == sip2.CodeACSStatus:
		p.mu.Lock()
		p.status = w.frame
		p.mu.Unlock()
		mem.keepStatus(w.frame, a.Frame)
	}
}

// fields are the log fields of a checkout. Never the patron.
func (w *wait) fields() []any {
	return []any{
		slog.String("dedup_key", dedup.KeyString(w.key)),
		slog.String("institution", string(w.req.Scope)),
		slog.String("item", string(dedup.Trim(w.req.Object))),
		slog.String("sequence", string(w.req.Sequence)),
	}
}
