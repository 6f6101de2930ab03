package sip2_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"sip2gate/serialbridge/sip2"
)

// FuzzScanner checks that the way the bytes are cut into writes makes no
// difference, that what comes out is a frame, and that memory is bounded.
func FuzzScanner(f *testing.F) {
	for _, g := range goldenFrames(f) {
		f.Add(append(g.wire(f), "\r\n"...), []byte{1, 7}, byte(0))
	}
	for _, frame := range caseFrames(f) {
		f.Add(frame, []byte{3}, byte(1))
	}
	f.Add([]byte("\xFF\xFD\x03941\r\n \n9900\r\x00\xFF\xFF\xFB\r11YN"), []byte{1}, byte(3))
	f.Add(append(bytes.Repeat([]byte("x"), sip2.MaxFrame+1), "\r\n941\n"...), []byte{255, 0}, byte(3))
	f.Fuzz(func(t *testing.T, wire, cuts []byte, terminator byte) {
		kind := sip2.Terminator(terminator % 4)
		end := byte('\r')
		if kind == sip2.TerminatorLF {
			end = '\n'
		}
		whole := sip2.NewScanner(kind)
		want := scan(whole, wire)
		cut := sip2.NewScanner(kind)
		got := scan(cut, cutUp(wire, cuts)...)
		if !slices.Equal(got, want) {
			t.Fatalf("cut up: %q, in one: %q", got, want)
		}
		a := fmt.Sprintf("%+v %v %v", whole.Notice(), whole.CRLF(), whole.Partial())
		if b := fmt.Sprintf("%+v %v %v", cut.Notice(), cut.CRLF(), cut.Partial()); a != b {
			t.Errorf("cut up: %s, in one: %s", b, a)
		}
		if x, y := whole.Drop(), cut.Drop(); x != y || x > sip2.MaxFrame+1 || whole.Partial() {
			t.Errorf("dropped %d cut up, %d in one, Partial %v", y, x, whole.Partial())
		}
		rest := wire
		for _, frame := range want {
			if len(frame) == 0 || len(frame) > sip2.MaxFrame || bytes.IndexByte([]byte(frame), end) >= 0 ||
				!isAlnum(frame[0]) {
				t.Fatalf("no frame: %q", frame)
			}
			i := bytes.Index(rest, []byte(frame))
			if i < 0 {
				t.Fatalf("frame %q is not in what was written, or out of order", frame)
			}
			rest = rest[i+len(frame):]
		}
		// After Drop nothing of the past may reach the next frame.
		if next := scan(whole, []byte{'9', '7', end}); !slices.Equal(next, []string{"97"}) {
			t.Errorf("after Drop: %q, want 97", next)
		}
	})
}

func isAlnum(b byte) bool {
	return '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z'
}

// cutUp cuts b into pieces of the sizes given, over and over.
func cutUp(b, sizes []byte) [][]byte {
	var out [][]byte
	for i := 0; len(b) > 0 && len(sizes) > 0; i++ {
		n := min(len(b), 1+int(sizes[i%len(sizes)]))
		out = append(out, b[:n])
		b = b[n:]
	}
	return append(out, b)
}

// FuzzParse checks that reading never fails, that the segments cover the frame,
// that values lie where they should, and that restamping is reversible.
func FuzzParse(f *testing.F) {
	for _, g := range goldenFrames(f) {
		f.Add(g.frame(f), g.delim())
	}
	for _, frame := range caseFrames(f) {
		f.Add(bytes.TrimSuffix(frame, []byte("\r")), byte('|'))
	}
	f.Fuzz(func(t *testing.T, frame []byte, delim byte) {
		before := bytes.Clone(frame)
		for _, parse := range []func([]byte, byte) sip2.Message{sip2.Parse, sip2.ParseAnswer} {
			m := parse(frame, delim)
			checkCover(t, &m)
			checkRestamp(t, frame, m.Trailer)
			checkLookups(t, &m, delim)
			if m.Short() && (m.MissingDueDate() || !m.Known()) || m.Known() && !m.IsFrame() {
				t.Errorf("short %v, without due date %v, known %v, frame %v",
					m.Short(), m.MissingDueDate(), m.Known(), m.IsFrame())
			}
		}
		for _, r := range sip2.Redact(frame, delim) {
			if r < ' ' || r > '~' {
				t.Errorf("redaction holds %q", r)
			}
		}
		if !bytes.Equal(frame, before) {
			t.Error("reading has changed the frame")
		}
	})
}

// checkLookups compares the three ways to a field with each other.
func checkLookups(t *testing.T, m *sip2.Message, delim byte) {
	t.Helper()
	count := map[sip2.ID]int{}
	var walked [][]byte
	for id, v := range m.Fields() {
		if bytes.IndexByte(v, delim) >= 0 {
			t.Errorf("delimiter in the value of %s: %q", id, v)
		}
		if count[id]++; count[id] == 1 {
			if got, ok := m.Field(id.String()); !ok || !bytes.Equal(got, v) {
				t.Errorf("Field(%s) = %q, %v, want %q", id, got, ok, v)
			}
		}
		walked = append(walked, v)
	}
	for id, n := range count {
		if got := m.Count(id.String()); got != n {
			t.Errorf("Count(%s) = %d, want %d", id, got, n)
		}
	}
	for s := range m.Segments() {
		switch s.Part {
		case sip2.PartField:
			if len(walked) == 0 || !bytes.Equal(walked[0], s.Value) {
				t.Fatalf("segment %q is not the next of %q", s.Value, walked)
			}
			walked = walked[1:]
		case sip2.PartFixed:
			if got := m.Fixed(s.Fixed.Name); len(got) != s.Fixed.Len || !bytes.Equal(got, s.Value) {
				t.Errorf("Fixed(%s) = %q, segment %q", s.Fixed.Name, got, s.Value)
			}
		case sip2.PartCut:
			if got := m.Fixed(s.Fixed.Name); got != nil || len(s.Value) >= s.Fixed.Len {
				t.Errorf("Fixed(%s) = %q, but it is cut: %q", s.Fixed.Name, got, s.Value)
			}
		}
	}
	if len(walked) != 0 {
		t.Errorf("no segment for %q", walked)
	}
}

// FuzzTrailer checks what ends any bytes: a right trailer is found again where
// it was put, whatever stands before it, and moves without losing its error.
func FuzzTrailer(f *testing.F) {
	for _, g := range goldenFrames(f) {
		frame := g.frame(f)
		tr := sip2.ReadTrailer(frame)
		f.Add(sip2.Body(frame, tr), tr.HasSeq, byte(4), tr.Sum)
	}
	f.Fuzz(func(t *testing.T, body []byte, hasSeq bool, digit byte, fault uint16) {
		seq := '0' + digit%10
		frame := sip2.AppendTrailer(bytes.Clone(body), hasSeq, seq)
		tr := sip2.ReadTrailer(frame)
		if !tr.Present || !tr.Valid || tr.Digits != 4 {
			t.Fatalf("own trailer read as %+v: %q", tr, frame)
		}
		if hasSeq && (!tr.HasSeq || tr.Seq != seq || !bytes.Equal(sip2.Body(frame, tr), body)) {
			t.Fatalf("own trailer read as %+v: %q", tr, frame)
		}
		if answer := sip2.ReadAnswerTrailer(frame); answer != tr {
			t.Errorf("answer's trailer %+v, request's %+v", answer, tr)
		}
		checkRestamp(t, frame, tr)

		// The same with a checksum that is wrong by fault.
		wrong := fmt.Appendf(frame[:len(frame)-4:len(frame)-4], "%04X", tr.Sum+fault)
		wt := sip2.ReadTrailer(wrong)
		if wt.Valid != (fault == 0) || wt.Start != tr.Start {
			t.Errorf("wrong by %d: %+v", fault, wt)
		}
		checkRestamp(t, wrong, wt)
		bare := sip2.AppendWithoutSeq(nil, wrong, wt)
		if bt := sip2.ReadTrailer(bare); wt.HasSeq && bt.Sum-right(bare, bt) != fault {
			t.Errorf("without AY wrong by %d, was %d", bt.Sum-right(bare, bt), fault)
		}
		// And what is no trailer stays a part of the body.
		for cut := range 4 {
			if tr := sip2.ReadTrailer(frame[:len(frame)-1-cut]); tr.Present && tr.Start >= len(body) {
				t.Errorf("trailer found in %q", frame[:len(frame)-1-cut])
			}
		}
	})
}
