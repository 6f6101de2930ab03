package sip2

import (
	"bytes"
	"strconv"
)

// Redact describes a frame for logs and errors without telling who the patron
// is: its code, then each field's identifier with the length of its value in
// bytes, as in
//
//	11 AO="MAIN" AA[14] AB="31234000000022" AD[4] BO[1] AY1 AZ
//
// Institution (AO) and item (AB) stand in clear, control characters escaped,
// unless the value looks as if a delimiter were lost or wrongly configured and
// another field had run into it. Of text, and of what follows an unknown code,
// only the length is told.
func Redact(frame []byte, delim byte) string {
	m := ParseAnswer(frame, delim)
	var out []byte
	for s := range m.Segments() {
		if len(out) > 0 && s.Part != PartFixed && s.Part != PartEmpty {
			out = append(out, ' ')
		}
		switch s.Part {
		case PartCode:
			out = append(out, s.Raw...)
		case PartCut:
			out = appendLen(append(out, "cut"...), s.Raw)
		case PartOpaque:
			out = appendLen(append(out, "text"...), s.Raw)
		case PartField:
			out = appendRedacted(out, s)
		case PartTrailer:
			out = appendTrailerStyle(out, m.Trailer)
		}
	}
	return string(out)
}

func appendRedacted(out []byte, s Segment) []byte {
	if !isUpper(s.ID[0]) || !isUpper(s.ID[1]) && !isDigit(s.ID[1]) {
		// More likely the rest of a value that holds a delimiter.
		return appendLen(append(out, "??"...), s.Value)
	}
	out = append(out, s.ID[:]...)
	if id := s.ID.String(); (id == "AO" || id == "AB") && isPlain(s.Value) {
		return strconv.AppendQuoteToASCII(append(out, '='), string(s.Value))
	}
	return appendLen(out, s.Value)
}

func appendLen(out, value []byte) []byte {
	out = strconv.AppendInt(append(out, '['), int64(len(value)), 10)
	return append(out, ']')
}

func appendTrailerStyle(out []byte, t Trailer) []byte {
	if t.HasSeq {
		out = append(out, 'A', 'Y', t.Seq, ' ')
	}
	out = append(out, "AZ"...)
	if !t.Valid {
		out = append(out, " (wrong)"...)
	}
	return out
}

// private lists identifiers whose values tell of a person, a password or a
// title.
var private = [][]byte{
	[]byte("AA"), []byte("AC"), []byte("AD"), []byte("AE"), []byte("AF"), []byte("AG"),
	[]byte("AJ"), []byte("AU"), []byte("BD"), []byte("BE"), []byte("BF"), []byte("CN"),
	[]byte("CO"), []byte("CY"), []byte("DA"),
}

// maxPlain is longer than any item barcode or institution id.
const maxPlain = 64

// isPlain reports whether a value may be shown: nothing in it can be the start
// of a private field that has lost its delimiter.
func isPlain(value []byte) bool {
	if len(value) > maxPlain {
		return false
	}
	for _, id := range private {
		if bytes.Contains(value, id) {
			return false
		}
	}
	return true
}
