package sip2

import "bytes"

// MaxFrame is the longest frame in bytes, without terminator. What is longer is
// discarded up to the next terminator.
const MaxFrame = 64 << 10

// keepBuffer is the capacity in bytes up to which an empty scanner keeps its
// buffer.
const keepBuffer = 4 * MaxFrame

// Terminator is how a peer ends its frames.
type Terminator uint8

const (
	TerminatorAuto Terminator = iota // cut at CR; an LF after it is skipped
	TerminatorCR                     // the same
	TerminatorCRLF                   // the same: a peer that says CR LF may still send a bare CR
	TerminatorLF                     // cut at LF, and drop one CR before it
)

// Notice tells what a [Scanner] has not handed out.
type Notice struct {
	Skipped int  // bytes of line noise before frames, telnet bytes included; not CR, LF, NUL and blanks
	Telnet  bool // telnet negotiation was among them: the peer should be set to a raw connection
	TooLong int  // frames longer than MaxFrame
}

// Scanner cuts a stream of bytes into frames. How the bytes are spread over
// calls of Write makes no difference. Bytes before a frame that are neither
// ASCII letters nor digits are not part of it: an ILS trims them and carries
// out the rest. Inside a frame every byte but the terminator stays.
//
// The zero Scanner is ready for use with [TerminatorAuto]. A Scanner is not
// safe for use by several goroutines at once. Each byte is looked at and moved
// a constant number of times on average, and once the buffer has grown to the
// traffic's size nothing is allocated.
type Scanner struct {
	terminator Terminator
	state      scanState
	crlf       bool
	notice     Notice

	buf   []byte // frames cut and not yet forgotten, then the half one
	ends  []int  // where the frames in buf end; each begins where the one before ends
	taken int    // frames of ends that Next has handed out
	half  int    // where the half frame begins
}

type scanState uint8

const (
	atHead   scanState = iota // before a frame
	afterCR                   // the same, directly after a frame's CR
	afterIAC                  // before a frame, after a 0xFF
	inOption                  // one more byte of a telnet negotiation to come
	inFrame
	inExcess // in a frame that is too long
)

const telnetIAC = 0xFF

// NewScanner is a scanner for a peer that ends its frames in a known way.
func NewScanner(t Terminator) *Scanner { return &Scanner{terminator: t} }

// Write takes over bytes that have been read. It keeps a copy of what it needs
// and always reports len(p) and no error. Frames handed out before are invalid
// afterwards.
func (s *Scanner) Write(p []byte) (int, error) {
	s.forget()
	n := len(p)
	for len(p) > 0 {
		switch s.state {
		case inFrame, inExcess:
			p = s.body(p)
		default:
			p = s.head(p)
		}
	}
	return n, nil
}

// Next is the next whole frame, without terminator, and whether there is one.
// The frame stays valid until the next Write. Empty lines and lines of nothing
// but noise are no frames.
func (s *Scanner) Next() (frame []byte, ok bool) {
	if s.taken == len(s.ends) {
		return nil, false
	}
	start, end := s.start(), s.ends[s.taken]
	s.taken++
	return s.buf[start:end:end], true
}

// Partial reports whether half a frame waits for its end. If that does not come
// for a while, [Scanner.Drop] keeps the half from swallowing the next frame.
func (s *Scanner) Partial() bool {
	return s.state == inFrame || s.state == inExcess || s.state == inOption
}

// Drop throws the half frame away, if any, and returns how many of its bytes
// were kept until now. Whole frames that Next has not handed out stay.
func (s *Scanner) Drop() int {
	dropped := len(s.buf) - s.half
	s.buf = s.buf[:s.half]
	if s.Partial() {
		s.state = atHead
	}
	return dropped
}

// CRLF reports whether the peer has ended a frame in CR LF at least once.
func (s *Scanner) CRLF() bool { return s.crlf }

// Notice tells what was skipped or discarded since it was last called.
func (s *Scanner) Notice() Notice {
	n := s.notice
	s.notice = Notice{}
	return n
}

// head skips bytes before a frame, and returns the rest of p from the frame's
// first byte on.
func (s *Scanner) head(p []byte) []byte {
	for i, b := range p {
		switch {
		case s.state == inOption:
			s.state = atHead
			s.notice.Skipped++ // whatever it is, a line end included
		case isAlnum(b):
			s.state = inFrame
			return p[i:]
		case s.state == afterIAC && 0xFB <= b && b <= 0xFE:
			s.state = inOption
			s.notice.Telnet = true
			s.notice.Skipped++
		default:
			s.skip(b)
		}
	}
	return nil
}

func (s *Scanner) skip(b byte) {
	if s.state == afterCR && b == '\n' {
		s.crlf = true
	}
	s.state = atHead
	switch b {
	case '\r', '\n', 0, ' ':
		return
	case telnetIAC:
		s.state = afterIAC
	}
	s.notice.Skipped++
}

// body takes bytes up to the end of the frame, and returns the rest of p behind
// it.
func (s *Scanner) body(p []byte) []byte {
	end := byte('\r')
	limit := MaxFrame
	if s.terminator == TerminatorLF {
		end = '\n'
		limit++ // for a CR that may be part of the terminator
	}
	i := bytes.IndexByte(p, end)
	chunk, rest := p, []byte(nil)
	if i >= 0 {
		chunk, rest = p[:i], p[i+1:]
	}
	if s.state == inFrame && len(s.buf)-s.half+len(chunk) > limit {
		s.discard()
	}
	if s.state == inFrame {
		s.buf = append(s.buf, chunk...)
	}
	if i >= 0 {
		s.finish()
	}
	return rest
}

// finish ends the frame at its terminator.
func (s *Scanner) finish() {
	cr := false
	if s.terminator == TerminatorLF && s.state == inFrame {
		last := len(s.buf) - 1
		if cr = s.buf[last] == '\r'; cr {
			s.buf = s.buf[:last]
		}
		if len(s.buf)-s.half > MaxFrame {
			s.discard()
		}
	}
	if s.state == inExcess {
		s.state = atHead
		return
	}
	s.crlf = s.crlf || cr
	s.half = len(s.buf)
	s.ends = append(s.ends, s.half)
	s.state = atHead
	if s.terminator != TerminatorLF {
		s.state = afterCR
	}
}

// discard gives up a frame that is too long.
func (s *Scanner) discard() {
	s.buf = s.buf[:s.half]
	s.notice.TooLong++
	s.state = inExcess
}

// start is where the first frame begins that has not been handed out.
func (s *Scanner) start() int {
	if s.taken == 0 {
		return 0
	}
	return s.ends[s.taken-1]
}

// forget drops frames that have been handed out. It moves the rest only when
// that is the smaller part, so that a byte is moved once on average.
func (s *Scanner) forget() {
	gone := s.start()
	if gone < len(s.buf)-gone || gone == 0 {
		return
	}
	if gone == len(s.buf) && cap(s.buf) > keepBuffer {
		s.buf = nil
	} else {
		s.buf = s.buf[:copy(s.buf, s.buf[gone:])]
	}
	s.half -= gone
	s.ends = s.ends[:copy(s.ends, s.ends[s.taken:])]
	for i := range s.ends {
		s.ends[i] -= gone
	}
	s.taken = 0
}
