package sip2_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"sip2gate/serialbridge/sip2"
)

// golden is one line of testdata/frames.jsonl.
type golden struct {
	ID            string `json:"id"`
	Raw           string `json:"raw"`
	RawHex        string `json:"raw_hex"`
	Charset       string `json:"charset"`
	Delimiter     string `json:"delimiter"`
	ValidChecksum *bool  `json:"valid_checksum"`
	StrippedLead  int    `json:"stripped_lead"`
	Parsed        struct {
		Code     *string            `json:"code"`
		Fixed    map[string]*string `json:"fixed"`
		Fields   [][2]string        `json:"fields"`
		Seq      *string            `json:"seq"`
		Checksum *string            `json:"checksum"`
	} `json:"parsed"`
}

// wire is the frame as it came, with the bytes before it.
func (g golden) wire(t testing.TB) []byte {
	t.Helper()
	if g.RawHex == "" {
		return []byte(g.Raw)
	}
	b, err := hex.DecodeString(g.RawHex)
	if err != nil {
		t.Fatalf("%s: decode hex: %v", g.ID, err)
	}
	return b
}

// frame is the frame without what stands before it.
func (g golden) frame(t testing.TB) []byte { return g.wire(t)[g.StrippedLead:] }

func (g golden) delim() byte {
	if g.Delimiter != "" {
		return g.Delimiter[0]
	}
	return '|'
}

// encode is text in the frame's character set.
func (g golden) encode(t testing.TB, text string) string {
	t.Helper()
	cp850 := map[rune]byte{'ü': 0x81, 'é': 0x82, 'ä': 0x84, 'ö': 0x94, 'Ä': 0x8E, 'Ö': 0x99, 'Ü': 0x9A, 'ß': 0xE1}
	var out []byte
	for _, r := range text {
		b, known := cp850[r]
		switch {
		case r < 0x80:
			out = append(out, byte(r))
		case g.Charset == "iso-8859-1" && r < 0x100:
			out = append(out, byte(r))
		case g.Charset == "cp850" && known:
			out = append(out, b)
		case g.Charset == "utf-8":
			out = append(out, string(r)...)
		default:
			t.Fatalf("%s: no byte for %q in %q", g.ID, r, g.Charset)
		}
	}
	return string(out)
}

func goldenFrames(t testing.TB) []golden {
	t.Helper()
	f, err := os.Open("testdata/frames.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []golden
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var g golden
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			t.Fatalf("line %d: %v", len(all)+1, err)
		}
		all = append(all, g)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(all) != 140 {
		t.Fatalf("read %d golden frames, want 140", len(all))
	}
	return all
}

func TestGolden(t *testing.T) {
	for _, g := range goldenFrames(t) {
		t.Run(g.ID, func(t *testing.T) {
			frame := scanOne(t, g.wire(t))
			if !bytes.Equal(frame, g.frame(t)) {
				t.Fatalf("scanned %q, want %q", frame, g.frame(t))
			}
			m := sip2.Parse(frame, g.delim())
			checkCode(t, g, &m)
			checkFixed(t, g, &m)
			checkFields(t, g, &m)
			checkTrailer(t, g, &m)
			checkCover(t, &m)
			checkRestamp(t, frame, m.Trailer)
		})
	}
}

// scanOne sends one frame through a Scanner.
func scanOne(t *testing.T, wire []byte) []byte {
	t.Helper()
	var s sip2.Scanner
	s.Write(wire)
	s.Write([]byte("\r"))
	frame, ok := s.Next()
	if !ok {
		t.Fatalf("no frame in %q", wire)
	}
	if extra, ok := s.Next(); ok {
		t.Fatalf("a second frame %q in %q", extra, wire)
	}
	return frame
}

func checkCode(t *testing.T, g golden, m *sip2.Message) {
	t.Helper()
	if g.Parsed.Code == nil {
		if m.IsFrame() || m.Known() {
			t.Errorf("text taken for frame %q", m.Code)
		}
		return
	}
	if !m.IsFrame() || m.Code.String() != *g.Parsed.Code {
		t.Errorf("code %q (IsFrame %v), want %q", m.Code, m.IsFrame(), *g.Parsed.Code)
	}
	if known := m.Code.Name() != ""; known != m.Known() {
		t.Errorf("Known %v, but the code's name is %q", m.Known(), m.Code.Name())
	}
}

func checkFixed(t *testing.T, g golden, m *sip2.Message) {
	t.Helper()
	short := false
	for name, want := range g.Parsed.Fixed {
		got := m.Fixed(name)
		switch {
		case want == nil && got != nil:
			t.Errorf("%s = %q, want none", name, got)
		case want != nil && (got == nil || string(got) != g.encode(t, *want)):
			t.Errorf("%s = %q, want %q", name, got, *want)
		}
		if want == nil && name != "nb_due_date" {
			short = true
		}
	}
	if m.Short() != short {
		t.Errorf("Short %v, want %v", m.Short(), short)
	}
	due, has := g.Parsed.Fixed["nb_due_date"]
	if missing := has && due == nil && !short; m.MissingDueDate() != missing {
		t.Errorf("MissingDueDate %v, want %v", m.MissingDueDate(), missing)
	}
	if n := len(sip2.FixedFields(m.Code)); n != len(g.Parsed.Fixed) {
		t.Errorf("%d fixed fields in the table, want %d", n, len(g.Parsed.Fixed))
	}
}

func checkFields(t *testing.T, g golden, m *sip2.Message) {
	t.Helper()
	first := map[string]string{}
	count := map[string]int{}
	i := 0
	for id, value := range m.Fields() {
		if i >= len(g.Parsed.Fields) {
			t.Fatalf("field %d: %s=%q, want no more fields", i, id, value)
		}
		want := g.Parsed.Fields[i]
		if id.String() != g.encode(t, want[0]) || string(value) != g.encode(t, want[1]) {
			t.Errorf("field %d: %s=%q, want %s=%q", i, id, value, want[0], want[1])
		}
		if count[id.String()]++; count[id.String()] == 1 {
			first[id.String()] = string(value)
		}
		i++
	}
	if i != len(g.Parsed.Fields) {
		t.Errorf("%d fields, want %d", i, len(g.Parsed.Fields))
	}
	for id, want := range first {
		if got, ok := m.Field(id); !ok || string(got) != want {
			t.Errorf("Field(%s) = %q, %v, want %q", id, got, ok, want)
		}
		if got := m.Count(id); got != count[id] {
			t.Errorf("Count(%s) = %d, want %d", id, got, count[id])
		}
	}
}

func checkTrailer(t *testing.T, g golden, m *sip2.Message) {
	t.Helper()
	tr := m.Trailer
	if tr.HasSeq != (g.Parsed.Seq != nil) || tr.HasSeq && string(tr.Seq) != *g.Parsed.Seq {
		t.Errorf("sequence number %v %q", tr.HasSeq, tr.Seq)
	}
	if tr.Present != (g.Parsed.Checksum != nil) {
		t.Fatalf("trailer present %v", tr.Present)
	}
	if tr.Present {
		written := *g.Parsed.Checksum
		if end := string(m.Raw[len(m.Raw)-tr.Digits:]); end != written {
			t.Errorf("checksum as written %q, want %q", end, written)
		}
		if v, err := strconv.ParseUint(written, 16, 16); err != nil || uint16(v) != tr.Sum {
			t.Errorf("Sum %04X, want %s (%v)", tr.Sum, written, err)
		}
	}
	if (g.ValidChecksum != nil) != tr.Present || tr.Valid != (g.ValidChecksum != nil && *g.ValidChecksum) {
		t.Errorf("present %v valid %v, want %v", tr.Present, tr.Valid, g.ValidChecksum)
	}
}

// checkCover puts the frame together again from its segments.
func checkCover(t testing.TB, m *sip2.Message) {
	t.Helper()
	var joined []byte
	for s := range m.Segments() {
		if len(s.Raw) == 0 {
			t.Errorf("empty segment of part %d in %q", s.Part, m.Raw)
		}
		joined = append(joined, s.Raw...)
	}
	if !bytes.Equal(joined, m.Raw) {
		t.Errorf("segments join to %q, want %q", joined, m.Raw)
	}
	if !bytes.HasPrefix(m.Raw, sip2.Body(m.Raw, m.Trailer)) {
		t.Errorf("body is no prefix of %q", m.Raw)
	}
}

// checkRestamp moves a trailer to every other number and back.
func checkRestamp(t testing.TB, frame []byte, tr sip2.Trailer) {
	t.Helper()
	for seq := byte('0'); seq <= '9'; seq++ {
		there := sip2.AppendRestamped([]byte("prefix"), frame, tr, seq)[len("prefix"):]
		if !tr.HasSeq || seq == tr.Seq {
			if !bytes.Equal(there, frame) {
				t.Errorf("restamped to its own number: %q, want %q", there, frame)
			}
			continue
		}
		moved := sip2.ReadTrailer(there)
		if tr.Digits < 4 {
			moved = sip2.ReadAnswerTrailer(there)
		}
		if !moved.HasSeq || moved.Seq != seq || moved.Valid != tr.Valid {
			t.Errorf("restamped to %c: trailer %+v of %q, was %+v", seq, moved, there, tr)
			continue
		}
		if wrong, was := moved.Sum-right(there, moved), tr.Sum-right(frame, tr); wrong != was {
			t.Errorf("restamped to %c: wrong by %d, was %d", seq, wrong, was)
		}
		back := sip2.AppendRestamped(nil, there, moved, tr.Seq)
		if !sameFrame(back, frame, tr) {
			t.Errorf("restamped to %c and back: %q, want %q", seq, back, frame)
		}
	}
}

// right is the checksum that the frame should have.
func right(frame []byte, tr sip2.Trailer) uint16 {
	return sip2.Sum(frame[:len(frame)-tr.Digits])
}

// sameFrame compares byte for byte. Only where a checksum had lower-case digits
// (their case is lost if none of them is a letter on the way) or fewer than
// four (they may have become four on the way) its value counts instead.
func sameFrame(a, b []byte, tr sip2.Trailer) bool {
	digits := b[len(b)-tr.Digits:]
	if tr.Digits == 4 && bytes.Equal(digits, bytes.ToUpper(digits)) {
		return bytes.Equal(a, b)
	}
	az := len(b) - tr.Digits
	if !bytes.HasPrefix(a, b[:az]) {
		return false
	}
	trim := func(d []byte) string { return strings.TrimLeft(strings.ToUpper(string(d)), "0") }
	return trim(a[az:]) == trim(digits)
}
