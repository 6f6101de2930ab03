package serialbridge_test

import (
	"bytes"
	"strings"
	"time"

	"sip2gate/serialbridge/sip2"
)

// refusals are the most negative answers: what the fixed part of each must
// say, and the fields that SIP2 wants in it, in any order.
var refusals = map[string]struct {
	code   string
	fixed  map[string]string
	fields string
}{
	"11": {"12", map[string]string{"ok": "0", "renewal_ok": "N", "magnetic_media": "U", "desensitize": "N"}, "AO AA AB AJ AH AF"},
	"29": {"30", map[string]string{"ok": "0", "renewal_ok": "N", "magnetic_media": "U", "desensitize": "N"}, "AO AA AB AJ AH AF"},
	"09": {"10", map[string]string{"ok": "0", "resensitize": "N", "magnetic_media": "U"}, "AO AB AQ AF"},
	"65": {"66", map[string]string{"ok": "0", "renewed_count": "0000", "unrenewed_count": "0000"}, "AO AF"},
	"37": {"38", map[string]string{"payment_accepted": "N"}, "AO AA AF"},
	"15": {"16", map[string]string{"ok": "0", "available": "N"}, "AO AA AF"},
	"23": {"24", map[string]string{}, "AO AA AE BL AF"},
	"01": {"24", map[string]string{}, "AO AA AE BL AF"},
	"25": {"26", map[string]string{}, "AO AA AE BL AF"},
	"63": {"64", map[string]string{"charged_items_count": "0000"}, "AO AA AE BL AF"},
	"17": {"18", map[string]string{"circulation_status": "01"}, "AB AJ"},
	"19": {"20", map[string]string{"item_properties_ok": "0"}, "AB"},
	"35": {"36", map[string]string{"end_session": "Y"}, "AO AA"},
}

// negative wants the most negative well-formed answer to a request, with the
// request's AY.
func (k *kiosk) negative(request string, d time.Duration) {
	k.r.t.Helper()
	t := k.r.t
	f := bytes.TrimSuffix(frameOf(t, request), []byte("\r"))
	req := sip2.Parse(f, '|')
	raw := k.read(d)
	if !strings.HasSuffix(raw, k.end) || strings.Count(raw, "\r") != 1 {
		t.Errorf("%q does not end once in %q", raw, k.end)
	}
	m := sip2.Parse([]byte(strings.TrimRight(raw, "\r\n")), '|')
	want, ok := refusals[req.Code.String()]
	if !ok {
		t.Fatalf("got %q for a %s, which has no negative answer", raw, req.Code)
	}
	if m.Code.String() != want.code || m.Short() {
		t.Fatalf("got %q for a %s, want a whole %s", raw, req.Code, want.code)
	}
	for name, v := range want.fixed {
		if got := string(m.Fixed(name)); got != v {
			t.Errorf("%s of %q is %q, want %q", name, raw, got, v)
		}
	}
	for _, f := range sip2.FixedFields(m.Code) {
		got := m.Fixed(f.Name)
		if len(got) != f.Len {
			t.Errorf("%s of %q is %q, want %d bytes", f.Name, raw, got, f.Len)
		}
		if f.Name == "transaction_date" && !bytes.Equal(got, req.Fixed("transaction_date")) {
			t.Errorf("the date of %q is %q, not the request's", raw, got)
		}
		if f.Name == "patron_status" && !strings.HasPrefix(string(got), "YYYY") {
			t.Errorf("the patron of %q may still do something", raw)
		}
	}
	for id := range strings.FieldsSeq(want.fields) {
		got, there := m.Field(id)
		if !there || m.Count(id) != 1 {
			t.Errorf("%q has %d fields %s", raw, m.Count(id), id)
		}
		switch id {
		case "AO", "AA", "AB":
			if asked, _ := req.Field(id); !bytes.Equal(got, asked) {
				t.Errorf("%s of %q is %q, not the request's %q", id, raw, got, asked)
			}
		case "BL":
			if string(got) != "N" {
				t.Errorf("%q calls the patron valid", raw)
			}
		}
	}
	switch {
	case m.Trailer.Present != req.Trailer.Present, m.Trailer.HasSeq != req.Trailer.HasSeq,
		m.Trailer.HasSeq && m.Trailer.Seq != req.Trailer.Seq, m.Trailer.Present && !m.Trailer.Valid:
		t.Errorf("the trailer of %q is not right for that of %q", raw, f)
	}
}
