package sip2

import "iter"

// Part says what a [Segment] of a frame is.
type Part uint8

const (
	PartCode    Part = iota + 1 // the two characters of the code
	PartFixed                   // a field of the fixed part
	PartCut                     // the fixed field at which a short frame breaks off
	PartField                   // identifier, value and the delimiter, if it is there
	PartEmpty                   // a delimiter without a field, or a stray byte before one
	PartOpaque                  // what follows an unknown code; a whole line of text
	PartTrailer                 // AY and AZ
)

// Segment is a stretch of a frame. The segments of a frame cover it byte for
// byte, in order and without overlap.
type Segment struct {
	Part  Part
	Fixed FixedField // for PartFixed and PartCut
	ID    ID         // for PartField
	Raw   []byte     // all bytes of the segment
	Value []byte     // Raw without identifier and delimiter
}

// Segments walks the whole frame: joined together, the Raw of all segments is
// the frame.
func (m *Message) Segments() iter.Seq[Segment] {
	return func(yield func(Segment) bool) {
		if m.fixedSegments(yield) && m.fieldSegments(yield) && m.Trailer.Present {
			tail := m.Raw[m.Trailer.Start:]
			yield(Segment{Part: PartTrailer, Raw: tail, Value: tail})
		}
	}
}

// fixedSegments yields all that stands before the fields; false means stop.
func (m *Message) fixedSegments(yield func(Segment) bool) bool {
	pos := 0
	piece := func(end int, s Segment) bool {
		s.Raw = m.Raw[pos:end:end]
		s.Value = s.Raw
		pos = end
		return len(s.Raw) == 0 || yield(s)
	}
	if m.IsFrame() && !piece(2, Segment{Part: PartCode}) {
		return false
	}
	if m.kind == nil {
		return piece(m.Trailer.Start, Segment{Part: PartOpaque})
	}
	for _, f := range m.kind.fixed[:m.whole] {
		if !piece(pos+f.Len, Segment{Part: PartFixed, Fixed: f}) {
			return false
		}
	}
	if m.short {
		return piece(m.fields, Segment{Part: PartCut, Fixed: m.kind.fixed[m.whole]})
	}
	return true
}

// fieldSegments yields the fields and what stands between them; false means
// stop.
func (m *Message) fieldSegments(yield func(Segment) bool) bool {
	for pos := m.fields; pos < m.Trailer.Start; {
		start := pos
		end, next := m.cut(pos)
		pos = next
		s := Segment{Part: PartEmpty, Raw: m.Raw[start:next:next], Value: m.Raw[start:end:end]}
		if end-start >= 2 {
			s.Part, s.ID, s.Value = PartField, ID(m.Raw[start:start+2]), m.Raw[start+2:end:end]
		}
		if !yield(s) {
			return false
		}
	}
	return true
}
