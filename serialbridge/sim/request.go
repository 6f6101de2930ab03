package sim

import (
	"fmt"
	"strings"
	"time"

	"sip2gate/serialbridge/sip2"
)

// dateForm is a SIP2 date in local time: YYYYMMDD, four blanks, HHMMSS.
const dateForm = "20060102    150405"

// request is a frame that has been read.
type request struct {
	msg  sip2.Message
	code string // empty for what is no frame
}

func parse(line []byte, delim byte) request {
	m := sip2.Parse(line, delim)
	return request{msg: m, code: m.Code.String()}
}

// field is the value of a field without blanks and control characters round
// it, empty if absent.
func (r request) field(id string) string {
	v, _ := r.msg.Field(id)
	return strings.TrimFunc(string(v), func(c rune) bool { return c <= ' ' })
}

// optional is nil if the field is absent.
func (r request) optional(id string) *string {
	if _, ok := r.msg.Field(id); !ok {
		return nil
	}
	v := r.field(id)
	return &v
}

func (r request) fixed(name string) string { return string(r.msg.Fixed(name)) }

// date reads a date of the fixed part; zero if it is none.
func (r request) date(name string, loc *time.Location) time.Time {
	t, err := time.ParseInLocation(dateForm, r.fixed(name), loc)
	if err != nil {
		return time.Time{}
	}
	return t
}

// seq is AY, empty if there is none.
func (r request) seq() string {
	if !r.msg.Trailer.HasSeq {
		return ""
	}
	return string(rune(r.msg.Trailer.Seq))
}

// answer is a frame on its way out.
type answer struct {
	body       []byte // empty: silence
	bare       bool   // no trailer
	noSeq      bool   // a trailer without AY: 96
	seq        byte
	terminator string
	hangUp     bool // end the connection instead
}

// frame is the answer as it goes on the wire.
func (a answer) frame() []byte {
	out := append([]byte(nil), a.body...)
	if !a.bare {
		out = sip2.AppendTrailer(out, !a.noSeq, a.seq)
	}
	return append(out, a.terminator...)
}

// text builds the body of a message.
type text struct {
	b     []byte
	delim byte
}

// message begins a body with the code and fixed part.
func (c *conn) message(format string, args ...any) *text {
	return &text{b: fmt.Appendf(nil, format, args...), delim: c.ils.opts.Delimiter}
}

// with appends a field. What would end the field or the frame early is left
// out of the value; other bytes are taken as they are, in any charset.
func (t *text) with(id, value string) *text {
	t.b = append(t.b, id...)
	for _, b := range []byte(value) {
		if b != t.delim && b != '\r' {
			t.b = append(t.b, b)
		}
	}
	t.b = append(t.b, t.delim)
	return t
}

// unlessEmpty is with for fields that are left out when they have no value.
func (t *text) unlessEmpty(id, value string) *text {
	if value == "" {
		return t
	}
	return t.with(id, value)
}
