package sip2_test

import (
	"bytes"
	"strings"
	"testing"

	"sip2gate/serialbridge/sip2"
)

func TestReadTrailer(t *testing.T) {
	tests := []struct {
		name  string
		frame string
		want  sip2.Trailer
	}{
		{"empty", "", sip2.Trailer{}},
		{"97", "97AZFEF5", sip2.Trailer{Start: 2, Present: true, Sum: 0xFEF5, Digits: 4, Valid: true}},
		{"lower case", "97AZfef5", sip2.Trailer{Start: 2, Present: true, Sum: 0xFEF5, Digits: 4, Valid: true}},
		{"97 with AY", "97AY4AZFE27", sip2.Trailer{Start: 2, Present: true, HasSeq: true, Seq: '4', Sum: 0xFE27, Digits: 4, Valid: true}},
		{"wrong", "97AZFEF6", sip2.Trailer{Start: 2, Present: true, Sum: 0xFEF6, Digits: 4}},
		{"no hex digit", "97AZFEG5", sip2.Trailer{Start: 8}},
		{"three digits", "97AZFEF", sip2.Trailer{Start: 7}},
		{"five digits", "97AZ0FEF5", sip2.Trailer{Start: 9}},
		{"blank behind", "97AZFEF5 ", sip2.Trailer{Start: 9}},
		{"delimiter behind", "97AZFEF5|", sip2.Trailer{Start: 9}},
		{"AY without digit", "97AYxAZFDE3", sip2.Trailer{Start: 5, Present: true, Sum: 0xFDE3, Digits: 4, Valid: true}},
		{"AY apart from AZ", "97AY1|AZFDAE", sip2.Trailer{Start: 6, Present: true, Sum: 0xFDAE, Digits: 4, Valid: true}},
		{"AY only", "97AY1", sip2.Trailer{Start: 5}},
		{"nothing but a trailer", "AZ0000", sip2.Trailer{Start: 0, Present: true, Digits: 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := sip2.ReadTrailer([]byte(tt.frame)); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// sumTo pads a frame with tildes, and one smaller byte, until its checksum is
// want.
func sumTo(t *testing.T, start string, want uint16) []byte {
	t.Helper()
	frame := []byte(start)
	for {
		gap := sip2.Sum(append(frame[:len(frame):len(frame)], "|AY1AZ"...)) - want
		if gap >= '!' && gap <= '~' && gap != '|' {
			return append(append(frame, byte(gap)), "|AY1AZ"...)
		}
		if len(frame) > 2000 {
			t.Fatalf("no frame with checksum %04X", want)
		}
		frame = append(frame, '~')
	}
}

func TestReadAnswerTrailer(t *testing.T) {
	tests := []struct {
		sum    uint16
		digits string
		valid  bool
	}{
		{0x0ABC, "ABC", true}, {0x0ABC, "abc", true}, {0x00AB, "AB", true}, {0x000A, "A", true}, {0x000A, "0A", true},
		{0x0ABC, "0ABC", true}, {0x1ABC, "ABC", false}, {0x0ABC, "ABD", false}, {0x0ABC, "", false}, {0x0ABC, "AB", false},
	}
	for _, tt := range tests {
		frame := append(sumTo(t, "941AF", tt.sum), tt.digits...)
		got := sip2.ReadAnswerTrailer(frame)
		want := sip2.Trailer{Start: len(frame)}
		if tt.valid {
			want = sip2.Trailer{Start: len(frame) - len(tt.digits) - 5, Present: true, HasSeq: true, Seq: '1',
				Sum: tt.sum, Digits: len(tt.digits), Valid: true}
		}
		if got != want {
			t.Errorf("checksum %04X written as %q: %+v, want %+v", tt.sum, tt.digits, got, want)
		}
	}
}

func TestRestampAcrossEdges(t *testing.T) {
	tests := []struct{ tail, seq, want string }{
		{"AY0AZ0003", "9", "AY9AZFFFA"}, // below zero
		{"AY9AZFFFA", "0", "AY0AZ0003"}, // above FFFF
		{"AY0AZ1000", "1", "AY1AZ0FFF"}, // the leading zero appears
		{"AY1AZ0FFF", "0", "AY0AZ1000"}, // and goes
		{"AY1AZffff", "2", "AY2AZfffe"}, // lower case stays
		{"AY4AZ0000", "4", "AY4AZ0000"}, // the same number
	}
	for _, tt := range tests {
		frame := []byte("941" + tt.tail)
		tr := sip2.ReadTrailer(frame)
		if got := string(sip2.AppendRestamped(nil, frame, tr, tt.seq[0])); got != "941"+tt.want {
			t.Errorf("%s to %s: %s, want %s", tt.tail, tt.seq, got, tt.want)
		}
	}
	// A checksum of three digits that outgrows them is printed in full.
	frame := append(sumTo(t, "941AF", 0x0FFF), "FFF"...)
	got := sip2.AppendRestamped(nil, frame, sip2.ReadAnswerTrailer(frame), '0')
	if !bytes.HasSuffix(got, []byte("AY0AZ1000")) || !sip2.ReadTrailer(got).Valid {
		t.Errorf("FFF to AY0 ends in %q", got[len(got)-9:])
	}
}

func TestAppendWithoutSeq(t *testing.T) {
	for _, g := range goldenFrames(t) {
		frame := g.frame(t)
		tr := sip2.ReadTrailer(frame)
		got := sip2.AppendWithoutSeq([]byte("prefix"), frame, tr)[len("prefix"):]
		after := sip2.ReadTrailer(got)
		switch {
		case !tr.HasSeq:
			if !bytes.Equal(got, frame) {
				t.Errorf("%s: %q, want a plain copy", g.ID, got)
			}
		case after.HasSeq || after.Start != tr.Start || after.Valid != tr.Valid,
			after.Sum-right(got, after) != tr.Sum-right(frame, tr),
			!bytes.Equal(sip2.Body(got, after), sip2.Body(frame, tr)):
			t.Errorf("%s: %q with trailer %+v, from %+v", g.ID, got, after, tr)
		}
	}
	frame := []byte("11YN20260716    110214                  AOMAIN-BR|AAB1029384756|AB30012000029894|AC|BON|BIN|AY4AZEA59")
	want := strings.TrimSuffix(string(frame), "AY4AZEA59") + "AZEB27"
	if got := string(sip2.AppendWithoutSeq(nil, frame, sip2.ReadTrailer(frame))); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What AppendWithoutSeq has taken away, AppendWithSeq brings back.
func TestAppendWithSeq(t *testing.T) {
	for _, g := range goldenFrames(t) {
		frame := g.frame(t)
		tr := sip2.ReadTrailer(frame)
		bare := sip2.AppendWithoutSeq(nil, frame, tr)
		got := sip2.AppendWithSeq([]byte("prefix"), bare, sip2.ReadTrailer(bare), '7')[len("prefix"):]
		want := sip2.AppendRestamped(nil, frame, tr, '7')
		if tr.Present && !tr.HasSeq {
			if after := sip2.ReadTrailer(got); after.Seq != '7' || after.Valid != tr.Valid {
				t.Errorf("%s: %q with trailer %+v, from %+v", g.ID, got, after, tr)
			}
			continue
		}
		if !bytes.EqualFold(got, want) { // digits of a sum may have no letters to tell the case by
			t.Errorf("%s: %q, want %q", g.ID, got, want)
		}
		if again := sip2.AppendWithSeq(nil, frame, tr, '7'); tr.HasSeq && !bytes.Equal(again, frame) {
			t.Errorf("%s: %q, want a plain copy of a frame with AY", g.ID, again)
		}
	}
}
