package sip2

import (
	"bytes"
	"iter"
)

// Message is a frame that has been read. It points into the frame, which must
// not change while the Message is in use, and allocates nothing. A Message is
// a value; reading from it at the same time in several goroutines is safe.
type Message struct {
	Raw     []byte  // the frame, without terminator
	Code    Code    // zero if Raw is no SIP2 frame
	Trailer Trailer // Trailer.Start is len(Raw) if there is none

	kind   *kind // nil for unknown codes and for text
	delim  byte
	whole  int  // fixed fields that are there in full
	fields int  // index of the first byte behind the fixed part
	short  bool // the fixed part is cut
	noDue  bool // 11 or 29 without nb due date
}

// ID is the two characters that identify a field.
type ID [2]byte

// String is the identifier as it stands on the wire.
func (id ID) String() string { return string(id[:]) }

// Parse reads a frame, as a [Scanner] cuts it, with the given delimiter. It
// never fails: see [Message.IsFrame], [Message.Known] and [Message.Short] for
// what came out.
func Parse(frame []byte, delim byte) Message {
	return parse(frame, delim, ReadTrailer(frame))
}

// ParseAnswer is [Parse] for frames from an ILS: it reads the trailer as
// [ReadAnswerTrailer] does.
func ParseAnswer(frame []byte, delim byte) Message {
	return parse(frame, delim, ReadAnswerTrailer(frame))
}

func parse(frame []byte, delim byte, t Trailer) Message {
	m := Message{Raw: frame, Trailer: t, delim: delim, fields: t.Start}
	if !looksLikeFrame(frame, t) {
		return m
	}
	m.Code = Code(frame[:2])
	if m.kind = kindOf(m.Code); m.kind != nil {
		m.readFixed()
	}
	return m
}

// looksLikeFrame tells a frame from a line of text. SIP2's codes are two
// digits. Private ones are capital letters (SIP2Mediator's XS), and so are the
// first two of many an error text; a right trailer makes the difference.
func looksLikeFrame(frame []byte, t Trailer) bool {
	if t.Start < 2 {
		return false
	}
	a, b := frame[0], frame[1]
	if isDigit(a) && isDigit(b) {
		return true
	}
	return t.Valid && (isDigit(a) || isUpper(a)) && (isDigit(b) || isUpper(b))
}

// readFixed finds where the fixed part ends. It ends early at a delimiter: what
// follows are fields even if bytes before it were lost.
func (m *Message) readFixed() {
	pos, end := 2, m.Trailer.Start
	if i := bytes.IndexByte(m.Raw[pos:end], m.delim); i >= 0 {
		end = pos + i
	}
	for _, f := range m.kind.fixed {
		if f.Name == nbDueDate.Name && m.dueDateAbsent(pos) {
			m.noDue = true
			break
		}
		if pos+f.Len > end {
			m.short = true
			pos = end
			break
		}
		pos += f.Len
		m.whole++
	}
	m.fields = pos
}

// dueDateAbsent reports whether the fields begin at pos, where nb due date
// should stand. Stations and servers are about that leave its 18 characters out
// (fsip2 reads such frames). No date begins with two capital letters.
func (m *Message) dueDateAbsent(pos int) bool {
	rest := m.Raw[pos:m.Trailer.Start]
	return len(rest) == 0 || rest[0] == m.delim ||
		len(rest) >= 2 && isUpper(rest[0]) && isUpper(rest[1])
}

// IsFrame reports whether this is a SIP2 frame and not a line of text (a login
// prompt, an error message): it begins with two digits, or with a private code
// of capital letters and digits and has a right trailer.
func (m *Message) IsFrame() bool { return m.Code != Code{} }

// Known reports whether SIP2 2.00 defines the message. The fields of others
// cannot be found, since nobody knows where their fixed part ends.
func (m *Message) Known() bool { return m.kind != nil }

// Short reports whether bytes of the fixed part are missing: the frame, or a
// delimiter, ends it early. An 11 or 29 without nb due date is not short.
func (m *Message) Short() bool { return m.short }

// MissingDueDate reports whether this is a Checkout or Renew without the 18
// characters of nb due date. Its fields are found all the same.
func (m *Message) MissingDueDate() bool { return m.noDue }

// Fixed is a field of the fixed part by the name that [FixedFields] gives it;
// nil if it is absent or cut.
func (m *Message) Fixed(name string) []byte {
	if m.kind == nil {
		return nil
	}
	pos := 2
	for _, f := range m.kind.fixed[:m.whole] {
		end := pos + f.Len
		if f.Name == name {
			return m.Raw[pos:end:end]
		}
		pos = end
	}
	return nil
}

// Field is the value of the first field with that identifier, and whether there
// is one. A field that is present and empty is an empty value and true.
func (m *Message) Field(id string) ([]byte, bool) {
	if len(id) != 2 {
		return nil, false
	}
	for pos := m.fields; pos < m.Trailer.Start; {
		start, end := pos, 0
		end, pos = m.cut(pos)
		if end-start >= 2 && m.Raw[start] == id[0] && m.Raw[start+1] == id[1] {
			return m.Raw[start+2 : end : end], true
		}
	}
	return nil, false
}

// Count is how many fields have that identifier.
func (m *Message) Count(id string) int {
	if len(id) != 2 {
		return 0
	}
	n := 0
	for pos := m.fields; pos < m.Trailer.Start; {
		start, end := pos, 0
		end, pos = m.cut(pos)
		if end-start >= 2 && m.Raw[start] == id[0] && m.Raw[start+1] == id[1] {
			n++
		}
	}
	return n
}

// Fields walks the fields in wire order, without AY and AZ. What stands between
// two delimiters and is shorter than an identifier is no field.
func (m *Message) Fields() iter.Seq2[ID, []byte] {
	return func(yield func(ID, []byte) bool) {
		for pos := m.fields; pos < m.Trailer.Start; {
			start, end := pos, 0
			end, pos = m.cut(pos)
			if end-start >= 2 && !yield(ID(m.Raw[start:start+2]), m.Raw[start+2:end:end]) {
				return
			}
		}
	}
}

// cut finds the end of the field that begins at pos, and where the next begins.
// The last field may lack its delimiter.
func (m *Message) cut(pos int) (end, next int) {
	if i := bytes.IndexByte(m.Raw[pos:m.Trailer.Start], m.delim); i >= 0 {
		return pos + i, pos + i + 1
	}
	return m.Trailer.Start, m.Trailer.Start
}

// AppendField appends a field: identifier, value, delimiter. The value must not
// hold the delimiter or a line end.
func AppendField(dst []byte, id string, value []byte, delim byte) []byte {
	dst = append(dst, id...)
	dst = append(dst, value...)
	return append(dst, delim)
}
