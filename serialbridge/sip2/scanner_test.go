package sip2_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"sip2gate/serialbridge/sip2"
)

func TestScannerCuts(t *testing.T) {
	tests := []struct {
		name       string
		terminator sip2.Terminator
		wire       string
		frames     []string
		notice     sip2.Notice
		crlf       bool
		partial    bool
	}{
		{name: "nothing"},
		{name: "CR", wire: "941\r9900\r", frames: []string{"941", "9900"}},
		{name: "CR NUL", wire: "941\r\x009900\r\x00", frames: []string{"941", "9900"}},
		{name: "CR LF", wire: "941\r\n9900\r\n", frames: []string{"941", "9900"}, crlf: true},
		{name: "LF not directly after CR", wire: "941\r \n9900\r", frames: []string{"941", "9900"}},
		{name: "CR LF after nothing", wire: "\r\n941\r\r\n", frames: []string{"941"}},
		{name: "LF inside stays", wire: "121\nAJTwo\nlines|\r", frames: []string{"121\nAJTwo\nlines|"}},
		{name: "FF inside stays", wire: "121AJ\xFF\xFB\x03|\r", frames: []string{"121AJ\xFF\xFB\x03|"}},
		{name: "blank lines", wire: "\r\r\n  \r\x00\r941\r", frames: []string{"941"}},
		{name: "noise", wire: "\x80~|\t941\r", frames: []string{"941"}, notice: sip2.Notice{Skipped: 4}},
		{name: "noise only", wire: "~~\r##\r", notice: sip2.Notice{Skipped: 4}},
		{name: "half", wire: "941\r99", frames: []string{"941"}, partial: true},
		{name: "said CR", terminator: sip2.TerminatorCR, wire: "941\r\n9900\r", frames: []string{"941", "9900"}, crlf: true},
		{name: "said CR LF, sends CR", terminator: sip2.TerminatorCRLF, wire: "941\r9900\r", frames: []string{"941", "9900"}},
		{name: "LF", terminator: sip2.TerminatorLF, wire: "941\n9900\n", frames: []string{"941", "9900"}},
		{name: "LF with CR", terminator: sip2.TerminatorLF, wire: "941\r\n\r\n9900\r\n", frames: []string{"941", "9900"}, crlf: true},
		{name: "LF, CR inside stays", terminator: sip2.TerminatorLF, wire: "94\r1\r\r\n", frames: []string{"94\r1\r"}, crlf: true},
		{name: "telnet", wire: "\xFF\xFB\x18\xFF\xFD\x03941\r", frames: []string{"941"}, notice: sip2.Notice{Skipped: 6, Telnet: true}},
		{name: "telnet option like a digit", wire: "\xFF\xFC1\xFF\xFE\r\xFF\xFB\xFF941\r", frames: []string{"941"}, notice: sip2.Notice{Skipped: 9, Telnet: true}},
		{name: "telnet command", wire: "\xFF\xF1941\r", frames: []string{"941"}, notice: sip2.Notice{Skipped: 2}},
		{name: "FF before telnet", wire: "\xFF\xFF\xFD\x01941\r", frames: []string{"941"}, notice: sip2.Notice{Skipped: 4, Telnet: true}},
		{name: "telnet cut off", wire: "\xFF\xFB", notice: sip2.Notice{Skipped: 2, Telnet: true}, partial: true},
	}
	for _, tt := range tests {
		for size := 1; size <= max(1, len(tt.wire)); size++ {
			t.Run(fmt.Sprintf("%s/%d", tt.name, size), func(t *testing.T) {
				s := sip2.NewScanner(tt.terminator)
				got := scan(s, pieces([]byte(tt.wire), size)...)
				if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tt.frames) {
					t.Errorf("frames %q, want %q", got, tt.frames)
				}
				if n := s.Notice(); n != tt.notice {
					t.Errorf("notice %+v, want %+v", n, tt.notice)
				}
				if n := s.Notice(); n != (sip2.Notice{}) {
					t.Errorf("notice was not reset: %+v", n)
				}
				if s.CRLF() != tt.crlf || s.Partial() != tt.partial {
					t.Errorf("CRLF %v Partial %v, want %v %v", s.CRLF(), s.Partial(), tt.crlf, tt.partial)
				}
			})
		}
	}
}

// pieces cuts b into pieces of that many bytes.
func pieces(b []byte, size int) [][]byte {
	var out [][]byte
	for len(b) > size {
		out = append(out, b[:size])
		b = b[size:]
	}
	return append(out, b)
}

func TestScannerTooLong(t *testing.T) {
	longest := "12" + strings.Repeat("x", sip2.MaxFrame-2)
	tests := []struct {
		name       string
		terminator sip2.Terminator
		wire       string
		frames     []string
		tooLong    int
	}{
		{"longest", sip2.TerminatorAuto, longest + "\r941\r", []string{longest, "941"}, 0},
		{"one more", sip2.TerminatorAuto, longest + "x\r941\r", []string{"941"}, 1},
		{"two of them", sip2.TerminatorAuto, longest + "x\r" + longest + longest + "\r941\r", []string{"941"}, 2},
		{"longest, LF", sip2.TerminatorLF, longest + "\n941\n", []string{longest, "941"}, 0},
		{"longest, CR LF", sip2.TerminatorLF, longest + "\r\n941\n", []string{longest, "941"}, 0},
		{"one more, LF", sip2.TerminatorLF, longest + "x\n941\n", []string{"941"}, 1},
		{"one more, CR LF", sip2.TerminatorLF, longest + "x\r\n941\n", []string{"941"}, 1},
	}
	for _, tt := range tests {
		for _, size := range []int{1 << 20, sip2.MaxFrame, 4096, 7} {
			t.Run(fmt.Sprintf("%s/%d", tt.name, size), func(t *testing.T) {
				s := sip2.NewScanner(tt.terminator)
				got := scan(s, pieces([]byte(tt.wire), size)...)
				if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tt.frames) {
					t.Errorf("%d frames, want %d", len(got), len(tt.frames))
				}
				if n := s.Notice(); n != (sip2.Notice{TooLong: tt.tooLong}) {
					t.Errorf("notice %+v, want %d too long", n, tt.tooLong)
				}
			})
		}
	}
}

func TestScannerDrop(t *testing.T) {
	var s sip2.Scanner
	s.Write([]byte("941\r11YN2026"))
	if n := s.Drop(); n != len("11YN2026") || s.Partial() {
		t.Errorf("dropped %d bytes, Partial %v", n, s.Partial())
	}
	if n := s.Drop(); n != 0 {
		t.Errorf("dropped %d bytes of nothing", n)
	}
	wantFrames(t, scan(&s, []byte("9900\r")), []byte("941"), []byte("9900"))

	t.Run("telnet option that never came", func(t *testing.T) {
		var s sip2.Scanner
		s.Write([]byte("\xFF\xFD"))
		s.Drop()
		wantFrames(t, scan(&s, []byte("941\r")), []byte("941"))
	})
	t.Run("rest of a frame that is too long", func(t *testing.T) {
		var s sip2.Scanner
		s.Write(bytes.Repeat([]byte("x"), sip2.MaxFrame+1))
		if !s.Partial() {
			t.Error("no half frame while a long one is discarded")
		}
		if n := s.Drop(); n != 0 {
			t.Errorf("dropped %d bytes that had been discarded", n)
		}
		wantFrames(t, scan(&s, []byte("941\r")), []byte("941"))
		if n := s.Notice(); n.TooLong != 1 {
			t.Errorf("notice %+v", n)
		}
	})
	t.Run("keeps the memory of CR", func(t *testing.T) {
		var s sip2.Scanner
		s.Write([]byte("941\r"))
		s.Drop()
		s.Write([]byte("\n"))
		if !s.CRLF() {
			t.Error("CR LF not seen across a Drop of nothing")
		}
	})
}

// A frame must stay as it is while further ones are taken out, and appending to
// it must not reach its neighbour.
func TestScannerFramesAreSeparate(t *testing.T) {
	var s sip2.Scanner
	s.Write([]byte("941\r9900\r98"))
	first, _ := s.Next()
	_ = append(first, "overwritten"...)
	second, _ := s.Next()
	if string(first) != "941" || string(second) != "9900" {
		t.Errorf("frames %q and %q", first, second)
	}
	wantFrames(t, scan(&s, []byte("YY\r")), []byte("98YY"))
}

// Written bytes belong to the caller again.
func TestScannerCopies(t *testing.T) {
	var s sip2.Scanner
	p := []byte("941\r99")
	s.Write(p)
	copy(p, "xxxxxx")
	wantFrames(t, scan(&s, []byte("00\r")), []byte("941"), []byte("9900"))
}

// Frames that wait while others are written and taken out keep their order and
// their bytes, wherever the scanner has moved them.
func TestScannerBacklog(t *testing.T) {
	const backlog = 20000
	var s sip2.Scanner
	var wire []byte
	for i := range backlog {
		wire = fmt.Appendf(wire, "%06d\r", i)
	}
	s.Write(wire)
	for i := range 2 * backlog {
		frame, ok := s.Next()
		if want := fmt.Sprintf("%06d", i); !ok || string(frame) != want {
			t.Fatalf("frame %q, %v, want %q", frame, ok, want)
		}
		s.Write(fmt.Appendf(nil, "%06d\r", backlog+i))
	}
}

// Neither a flood without a terminator nor noise may cost memory.
func TestScannerBoundedMemory(t *testing.T) {
	for name, flood := range map[string]string{"a frame without end": "x", "noise": "~", "telnet": "\xFF\xFD1", "empty lines": "\r\n"} {
		t.Run(name, func(t *testing.T) {
			chunk := bytes.Repeat([]byte(flood), 32<<10)
			var s sip2.Scanner
			fill := func() {
				for range 64 { // 2 MiB and more
					s.Write(chunk)
					if _, ok := s.Next(); ok {
						t.Fatal("a frame came out")
					}
				}
			}
			fill()
			if got := testing.AllocsPerRun(2, fill); got != 0 {
				t.Errorf("%v allocations for each further flood, want 0", got)
			}
		})
	}
}

// A burst of frames is handed out whole; its buffer is given back afterwards,
// which must not disturb the half frame that comes next.
func TestScannerBurst(t *testing.T) {
	frame := "12" + strings.Repeat("x", 1000)
	var s sip2.Scanner
	if got := scan(&s, []byte(strings.Repeat(frame+"\r", 2000))); len(got) != 2000 || got[1999] != frame {
		t.Fatalf("%d frames of a burst of 2000", len(got))
	}
	wantFrames(t, scan(&s, []byte("\n94"), []byte("1\r")), []byte("941"))
	if !s.CRLF() {
		t.Error("CR LF not seen after the burst")
	}
}
