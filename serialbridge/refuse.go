package serialbridge

import (
	"fmt"
	"time"

	"sip2gate/serialbridge/sip2"
)

// fit gives an answer the sequence number of the newest transmission. An
// answer from memory also follows it in having a trailer: none if the request
// has none, a computed one if only the stored answer has none and this ILS
// sends them, AY as the request has it. AZ is moved, never computed anew, on a
// frame that has one.
func fit(answer []byte, newest sip2.Trailer, replay, trailers bool) []byte {
	t := sip2.ReadAnswerTrailer(answer)
	buf := make([]byte, 0, len(answer)+9)
	switch {
	case newest.HasSeq && t.HasSeq:
		if newest.Seq == t.Seq {
			return answer
		}
		return sip2.AppendRestamped(buf, answer, t, newest.Seq)
	case !replay:
		return answer
	case !newest.Present:
		return sip2.Body(answer, t)
	case !t.Present && trailers:
		return sip2.AppendTrailer(append(buf, answer...), newest.HasSeq, newest.Seq)
	case newest.HasSeq:
		return sip2.AppendWithSeq(buf, answer, t, newest.Seq)
	}
	return sip2.AppendWithoutSeq(buf, answer, t)
}

// refuse is what a wait ends with where the ILS's answer fails: silence, or
// the most negative well-formed answer. A success is never made up.
func (s *session) refuse(w *wait, r result) []byte {
	if r.why == unreachable || r.why == unanswered && w.kind != checkout {
		switch s.st.b.cfg.WANDown {
		case Silent:
			return nil
		case Close:
			if s.addr != "" { // a serial line has nothing to close
				s.stopping = errClosedForWAN
			}
			return nil
		}
	}
	s.peer.link.Swallowed()
	frame := s.negative(w, r.why)
	if frame == nil || !w.newest.Present {
		return frame
	}
	return sip2.AppendTrailer(frame, w.newest.HasSeq, w.newest.Seq)
}

// text is what the screen says. Only a checkout can be a loan that could not be
// confirmed.
func (s *session) text(w *wait, why refusal) []byte {
	m := &s.st.cfg.Messages
	switch {
	case why == conflicting:
		return m.Conflict
	case why == unreachable, w.kind != checkout:
		return m.Down
	}
	return m.Doubt
}

// negative builds the answer that says no, without a trailer; nil: SIP2 has
// none for this request.
func (s *session) negative(w *wait, why refusal) []byte {
	m := &w.msg
	b := builder{delim: s.st.cfg.Delimiter, m: m, text: s.text(w, why)}
	switch m.Code {
	case sip2.CodeCheckout:
		return b.start("120NUN").date().echo("AO", "AA", "AB").empty("AJ", "AH").screen()
	case sip2.CodeRenew:
		return b.start("300NUN").date().echo("AO", "AA", "AB").empty("AJ", "AH").screen()
	case sip2.CodeRenewAll:
		return b.start("6600000" + "0000").date().echo("AO").screen()
	case sip2.CodeCheckin:
		return b.start("100NUN").date().echo("AO", "AB").empty("AQ").screen()
	case sip2.CodeHold:
		return b.start("160N").date().echo("AO", "AA").screen()
	case sip2.CodeFeePaid:
		return b.start("38N").date().echo("AO", "AA").screen()
	case sip2.CodePatronStatus, sip2.CodeBlockPatron:
		return b.start("24"+blocked).date().echo("AO", "AA").empty("AE").value("BL", "N").screen()
	case sip2.CodePatronEnable:
		return b.start("26"+blocked).date().echo("AO", "AA").empty("AE").value("BL", "N").screen()
	case sip2.CodePatronInformation:
		return b.start("64"+blocked).date().fixed("000000000000000000000000").
			echo("AO", "AA").empty("AE").value("BL", "N").screen()
	case sip2.CodeItemInformation:
		return b.start("18010001").date().echo("AB").empty("AJ").screen()
	case sip2.CodeItemStatusUpdate:
		return b.start("200").date().echo("AB").screen()
	case sip2.CodeEndSession:
		return b.start("36Y").date().echo("AO", "AA").frame
	case sip2.CodeLogin:
		if s.st.mem.Accepted(w.frame) {
			return []byte("941")
		}
		return []byte("940")
	case sip2.CodeSCStatus:
		return s.offline()
	}
	return nil
}

// blocked is a patron status with charge, renewal, recall and hold denied, and
// the language "unknown".
const blocked = "YYYY          000"

// offline is a 98 with on-line N. What the ILS last told this station is kept;
// the timeout and retries are the station's own settings.
func (s *session) offline() []byte {
	delim := s.st.cfg.Delimiter
	ao, am, bx := s.peer.lastInstitution(), []byte(nil), []byte("NNNNNNNNNNNNNNNN")
	version, offlineOK := "2.00", byte('N')
	hasAM := false
	if last := s.st.mem.status98(); last != nil {
		m := sip2.ParseAnswer(last, delim)
		if v, ok := m.Field("AO"); ok {
			ao = v
		}
		am, hasAM = m.Field("AM")
		if v, ok := m.Field("BX"); ok {
			bx = v
		}
		if v := m.Fixed("protocol_version"); len(v) == 4 {
			version = string(v)
		}
		if v := m.Fixed("offline_ok"); len(v) == 1 {
			offlineOK = v[0]
		}
	}
	tenths := min(s.st.cfg.Timeout.Milliseconds()/100, 999) // 999: unknown
	frame := fmt.Appendf(nil, "98NNNNN%c%03d%03d%s%s", offlineOK, tenths,
		min(s.st.cfg.Retries, 999), s.st.b.date(), version)
	frame = sip2.AppendField(frame, "AO", ao, delim)
	if hasAM {
		frame = sip2.AppendField(frame, "AM", am, delim)
	}
	return sip2.AppendField(frame, "BX", bx, delim)
}

func (p *peer) lastInstitution() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.institution
}

// date is the date for a 98. A kiosk may set its clock by it, so it is 18
// zeros (SIP2: not supported) unless the clock is known to be right.
func (b *Bridge) date() string {
	if b.cfg.Clock != nil {
		if now, right := b.cfg.Clock(); right {
			return sipDate(now)
		}
	}
	return "000000000000000000"
}

func sipDate(t time.Time) string { return t.Format("20060102    150405") }

// builder puts an answer together from the request that it refuses.
type builder struct {
	frame []byte
	m     *sip2.Message
	text  []byte
	delim byte
}

func (b builder) start(fixed string) builder { b.frame = append(b.frame, fixed...); return b }

func (b builder) fixed(s string) builder { return b.start(s) }

// date repeats the request's own: it is the kiosk's clock that must not jump.
func (b builder) date() builder {
	d := b.m.Fixed("transaction_date")
	if len(d) != 18 {
		d = []byte("000000000000000000")
	}
	b.frame = append(b.frame, d...)
	return b
}

func (b builder) echo(ids ...string) builder {
	for _, id := range ids {
		v, _ := b.m.Field(id)
		b.frame = sip2.AppendField(b.frame, id, v, b.delim)
	}
	return b
}

func (b builder) empty(ids ...string) builder {
	for _, id := range ids {
		b.frame = sip2.AppendField(b.frame, id, nil, b.delim)
	}
	return b
}

func (b builder) value(id, v string) builder {
	b.frame = sip2.AppendField(b.frame, id, []byte(v), b.delim)
	return b
}

func (b builder) screen() []byte {
	return sip2.AppendField(b.frame, "AF", b.text, b.delim)
}
