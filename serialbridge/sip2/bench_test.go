package sip2_test

import (
	"bytes"
	"testing"

	"sip2gate/serialbridge/sip2"
)

// benchFrames are a checkout, its answer and a long answer.
func benchFrames(t testing.TB) map[string][]byte {
	f := caseFrames(t)
	return map[string][]byte{
		"request": body(t, f, "F1"),
		"answer":  body(t, f, "R1"),
		"long":    body(t, f, "F-LONG"),
	}
}

// steadyScan reads the same frames again and again in pieces, as a port does.
func steadyScan(t testing.TB) func() {
	f := caseFrames(t)
	chunks := pieces(bytes.Join([][]byte{f["F1"], {'\n'}, f["STAT"], []byte("\xFF~\r"), f["F-LONG"]}, nil), 64)
	var s sip2.Scanner
	return func() {
		n := 0
		for _, c := range chunks {
			s.Write(c)
			for _, ok := s.Next(); ok; _, ok = s.Next() {
				n++
			}
		}
		if n != 3 || s.Partial() || s.Notice().Skipped != 2 {
			t.Fatalf("%d frames", n)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	f := caseFrames(t)
	raw, list := body(t, f, "F1"), body(t, f, "R-PI-HAS")
	buf := make([]byte, 0, 1024)
	for name, run := range map[string]func(){
		"Scanner": steadyScan(t),
		"Parse": func() {
			if m := sip2.Parse(raw, '|'); !m.Known() || m.Short() {
				t.Fatal("not read")
			}
		},
		"ParseAnswer": func() {
			if m := sip2.ParseAnswer(list, '|'); !m.Trailer.Valid {
				t.Fatal("not read")
			}
		},
		"Field": func() {
			m := sip2.Parse(list, '|')
			if v, ok := m.Field("AU"); !ok || len(v) != 14 || m.Count("AU") != 1 || len(m.Fixed("charged_items_count")) != 4 {
				t.Fatal("not found")
			}
		},
		"Fields": func() {
			n := 0
			m := sip2.Parse(list, '|')
			for id, v := range m.Fields() {
				if id != (sip2.ID{}) && v != nil {
					n++
				}
			}
			if n != 5 {
				t.Fatalf("%d fields", n)
			}
		},
		"ReadTrailer": func() {
			if !sip2.ReadTrailer(raw).Valid || !sip2.ReadAnswerTrailer(raw).Valid {
				t.Fatal("not read")
			}
		},
		"AppendRestamped": func() {
			if got := sip2.AppendRestamped(buf, raw, sip2.ReadTrailer(raw), '7'); len(got) != len(raw) {
				t.Fatal("not restamped")
			}
		},
		"AppendWithoutSeq": func() {
			if got := sip2.AppendWithoutSeq(buf, raw, sip2.ReadTrailer(raw)); len(got) != len(raw)-3 {
				t.Fatal("not restamped")
			}
		},
		"AppendTrailer": func() {
			if got := sip2.AppendTrailer(append(buf, "941"...), true, '0'); string(got) != "941AY0AZFDFD" {
				t.Fatal("not built")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := testing.AllocsPerRun(100, run); got != 0 {
				t.Errorf("%v allocations, want 0", got)
			}
		})
	}
}

func BenchmarkScanner(b *testing.B) {
	run := steadyScan(b)
	b.ReportAllocs()
	for b.Loop() {
		run()
	}
}

func BenchmarkParse(b *testing.B) {
	for name, frame := range benchFrames(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(frame)))
			for b.Loop() {
				m := sip2.ParseAnswer(frame, '|')
				if !m.Trailer.Valid {
					b.Fatal("not read")
				}
			}
		})
	}
}

func BenchmarkField(b *testing.B) {
	m := sip2.Parse(benchFrames(b)["request"], '|')
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := m.Field("BI"); !ok {
			b.Fatal("not found")
		}
	}
}

func BenchmarkReadTrailer(b *testing.B) {
	frame := benchFrames(b)["answer"]
	b.ReportAllocs()
	for b.Loop() {
		if !sip2.ReadTrailer(frame).Valid {
			b.Fatal("not read")
		}
	}
}

func BenchmarkAppendRestamped(b *testing.B) {
	frame := benchFrames(b)["answer"]
	t := sip2.ReadTrailer(frame)
	buf := make([]byte, 0, len(frame)+1)
	b.ReportAllocs()
	for b.Loop() {
		if got := sip2.AppendRestamped(buf, frame, t, '8'); len(got) != len(frame) {
			b.Fatal("not restamped")
		}
	}
}
