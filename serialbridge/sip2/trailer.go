package sip2

// Trailer is the error detection at the end of a frame: AZ with four
// hexadecimal digits, and directly before it AY with one digit, which may be
// missing. Neither has a delimiter.
type Trailer struct {
	Start   int    // index of AY, or of AZ if there is no AY; the frame's length if there is no trailer
	Present bool   // an AZ with hexadecimal digits ends the frame
	HasSeq  bool   // AY with a digit stands directly before AZ
	Seq     byte   // that digit, '0' to '9'
	Sum     uint16 // the checksum as written
	Digits  int    // hexadecimal digits as written: 4, or 1 to 3 in some answers
	Valid   bool   // the checksum is right for the frame's bytes
}

// ReadTrailer finds the trailer of a frame. It looks at the frame's end only
// and at a fixed length, and never searches: "AY" and "AZ" occur in barcodes
// and names. Hexadecimal digits of either case are read.
func ReadTrailer(frame []byte) Trailer {
	if t, ok := trailerOf(frame, 4); ok {
		return t
	}
	return Trailer{Start: len(frame)}
}

// ReadAnswerTrailer is [ReadTrailer] for answers of an ILS. Some print the
// checksum without its leading zeros (invenio-sip2): there, one to three digits
// of the right value are a right trailer. Of another value they are none, for
// then they are as likely the end of a field.
func ReadAnswerTrailer(frame []byte) Trailer {
	for digits := 4; digits > 0; digits-- {
		if t, ok := trailerOf(frame, digits); ok && (digits == 4 || t.Valid) {
			return t
		}
	}
	return Trailer{Start: len(frame)}
}

// trailerOf reads a trailer with that many hexadecimal digits.
func trailerOf(frame []byte, digits int) (Trailer, bool) {
	az := len(frame) - digits - 2
	if az < 0 || frame[az] != 'A' || frame[az+1] != 'Z' {
		return Trailer{}, false
	}
	t := Trailer{Start: az, Present: true, Digits: digits}
	for _, b := range frame[az+2:] {
		v, ok := hexValue(b)
		if !ok {
			return Trailer{}, false
		}
		t.Sum = t.Sum<<4 | uint16(v)
	}
	if ay := az - 3; ay >= 0 && frame[ay] == 'A' && frame[ay+1] == 'Y' && isDigit(frame[ay+2]) {
		t.Start, t.HasSeq, t.Seq = ay, true, frame[ay+2]
	}
	t.Valid = t.Sum == Sum(frame[:az+2])
	return t, true
}

// Sum is the checksum of a frame whose bytes up to and including "AZ" are b:
// the two's complement of the low 16 bits of their sum. It is taken over bytes,
// whatever the character set.
func Sum(b []byte) uint16 {
	var sum uint16
	for _, c := range b {
		sum += uint16(c)
	}
	return -sum
}

// Body is the frame without its trailer; t must have been read from it. It
// points into the frame.
func Body(frame []byte, t Trailer) []byte { return frame[:t.Start:t.Start] }

// AppendTrailer ends a frame: it appends AY with the digit seq ('0' to '9') if
// hasSeq, then AZ with the checksum. dst must hold that frame from its first
// byte and nothing else, as the checksum is taken over all of it.
func AppendTrailer(dst []byte, hasSeq bool, seq byte) []byte {
	if hasSeq {
		dst = append(dst, 'A', 'Y', seq)
	}
	dst = append(dst, 'A', 'Z')
	return appendHex(dst, Sum(dst), 4, upperHex)
}

// AppendRestamped appends the frame with another sequence number ('0' to '9').
// The checksum is not computed anew but moved by the difference, the other way
// and modulo 65536: a right one stays right, and a wrong one wrong by the same
// amount, so that the peer judges what it would have judged. Width and case of
// the digits are kept; a value that has outgrown its digits gets more. With the
// same number, or without one in t, the frame is copied as it is. t must have
// been read from the frame, and dst must not overlap it.
func AppendRestamped(dst, frame []byte, t Trailer, seq byte) []byte {
	if !t.HasSeq || seq == t.Seq {
		return append(dst, frame...)
	}
	az := t.Start + 3
	dst = append(dst, frame[:t.Start]...)
	dst = append(dst, 'A', 'Y', seq, 'A', 'Z')
	moved := t.Sum + uint16(t.Seq) - uint16(seq)
	return appendHex(dst, moved, t.Digits, hexCase(frame[az+2:]))
}

// AppendWithoutSeq appends the frame without AY and its digit, the checksum
// moved as [AppendRestamped] moves it. A frame without AY is copied as it is.
// t must have been read from the frame, and dst must not overlap it.
func AppendWithoutSeq(dst, frame []byte, t Trailer) []byte {
	if !t.HasSeq {
		return append(dst, frame...)
	}
	az := t.Start + 3
	dst = append(dst, frame[:t.Start]...)
	dst = append(dst, 'A', 'Z')
	moved := t.Sum + 'A' + 'Y' + uint16(t.Seq)
	return appendHex(dst, moved, t.Digits, hexCase(frame[az+2:]))
}

// AppendWithSeq appends the frame with AY and the sequence number ('0' to '9')
// in front of its AZ, the checksum moved as [AppendRestamped] moves it. A frame
// that has AY, or has no AZ, is copied as it is. t must have been read from the
// frame, and dst must not overlap it.
func AppendWithSeq(dst, frame []byte, t Trailer, seq byte) []byte {
	if t.HasSeq || !t.Present {
		return append(dst, frame...)
	}
	dst = append(dst, frame[:t.Start]...)
	dst = append(dst, 'A', 'Y', seq, 'A', 'Z')
	moved := t.Sum - 'A' - 'Y' - uint16(seq)
	return appendHex(dst, moved, t.Digits, hexCase(frame[t.Start+2:]))
}

// NonASCII reports whether b has a byte above 0x7F. Many peers sum characters
// where the protocol says bytes, so such a frame's wrong checksum may be no
// damage.
func NonASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return true
		}
	}
	return false
}

const (
	upperHex = "0123456789ABCDEF"
	lowerHex = "0123456789abcdef"
)

// hexCase is the digits to write a checksum with that was written as b before.
func hexCase(b []byte) string {
	for _, c := range b {
		if 'a' <= c && c <= 'f' {
			return lowerHex
		}
	}
	return upperHex
}

// appendHex appends v with at least that many digits.
func appendHex(dst []byte, v uint16, digits int, set string) []byte {
	for shift := 12; shift >= 0; shift -= 4 {
		if nibble := v >> shift; nibble != 0 || shift < 4*digits {
			dst = append(dst, set[nibble&15])
		}
	}
	return dst
}

func hexValue(b byte) (byte, bool) {
	switch {
	case isDigit(b):
		return b - '0', true
	case 'A' <= b && b <= 'F':
		return b - 'A' + 10, true
	case 'a' <= b && b <= 'f':
		return b - 'a' + 10, true
	}
	return 0, false
}
