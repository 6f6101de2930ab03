package ils

import (
	"bytes"
	"errors"
	"log/slog"
	"math/bits"

	"sip2gate/serialbridge/sip2"
)

// errNotOurs: a frame that answers something else. The wait goes on.
var errNotOurs = errors.New("the frame does not belong to the request")

// judge decides whether a frame is the answer to the outstanding request, by
// what this connection has shown so far.
type judge struct {
	code  sip2.Code // of the request
	prev  byte      // AY of the request before it; 0: it had none
	t     sip2.Trailer
	item  []byte   // its AB, normalised; only of an 11
	items [][]byte // of earlier 11s on this connection, the newest last

	echoed  uint16 // numbers echoed rightly, a bit each
	strange bool   // it has echoed a wrong one: numbers are not compared
	missed  int    // wrong ones in a row since numbers are compared
}

// rememberedItems bounds how far back a late answer is recognised.
const rememberedItems = 16

func (j *judge) reset() { *j = judge{} }

func (j *judge) begin(frame []byte, delim byte) {
	m := sip2.Parse(frame, delim)
	if j.item != nil {
		if len(j.items) == rememberedItems {
			j.items = append(j.items[:0], j.items[1:]...)
		}
		j.items = append(j.items, j.item)
	}
	j.prev = 0
	if j.t.HasSeq {
		j.prev = j.t.Seq
	}
	j.code, j.t, j.item = m.Code, m.Trailer, nil
	if m.Code == sip2.CodeCheckout {
		ab, _ := m.Field("AB")
		j.item = normalise(ab)
	}
}

// comparing: this ILS has echoed three different numbers rightly and none
// wrongly. Some always say the same (dp2), and nothing may hang on those.
func (j *judge) comparing() bool {
	return !j.strange && bits.OnesCount16(j.echoed) >= 3
}

func (j *judge) answer(frame []byte, srv *Server, delim byte, log *slog.Logger) (Answer, error) {
	a := Answer{Frame: frame, Msg: sip2.ParseAnswer(frame, delim)}
	m := &a.Msg
	want, known := sip2.Response(j.code)
	if !known {
		return a, nil // to an unknown code any one line is the answer
	}
	if !m.IsFrame() {
		log.Warn("ils_text", "length", len(frame))
		return a, ErrText
	}
	sure := j.t.HasSeq && m.Trailer.HasSeq && m.Trailer.Seq == j.t.Seq
	switch m.Code {
	case want:
	case sip2.CodeRequestSCResend:
		return a, nil // "send that again" has no number
	case sip2.CodeACSStatus:
		if !sure && (j.t.HasSeq || m.Trailer.HasSeq) {
			log.Warn("ils_stray_frame", "code", m.Code.String())
			return a, errNotOurs
		}
		a.NotDone = sure && j.echoed&^seqBit(j.t.Seq) != 0
		return a, nil
	default:
		log.Warn("ils_stray_frame", "code", m.Code.String())
		return a, errNotOurs
	}
	if m.Code == sip2.CodeCheckoutResponse && j.previous(m) {
		return a, ErrLate
	}
	if !j.rightNumber(m, log) {
		return a, errNotOurs
	}
	if m.Code == sip2.CodeCheckoutResponse {
		return a, j.checkout(&a, srv)
	}
	return a, nil
}

// previous reports whether a 12 carries the number of the request before this
// one, on a link that has not shown yet that its numbers mean nothing: a second
// answer to that one must neither complete nor release this.
func (j *judge) previous(m *sip2.Message) bool {
	return !j.strange && j.t.HasSeq && m.Trailer.HasSeq &&
		m.Trailer.Seq != j.t.Seq && m.Trailer.Seq == j.prev
}

// rightNumber compares AY where that means something, and learns.
func (j *judge) rightNumber(m *sip2.Message, log *slog.Logger) bool {
	if !j.t.HasSeq || !m.Trailer.HasSeq {
		return true
	}
	if m.Trailer.Seq == j.t.Seq {
		j.echoed |= seqBit(j.t.Seq)
		j.missed = 0
		return true
	}
	if !j.comparing() {
		if !j.strange {
			log.Warn("ils_sequence", "problem", "the ILS's sequence numbers do not follow the requests'; they are not compared on this link")
		}
		j.strange = true
		return true
	}
	j.missed++
	if j.missed < 2 {
		log.Warn("ils_stray_frame", "code", m.Code.String(), "problem", "other sequence number")
		return false
	}
	log.Warn("ils_sequence", "problem", "two wrong sequence numbers in a row; they are not compared on this link any more")
	j.strange = true
	return true
}

// checkout looks closer at a 12.
func (j *judge) checkout(a *Answer, srv *Server) error {
	if srv.damaged(&a.Msg, j.t.Present) {
		return ErrDamaged
	}
	ab, ok := a.Msg.Field("AB")
	if !ok {
		return nil
	}
	got := normalise(ab)
	if len(got) == 0 || bytes.Equal(got, j.item) {
		return nil
	}
	for _, earlier := range j.items {
		if bytes.Equal(got, earlier) {
			return ErrLate
		}
	}
	// ILSs echo barcodes in other forms: with a prefix, without a check digit.
	a.Foreign = !bytes.Contains(got, j.item) && !bytes.Contains(j.item, got)
	return nil
}

func seqBit(seq byte) uint16 { return 1 << (seq - '0') }

// normalise keeps letters and digits, in lower case.
func normalise(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, c := range b {
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z':
			out = append(out, c)
		case 'A' <= c && c <= 'Z':
			out = append(out, c+'a'-'A')
		}
	}
	return out
}
