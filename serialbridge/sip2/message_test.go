package sip2_test

import (
	"slices"
	"testing"

	"sip2gate/serialbridge/sip2"
)

// fixedTotals is the length of each message's fixed part in SIP2 2.00, and the
// code of its answer.
var fixedTotals = []struct {
	code   string
	total  int
	answer string
}{
	{"01", 19, "24"}, {"09", 37, "10"}, {"10", 22, ""}, {"11", 38, "12"}, {"12", 22, ""},
	{"15", 19, "16"}, {"16", 20, ""}, {"17", 18, "18"}, {"18", 24, ""}, {"19", 18, "20"},
	{"20", 19, ""}, {"23", 21, "24"}, {"24", 35, ""}, {"25", 18, "26"}, {"26", 35, ""},
	{"29", 38, "30"}, {"30", 22, ""}, {"35", 18, "36"}, {"36", 19, ""}, {"37", 25, "38"},
	{"38", 19, ""}, {"63", 31, "64"}, {"64", 59, ""}, {"65", 18, "66"}, {"66", 27, ""},
	{"93", 2, "94"}, {"94", 1, ""}, {"96", 0, ""}, {"97", 0, ""}, {"98", 34, ""}, {"99", 8, "98"},
}

func TestTables(t *testing.T) {
	for _, want := range fixedTotals {
		c := sip2.Code([]byte(want.code))
		total := 0
		var names []string
		for _, f := range sip2.FixedFields(c) {
			total += f.Len
			names = append(names, f.Name)
			if f.What == "" {
				t.Errorf("%s: %s is not explained", c, f.Name)
			}
		}
		if total != want.total {
			t.Errorf("%s: fixed part of %d bytes, want %d", c, total, want.total)
		}
		slices.Sort(names)
		if len(slices.Compact(names)) != len(sip2.FixedFields(c)) {
			t.Errorf("%s: a name occurs twice in %q", c, names)
		}
		if c.Name() == "" {
			t.Errorf("%s has no name", c)
		}
		if answer, ok := sip2.Response(c); answer.String() != want.answer || ok != (want.answer != "") {
			t.Errorf("%s is answered by %q, %v, want %q", c, answer, ok, want.answer)
		}
	}
	known := 0
	for a := byte('0'); a <= '9'; a++ {
		for b := byte('0'); b <= '9'; b++ {
			if (sip2.Code{a, b}).Name() != "" {
				known++
			}
		}
	}
	if known != len(fixedTotals) {
		t.Errorf("%d messages in the table, want %d", known, len(fixedTotals))
	}
	for _, c := range []sip2.Code{{}, {'7', '7'}, {'X', 'S'}, {0xFF, '1'}} {
		if _, ok := sip2.Response(c); ok || c.Name() != "" || sip2.FixedFields(c) != nil {
			t.Errorf("%q is in the table", c)
		}
	}
}

func TestFixedFieldsBelongToTheCaller(t *testing.T) {
	sip2.FixedFields(sip2.CodeLogin)[0].Len = 99
	if m := sip2.Parse([]byte("9300CNkiosk|"), '|'); string(m.Fixed("uid_algorithm")) != "0" || m.Short() {
		t.Error("a caller changed the table")
	}
}

func TestFixedPartCut(t *testing.T) {
	const date = "20261130    101500"
	const blanks = "                  "
	tests := []struct {
		name   string
		frame  string
		short  bool
		noDue  bool
		fixed  map[string]string // "" = absent
		fields string
	}{
		{name: "nothing behind the date", frame: "11YN" + date, noDue: true,
			fixed: map[string]string{"transaction_date": date, "nb_due_date": ""}},
		{name: "trailer behind the date", frame: "11YN" + date + "AY1AZ0000", noDue: true,
			fixed: map[string]string{"transaction_date": date, "nb_due_date": ""}},
		{name: "fields behind the date", frame: "29NN" + date + "AO|AA1|", noDue: true,
			fixed: map[string]string{"nb_due_date": ""}, fields: "AO= AA=1 "},
		{name: "an empty field behind the date", frame: "11YN" + date + "|AOM|AA1|", noDue: true,
			fixed: map[string]string{"nb_due_date": ""}, fields: "AO=M AA=1 "},
		{name: "date with letters is no date", frame: "11YN" + date + "ZZvendor|AOM|", noDue: true,
			fixed: map[string]string{"nb_due_date": ""}, fields: "ZZ=vendor AO=M "},
		{name: "blanks", frame: "11YN" + date + blanks + "AOM|",
			fixed: map[string]string{"nb_due_date": blanks}, fields: "AO=M "},
		{name: "half a due date", frame: "11YN" + date + "2026",
			short: true, fixed: map[string]string{"transaction_date": date, "nb_due_date": ""}},
		{name: "half a date", frame: "11YN20261130",
			short: true, fixed: map[string]string{"no_block": "N", "transaction_date": ""}},
		{name: "bytes lost before the fields", frame: "121NNY2026AOM|AA1|AB2|", short: true,
			fixed: map[string]string{"ok": "1", "desensitize": "Y", "transaction_date": ""}, fields: "AA=1 AB=2 "},
		{name: "an answer without its date", frame: "121NNY|AOM|", short: true,
			fixed: map[string]string{"ok": "1", "transaction_date": ""}, fields: "AO=M "},
		{name: "a bare answer", frame: "12AY1AZ0000", short: true, fixed: map[string]string{"ok": ""}},
		{name: "a delimiter for the ok digit", frame: "94|AFx|", short: true,
			fixed: map[string]string{"ok": ""}, fields: "AF=x "},
		{name: "no fixed part", frame: "97"},
		{name: "other messages have no such rule", frame: "09N" + date + "AOMAIN|AB1|", short: true,
			fixed: map[string]string{"transaction_date": date, "return_date": ""}, fields: "AB=1 "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := sip2.Parse([]byte(tt.frame), '|')
			if m.Short() != tt.short || m.MissingDueDate() != tt.noDue {
				t.Errorf("Short %v MissingDueDate %v, want %v %v", m.Short(), m.MissingDueDate(), tt.short, tt.noDue)
			}
			for name, want := range tt.fixed {
				if got := m.Fixed(name); string(got) != want || want == "" && got != nil {
					t.Errorf("%s = %q, want %q", name, got, want)
				}
			}
			got := ""
			for id, v := range m.Fields() {
				got += id.String() + "=" + string(v) + " "
			}
			if got != tt.fields {
				t.Errorf("fields %q, want %q", got, tt.fields)
			}
			checkCover(t, &m)
		})
	}
}

func TestFieldLookups(t *testing.T) {
	m := sip2.Parse([]byte("9300CNa|COb|x||CNc|zz|AD|1Xy"), '|')
	for id, want := range map[string]string{"CN": "a", "CO": "b", "zz": "", "AD": "", "1X": "y"} {
		if v, ok := m.Field(id); !ok || v == nil || string(v) != want {
			t.Errorf("Field(%s) = %q, %v, want %q", id, v, ok, want)
		}
	}
	for _, id := range []string{"", "C", "CNa", "x", "XX", "AY"} {
		if v, ok := m.Field(id); ok || v != nil || m.Count(id) != 0 {
			t.Errorf("Field(%q) = %q, %v", id, v, ok)
		}
	}
	if n := m.Count("CN"); n != 2 {
		t.Errorf("Count(CN) = %d, want 2", n)
	}
	for range m.Fields() {
		break
	}
	for range m.Segments() {
		break
	}
}

func TestFieldsOfUnknownCodes(t *testing.T) {
	m := sip2.Parse([]byte("77AOMAIN|AB1|"), '|')
	if _, ok := m.Field("AB"); ok || m.Count("AB") != 0 || m.Fixed("ok") != nil {
		t.Error("found something in a message of unknown layout")
	}
}

func TestValuesCannotReachTheNextByte(t *testing.T) {
	frame := []byte("11YN20261130    101500                  AOMAIN|AA1|AY1AZ0000")
	want := string(frame)
	m := sip2.Parse(frame, '|')
	ao, _ := m.Field("AO")
	_ = append(ao, '!')
	_ = append(m.Fixed("no_block"), '!')
	_ = append(sip2.Body(frame, m.Trailer), '!')
	for _, v := range m.Fields() {
		_ = append(v, '!')
	}
	for s := range m.Segments() {
		_ = append(s.Value, '!')
	}
	if string(frame) != want {
		t.Errorf("appending to values changed the frame to %q", frame)
	}
}

func TestBuild(t *testing.T) {
	frame := []byte("9300")
	frame = sip2.AppendField(frame, "CN", []byte("kiosk1"), '|')
	frame = sip2.AppendField(frame, "CO", []byte("s3cret"), '|')
	frame = sip2.AppendField(frame, "CP", []byte("MAIN"), '|')
	if got, want := string(sip2.AppendTrailer(frame, true, '0')), "9300CNkiosk1|COs3cret|CPMAIN|AY0AZF4DA"; got != want {
		t.Errorf("built %q, want %q", got, want)
	}
	if got := string(sip2.AppendTrailer([]byte("96"), false, 0)); got != "96AZFEF6" {
		t.Errorf("built %q, want 96AZFEF6", got)
	}
}

func TestFieldName(t *testing.T) {
	for id, want := range map[string]string{"AA": "patron identifier", "AB": "item identifier", "ZZ": "", "": "", "aa": ""} {
		if got := sip2.FieldName(id); got != want {
			t.Errorf("FieldName(%q) = %q, want %q", id, got, want)
		}
	}
}

// Whoever stops a walk early gets exactly the segments up to there.
func TestSegmentsStop(t *testing.T) {
	for _, frame := range []string{"11YN20261130    101500AOM||AA1|AY1AZ0000", "77x", "text", "12"} {
		m := sip2.Parse([]byte(frame), '|')
		all := slices.Collect(m.Segments())
		for stop := range all {
			var got []sip2.Segment
			for s := range m.Segments() {
				if got = append(got, s); len(got) == stop+1 {
					break
				}
			}
			if len(got) != stop+1 || string(got[stop].Raw) != string(all[stop].Raw) {
				t.Errorf("%q: stopped after %d segments with %d", frame, stop+1, len(got))
			}
		}
	}
}

func TestIsFrame(t *testing.T) {
	for frame, want := range map[string]bool{
		"11": true, "00": true, "77x": true, "XS00hello|AY9AZFAF7": true,
		"": false, "1": false, "AZ0000": false, "login: ": false,
		"XS00hello|":          false, // as likely a line of text
		"XS00hello|AY9AZFAF8": false,
		"ERROR 11":            false,
		"1x":                  false,
	} {
		if m := sip2.Parse([]byte(frame), '|'); m.IsFrame() != want || (m.Code != sip2.Code{}) != want {
			t.Errorf("%q: IsFrame %v, code %q, want %v", frame, m.IsFrame(), m.Code, want)
		}
	}
}
