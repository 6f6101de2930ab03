package sip2_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"sip2gate/serialbridge/sip2"
)

// caseFrames reads testdata/cases-frames.txt: whole frames with terminator.
func caseFrames(t testing.TB) map[string][]byte {
	t.Helper()
	data, err := os.ReadFile("testdata/cases-frames.txt")
	if err != nil {
		t.Fatal(err)
	}
	frames := map[string][]byte{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, ok := strings.Cut(line, " ")
		if !ok || frames[name] != nil {
			t.Fatalf("bad or doubled line %q", line)
		}
		frames[name] = expand(t, strings.TrimLeft(rest, " "))
	}
	if len(frames) != 61 {
		t.Fatalf("read %d frames, want 61", len(frames))
	}
	return frames
}

// expand turns \r, \n, \xNN and {c*N} into bytes.
func expand(t testing.TB, text string) []byte {
	t.Helper()
	if before, rest, ok := strings.Cut(text, "{"); ok {
		run, after, _ := strings.Cut(rest, "}")
		char, times, _ := strings.Cut(run, "*")
		n, err := strconv.Atoi(times)
		if err != nil {
			t.Fatalf("repeat count in %q: %v", text, err)
		}
		text = before + strings.Repeat(char, n) + after
	}
	s, err := strconv.Unquote(`"` + text + `"`)
	if err != nil {
		t.Fatalf("unquote %q: %v", text, err)
	}
	return []byte(s)
}

// body is a case frame without its CR.
func body(t testing.TB, frames map[string][]byte, name string) []byte {
	t.Helper()
	frame, ok := bytes.CutSuffix(frames[name], []byte("\r"))
	if !ok {
		t.Fatalf("no frame %s that ends in CR", name)
	}
	return frame
}

// scan sends bytes through a scanner, one piece at a time, and takes out what
// is whole after each.
func scan(s *sip2.Scanner, pieces ...[]byte) []string {
	var got []string
	for _, p := range pieces {
		s.Write(p)
		for frame, ok := s.Next(); ok; frame, ok = s.Next() {
			got = append(got, string(frame))
		}
	}
	return got
}

func wantFrames(t *testing.T, got []string, want ...[]byte) {
	t.Helper()
	text := make([]string, len(want))
	for i, w := range want {
		text[i] = string(w)
	}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", text) {
		t.Errorf("frames\n%q, want\n%q", got, text)
	}
}

func TestCaseFrames(t *testing.T) {
	wrong := map[string]bool{"F1-BADAZ": true, "R-FEE-BADAZ": true, "R-UTF8-CHARSUM": true}
	for name, frame := range caseFrames(t) {
		t.Run(name, func(t *testing.T) {
			if name == "R-REFUSE" { // the beginning of a frame
				m := sip2.ParseAnswer(frame, '|')
				if m.Code != sip2.CodeCheckoutResponse || !m.Short() || string(m.Fixed("ok")) != "0" || m.Trailer.Present {
					t.Errorf("read as %q, short %v, trailer %+v", m.Code, m.Short(), m.Trailer)
				}
				return
			}
			frame = bytes.TrimSuffix(frame, []byte("\r"))
			tr := sip2.ReadTrailer(frame)
			if name == "R-PAD3" {
				if tr.Present {
					t.Errorf("three digits read as a trailer of a request: %+v", tr)
				}
				tr = sip2.ReadAnswerTrailer(frame)
			}
			if !tr.Present || tr.Valid == wrong[name] {
				t.Errorf("trailer %+v of %q, checksum should be %04X", tr, frame, right(frame, tr))
			}
			m := sip2.Parse(frame, '|')
			if !m.IsFrame() || m.Short() || m.MissingDueDate() || m.Known() == (name == "UNK") {
				t.Errorf("read %q as frame %v, short %v, without due date %v, known %v",
					frame, m.IsFrame(), m.Short(), m.MissingDueDate(), m.Known())
			}
			checkCover(t, &m)
			checkRestamp(t, frame, tr)
		})
	}
}

func TestCases(t *testing.T) {
	f := caseFrames(t)
	lf := []byte("\n")

	t.Run("C-001", func(t *testing.T) {
		var s sip2.Scanner
		wantFrames(t, scan(&s, f["R1"]), body(t, f, "R1"))
		if s.CRLF() {
			t.Error("CR LF seen before the LF came")
		}
		wantFrames(t, scan(&s, lf))
		if !s.CRLF() || s.Partial() {
			t.Errorf("after the LF: CRLF %v, Partial %v", s.CRLF(), s.Partial())
		}
		wantFrames(t, scan(&s, f["R-STAT-Y"], lf), body(t, f, "R-STAT-Y"))
		if n := s.Notice(); n != (sip2.Notice{}) {
			t.Errorf("line ends counted as noise: %+v", n)
		}
	})
	t.Run("C-002", func(t *testing.T) {
		var s sip2.Scanner
		got := scan(&s, f["F1"], append(lf, f["STAT"]...), append(lf, f["CI"]...), lf)
		wantFrames(t, got, body(t, f, "F1"), body(t, f, "STAT"), body(t, f, "CI"))
		if n := s.Notice(); n != (sip2.Notice{}) {
			t.Errorf("line ends counted as noise: %+v", n)
		}
	})
	t.Run("C-003", func(t *testing.T) {
		var s sip2.Scanner
		got := scan(&s, bytes.Join([][]byte{f["STAT"], f["F3"]}, nil))
		wantFrames(t, got, body(t, f, "STAT"), body(t, f, "F3"))

		var single [][]byte
		for i := range f["F1"] {
			single = append(single, f["F1"][i:i+1])
		}
		wantFrames(t, scan(&s, single...), body(t, f, "F1"))

		r1 := f["R1"]
		a := bytes.Index(r1, []byte("AJThe")) + len("AJThe")
		got = scan(&s, r1[:1], r1[1:a], r1[a:len(r1)-1], r1[len(r1)-1:])
		wantFrames(t, got, body(t, f, "R1"))
	})
	t.Run("C-006", func(t *testing.T) {
		m := sip2.ParseAnswer([]byte("Problems handling the request: "), '|')
		if m.IsFrame() || m.Code != (sip2.Code{}) || m.Trailer.Present {
			t.Errorf("text read as frame %q, trailer %+v", m.Code, m.Trailer)
		}
	})
	t.Run("C-007", func(t *testing.T) {
		var s sip2.Scanner
		got := scan(&s, []byte("\r\n \r"), f["LOGIN"], []byte("\r\r"), f["F-TAIL"])
		wantFrames(t, got, body(t, f, "LOGIN"), body(t, f, "F-TAIL"))
		if s.CRLF() {
			t.Error("an empty line's CR LF taken for a frame's")
		}
		if n := s.Notice(); n != (sip2.Notice{}) {
			t.Errorf("empty lines counted as noise: %+v", n)
		}
		m := sip2.Parse([]byte(got[1]), '|')
		if b := sip2.Body(m.Raw, m.Trailer); !bytes.HasSuffix(b, []byte("BIN|||")) {
			t.Errorf("empty fields lost: %q", b)
		}
	})
	t.Run("C-009", func(t *testing.T) {
		for name, valid := range map[string]bool{"R-UTF8": true, "R-LATIN1": true, "R-UTF8-CHARSUM": false, "R1": true} {
			frame := body(t, f, name)
			if tr := sip2.ReadTrailer(frame); tr.Valid != valid {
				t.Errorf("%s: valid %v, want %v", name, tr.Valid, valid)
			}
			if sip2.NonASCII(frame) == (name == "R1") {
				t.Errorf("%s: NonASCII %v", name, sip2.NonASCII(frame))
			}
		}
		// 0x015D: what R-UTF8-CHARSUM is wrong by must not change.
		frame := body(t, f, "R-UTF8-CHARSUM")
		moved := sip2.AppendRestamped(nil, frame, sip2.ReadTrailer(frame), '4')
		if !bytes.HasSuffix(moved, []byte("AY4AZE2E9")) {
			t.Errorf("moved to AY4: %q", moved[len(moved)-9:])
		}
	})
	t.Run("C-012", func(t *testing.T) {
		frame := body(t, f, "R-PAD")
		moved := sip2.AppendRestamped(nil, frame, sip2.ReadTrailer(frame), '3')
		if !bytes.HasSuffix(moved, []byte("AY3AZ0FE2")) || !sip2.ReadTrailer(moved).Valid {
			t.Errorf("R-PAD moved to AY3 ends in %q", moved[len(moved)-9:])
		}
		short := body(t, f, "R-PAD3")
		m := sip2.ParseAnswer(short, '|')
		if !m.Trailer.Valid || m.Trailer.Digits != 3 || m.Trailer.Seq != '1' || m.Count("AY") != 0 {
			t.Errorf("R-PAD3: trailer %+v", m.Trailer)
		}
		if same := sip2.AppendRestamped(nil, short, m.Trailer, '1'); !bytes.Equal(same, short) {
			t.Errorf("R-PAD3 to its own number ends in %q", same[len(same)-9:])
		}
		other := bytes.Replace(short, []byte("AZFE4"), []byte("AZFE3"), 1)
		if tr := sip2.ReadAnswerTrailer(other); tr.Present || tr.Start != len(other) {
			t.Errorf("three digits of a wrong value read as %+v", tr)
		}
	})
	t.Run("C-014", func(t *testing.T) {
		m := sip2.Parse(body(t, f, "F1-AY10"), '|')
		if tr := m.Trailer; !tr.Valid || tr.HasSeq || tr.Sum != 0xE8E0 {
			t.Errorf("trailer %+v", tr)
		}
		if v, _ := m.Field("AY"); string(v) != "10" {
			t.Errorf("AY = %q, want 10", v)
		}
	})
	t.Run("C-112", func(t *testing.T) {
		var s sip2.Scanner
		wantFrames(t, scan(&s, f["F-CTRL"]), body(t, f, "F-CTRL"))
		m := sip2.Parse(body(t, f, "F-CTRL"), '|')
		if v, _ := m.Field("AB"); string(v) != "312\x1b[2J\x14\n99" {
			t.Errorf("AB = %q", v)
		}
		want := `11 AO="MAIN" AA[14] AB="312\x1b[2J\x14\n99" AC[0] AD[4] BO[1] BI[1] AY4 AZ`
		if got := sip2.Redact(m.Raw, '|'); got != want {
			t.Errorf("redacted %s, want %s", got, want)
		}
	})
	t.Run("C-118", func(t *testing.T) {
		m := sip2.Parse(body(t, f, "UNK"), '|')
		if !m.IsFrame() || m.Known() || m.Code.String() != "XS" || m.Trailer.Seq != '9' {
			t.Errorf("frame %v, known %v, code %q, trailer %+v", m.IsFrame(), m.Known(), m.Code, m.Trailer)
		}
		if m := sip2.Parse([]byte("00"), '|'); !m.IsFrame() || m.Known() {
			t.Errorf("00: frame %v, known %v", m.IsFrame(), m.Known())
		}
		if m := sip2.Parse([]byte("1"), '|'); m.IsFrame() {
			t.Error("a single byte read as a frame")
		}
	})
	t.Run("C-122", func(t *testing.T) {
		bare := sip2.Body(body(t, f, "F1"), sip2.ReadTrailer(body(t, f, "F1")))
		var s sip2.Scanner
		wantFrames(t, scan(&s, []byte("\xFF\x80"), bare, []byte("\r")), bare)
		if n := s.Notice(); n != (sip2.Notice{Skipped: 2}) {
			t.Errorf("noise: %+v", n)
		}
		wantFrames(t, scan(&s, []byte("\xFF\xFD\x03"), f["F3"]), body(t, f, "F3"))
		if n := s.Notice(); n != (sip2.Notice{Skipped: 3, Telnet: true}) {
			t.Errorf("telnet: %+v", n)
		}
	})
	t.Run("F-AYAZ", func(t *testing.T) {
		m := sip2.Parse(body(t, f, "F-AYAZ"), '|')
		if v, _ := m.Field("AB"); string(v) != "AY1AZ0001" || !m.Trailer.Valid || m.Trailer.Seq != '4' {
			t.Errorf("AB = %q, trailer %+v", v, m.Trailer)
		}
		// The same text at the very end of a frame, but as a field's value.
		closed := sip2.Parse([]byte("1720261130    101520AOMAIN|ABAY1AZ0001|"), '|')
		if v, _ := closed.Field("AB"); string(v) != "AY1AZ0001" || closed.Trailer.Present {
			t.Errorf("AB = %q, trailer %+v", v, closed.Trailer)
		}
	})
}
