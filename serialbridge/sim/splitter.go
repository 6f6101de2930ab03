package sim

import "bytes"

// splitter cuts a byte stream into lines. It is deliberately not the splitter
// of the gate: what the gate forwards is judged by another reader.
type splitter struct {
	lf  bool // LF ends a line as well as CR
	buf []byte
}

func (s *splitter) add(b []byte) { s.buf = append(s.buf, b...) }

// waiting is the number of bytes that are no line yet.
func (s *splitter) waiting() int { return len(s.buf) }

// next returns a copy of the next line without its terminator and without the
// LF, NUL and blanks before it. It is empty for a line without a frame.
func (s *splitter) next() ([]byte, bool) {
	ends := "\r"
	if s.lf {
		ends = "\r\n"
	}
	i := bytes.IndexAny(s.buf, ends)
	if i < 0 {
		return nil, false
	}
	line := bytes.Clone(bytes.TrimLeft(s.buf[:i], "\n\x00 "))
	s.buf = append(s.buf[:0], s.buf[i+1:]...)
	return line, true
}
