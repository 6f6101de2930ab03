package main

import (
	"encoding/json"
	"strings"
	"testing"

	"sip2gate/serialbridge/sip2"
)

// checkout is the worked example of a Checkout with its nb due date, and
// patron and PIN that must not be shown.
const checkout = "11YN20260716    110214                  AOMAIN-BR|AAB1029384756|ABI30012000029894|ACterm7|AD4711|AY3AZ"

func withSum(frame string) string {
	return string(sip2.AppendTrailer([]byte(strings.TrimSuffix(frame, "AY3AZ")), true, '3'))
}

const checkoutInWords = `11 Checkout
  --  sc renewal policy  "Y"                   the station may renew
  --  no block           "N"                   ask first
  --  transaction date   "20260716    110214"  2026-07-16 11:02:14 local time
  --  nb due date        "                  "  no date
  AO  institution id     "MAIN-BR"
  AA  patron identifier  (11 bytes, hidden)
  AB  item identifier    "I30012000029894"
  AC  terminal password  (5 bytes, hidden)
  AD  patron password    (4 bytes, hidden)
  AY  sequence number    3
  AZ  checksum           E904  right
`

// TestDecodePasted is the same frame in every form in which people have it.
func TestDecodePasted(t *testing.T) {
	frame := withSum(checkout)
	for name, text := range map[string]string{
		"bare":              frame,
		"CR":                frame + "\r",
		"CR LF":             "\n" + frame + "\r\n",
		"escapes":           frame + `\r\n`,
		"hex":               strings.Replace(frame, "|", `\x7C`, 1) + `\x0D`,
		"log line":          "2026-07-16 11:02:14,123 INFO [12] RECV 11: " + frame,
		"quoted":            `16/Jul/2026 11:02:14 kiosk 99 sent "` + frame + `\r" (97 bytes)`,
		"JSON":              `{"time":"2026-07-16T11:02:14Z","frame":"` + frame + `\r","station":"11"}`,
		"escape in front":   `line \r` + frame,
		"numbers in front":  "10.9.96.97:6001 23 -> " + frame,
		"spaces at the end": frame + "  ",
		"<CR>":              frame + "<CR>",
		"<CR><LF>":          frame + "<CR><LF>",
		"a sign for CR":     frame + "\u240d\u240a",
		"quote behind":      frame + `"`,
		"apostrophe behind": frame + `'`,
		"escape and quote":  frame + `\r"`,
		"in quotes":         `"` + frame + `"`,
		"quote and comma":   frame + `",`,
	} {
		t.Run(name, func(t *testing.T) {
			code, out, words := call(t, "", "decode", text)
			if code != exitOK || out != checkoutInWords || words != "" {
				t.Errorf("code %d\n%s%s", code, out, words)
			}
			if code, out, _ := call(t, text+"\n", "decode"); code != exitOK || out != checkoutInWords {
				t.Errorf("from standard input: code %d\n%s", code, out)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	for _, tt := range []struct {
		name, frame string
		code        int
		want        []string // all in the output
	}{
		{"wrong checksum", checkout + "0000", exitUnwell, []string{"AZ  checksum           0000  WRONG, right is E904\n"}},
		{"no trailer", "941", exitOK, []string{"94 Login Response\n", "accepted\n", "AZ  checksum  none\n"}},
		{"nb due date left out", "11YN20260716    110214AOMAIN-BR|AAB1029384756|ABI30012000029894|ACterm7|AY3AZED12", exitOK,
			[]string{"AB  item identifier    \"I30012000029894\"\n", "note: nb due date, 18 characters, is left out"}},
		{"cut", "1220260716", exitUnwell, []string{"12 Checkout Response\n", "note: transaction_date has", "note: the fixed part is cut"}},
		{"text", "Login incorrect", exitUnwell, []string{"no SIP2 frame\n", "(15 bytes, hidden)", "note: this is no SIP2 frame"}},
		{"unknown code", "77something", exitOK, []string{"77, an unknown message\n", "note: SIP2 2.00 has no message 77", "(9 bytes, hidden)"}},
		{"empty fields", "9300||CNkiosk7|COs3cret|", exitOK, []string{"note: a delimiter without a field", `"kiosk7"`, "login password  (6 bytes, hidden)"}},
		{"a value into which the patron has run", "17" + "20260716    110214" + "AOmainAA1029384756|ABx|", exitOK, []string{"(16 bytes, hidden)"}},
		{"beyond ASCII", "1720260716    110214AOM\xFCller|ABx|AY1AZ0000", exitUnwell, []string{`"M\xfcller"`, "note: the frame has characters beyond ASCII"}},
		{"control characters", "1720260716    110214AOa\x1b[2Jb|ABx|", exitOK, []string{`"a\x1b[2Jb"`}},
		{"coded value", "18040001" + "20260716    110214" + "ABx|AJtitle|", exitOK, []string{`circulation status  "04"`, " charged\n", "security marker", " other\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out, _ := call(t, "", "decode", tt.frame)
			if code != tt.code {
				t.Errorf("code %d, want %d", code, tt.code)
			}
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q", want)
				}
			}
			for _, secret := range []string{"1029384756", "4711", "s3cret"} {
				if strings.Contains(out, secret) {
					t.Errorf("%q is shown", secret)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

func TestDecodeShowSecrets(t *testing.T) {
	_, out, _ := call(t, "", "decode", "--show-secrets", withSum(checkout), "Login incorrect")
	for _, want := range []string{`"B1029384756"`, `"4711"`, `"Login incorrect"`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

func TestDecodeDelimiter(t *testing.T) {
	frame := strings.ReplaceAll(strings.TrimSuffix(checkout, "AY3AZ"), "|", "^")
	_, out, _ := call(t, "", "decode", "--delimiter", "^", frame)
	if !strings.Contains(out, `AB  item identifier    "I30012000029894"`) {
		t.Error(out)
	}
	_, out, _ = call(t, "", "decode", frame) // not known here: all is one field
	if strings.Contains(out, "1029384756") {
		t.Errorf("the patron is shown:\n%s", out)
	}
}

func TestDecodeJSON(t *testing.T) {
	code, out, _ := call(t, withSum(checkout)+"\r"+checkout+"0000\r\n", "decode", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != exitUnwell || len(lines) != 2 {
		t.Fatalf("code %d\n%s", code, out)
	}
	var good, bad decodedFrame
	if err := json.Unmarshal([]byte(lines[0]), &good); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(lines[1]), &bad); err != nil {
		t.Fatal(err)
	}
	if !good.OK || good.Code != "11" || good.Name != "Checkout" || good.Sequence != "3" || !good.Checksum.OK || len(good.Fixed) != 4 || len(good.Fields) != 5 {
		t.Errorf("%+v", good)
	}
	if bad.OK || bad.Checksum.OK || bad.Checksum.Written != "0000" || bad.Checksum.Right != good.Checksum.Right {
		t.Errorf("%+v", bad)
	}
	if aa := good.Fields[1]; aa.ID != "AA" || !aa.Hidden || aa.Value != "" || aa.Length != 11 {
		t.Errorf("%+v", aa)
	}
}

// TestDecodeQuote: a quote that belongs to the frame stays.
func TestDecodeQuote(t *testing.T) {
	_, out, _ := call(t, "", "decode", `101YNN20260716    110214AFsay "no"`)
	if !strings.Contains(out, `"say \"no\""`) {
		t.Error(out)
	}
}

// TestDecodeEvent: a line of the gate's own log is what people have at hand.
func TestDecodeEvent(t *testing.T) {
	for _, line := range []string{
		`{"time":"2026-12-01T17:21:40.473Z","level":"INFO","msg":"loan_committed","station":"kiosk-1","item":"3100001","age_ms":941}`,
		`time=2026-12-01T17:21:40.473Z level=INFO msg=loan_committed station=kiosk-1 item=3100001 age_ms=941`,
	} {
		code, out, _ := call(t, "", "decode", line)
		if code != exitUnwell || !strings.HasPrefix(out, "the event loan_committed of the gate's log, no frame\n  note: ") {
			t.Errorf("code %d\n%s", code, out)
		}
		_, out, _ = call(t, line+"\n", "decode", "--json")
		var f decodedFrame
		if err := json.Unmarshal([]byte(out), &f); err != nil || f.Event != "loan_committed" || f.OK {
			t.Errorf("%v: %s", err, out)
		}
	}
}

func TestDecodeNothing(t *testing.T) {
	if code, out, words := call(t, "\r\n\n", "decode"); code != exitUnwell || out != "" || !strings.Contains(words, "there is no frame") {
		t.Errorf("code %d\n%s%s", code, out, words)
	}
}

// FuzzDecode holds that no text makes decode panic, and that what has been
// hidden stands nowhere in its output.
func FuzzDecode(f *testing.F) {
	f.Add(withSum(checkout))
	f.Add(`x "941AY0AZFDFC\r"`)
	f.Add("\\x")
	f.Fuzz(func(t *testing.T, text string) {
		d := decoder{delim: '|'}
		for _, raw := range d.framesIn(text) {
			for _, x := range d.decode(raw).Fields {
				if x.Hidden && x.Value != "" || isSecret(x.ID) && x.Value != "" {
					t.Errorf("%+v is shown of %q", x, text)
				}
			}
		}
	})
}
