package serialbridge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sip2gate/serialbridge/sip2"
)

const (
	day   = "20261130    101500"
	noDue = "                  "
)

// An exchange is a request and its answer, both without trailer. Where answer
// is "" the gate answers the request itself with the frame before (97).
type exchange struct{ request, answer string }

// pairs are a dialogue of every message that SIP2 has, with the fields that
// vendors add, empty fields and fields in odd order.
var pairs = []exchange{
	{"9300CNkiosk1|COs3cret|CPMAIN|", "941"},
	{"9900802.00", "98YYYYNN100003" + day + "2.00AOMAIN|AMMain Library|BXYYYYYYYYYYYNYYYY|AN|ZV1|"},
	{"97", ""},
	{"23001" + day + "AOMAIN|AA21234000000011|AC|AD4711|", "24              001" + day + "AOMAIN|AA21234000000011|AE|BLY|CQY||ZV|"},
	{"63001" + day + "  Y       AOMAIN|AA21234000000011|AC|AD|BP|BQ|ZZx|", "64              001" + day + "000000010002000300040005AOMAIN|AA21234000000011|AE|BZ0009|CA|CB|BLY|CQY|BHEUR|BV1.50|AU|"},
	{"11YN" + day + noDue + "AOMAIN|AA21234000000011|AB31234000000022|AC|AD4711|CHx|BON|BIN||", "121NUY" + day + "AOMAIN|AA21234000000011|AB31234000000022|AJ|AH20261221    235900|CK001|CHx|AF|AG|"},
	{"97", ""},
	{"09N" + day + day + "APMAIN|AOMAIN|AB31234000000022|AC|CH|BIN|", "101YUN" + day + "AOMAIN|AB31234000000022|AQMAIN|AJ|CLsort 7|CV01|"},
	{"29NN" + day + noDue + "AOMAIN|AA21234000000011|AD|AB31234000000105|AJ|AC|BON|", "301YUN" + day + "AOMAIN|AA21234000000011|AB31234000000105|AJ|AH|"},
	{"65" + day + "AOMAIN|AA21234000000011|AD|AC|BON|", "66100010002" + day + "AOMAIN|BM31234000000105|BN|BN|AF|"},
	{"15+" + day + "BW|BSMAIN|BY1|AOMAIN|AA21234000000011|AD|AB|AJ|AC|BON|", "161N" + day + "BW|BR2|BSMAIN|AOMAIN|AA21234000000011|AB|AJ|"},
	{"17" + day + "AOMAIN|AB31234000000022|AC|", "18030001" + day + "CF0|AH|CJ|CM|AB31234000000022|AJ|BGMAIN|AQ|CH|"},
	{"19" + day + "AOMAIN|AB31234000000022|AC|CHlocked|", "201" + day + "AB31234000000022|AJ|CHlocked|"},
	{"37" + day + "0100EURBV1.50|AOMAIN|AA21234000000011|AC|AD|CG|BKpay-77|", "38Y" + day + "AOMAIN|AA21234000000011|BK|AF|"},
	{"25" + day + "AOMAIN|AA21234000000011|AC|AD|", "26              001" + day + "AOMAIN|AA21234000000011|AE|BLY|"},
	{"01N" + day + "AOMAIN|ALlost on the way|AA21234000000011|AC|", "24YYYY          001" + day + "AOMAIN|AA21234000000011|AE|BLY|"},
	{"17" + day + "AOMAIN|AB31234000000303|AC|", "96"}, // the ILS wants it again
	{"17" + day + "AOMAIN|AB31234000000303|AC|", "18010001" + day + "AB31234000000303|AJ|"},
	{"23001" + day + "AOMAIN|AA|AC|AD|", "98NNNNNN100003" + day + "2.00AOMAIN|BX|"}, // a 98 in place of it
	{"35" + day + "AOMAIN|AA21234000000011|AC|AD4711|", "36Y" + day + "AOMAIN|AA21234000000011|AF|AG|"},
}

// charsets are the same words, and more, as peers may encode them.
var charsets = map[string]string{
	"UTF-8":        "\xC5\xBB\xC3\xB3\xC5\x82w i r\xC3\xB3\xC5\xBCa \xE2\x82\xAC",
	"ISO 8859-1":   "\xC4rger \xFCber B\xFCcher",
	"Windows-1252": "\x80uro \x93quoted\x94",
	"CP850":        "\x8Erger \x81ber B\x81cher",
	"KOI8-R":       "\xED\xC1\xD3\xD4\xC5\xD2",
	"Shift JIS":    "\x83\x65\x83\x58\x83\x67\x5C",
	"GB 18030":     "\xB2\xE2\xCA\xD4\x81\x30\x81\x30",
	"MARC-8":       "\x1B(B\xE1e\x1Es",
	"none":         "\xFF\xFE\xC0\x80\x00\x01\x7F\n\t\xFF\xFF\xFA1\xFF\xF0",
}

// unknown are requests that SIP2 does not define.
func unknown() []exchange {
	out := []exchange{
		{"XS00hello", "XS00world"},
		{"XS", "XT"},
		{"81" + day + "AOMAIN|AA21234000000011|", "82Y" + day},
		{"00", "01"},
		{"77|||", "78|"},
		{"5001N ZZvendor||AY1AZ0001|AB31234000000022|", "51AY|AZ|"},
		{"9600", "anything at all"},
		{"12NO" + day, "13"},
		{"11", "120NUN" + day + "AF"}, // an 11 with nothing in it
	}
	for name, text := range charsets {
		out = append(out,
			exchange{"83" + day + "AF" + text + "|ZZ" + name + "|", "84" + text + "|AF" + text + "||"},
			exchange{"23001" + day + "AOMAIN|AA" + text + "|AC" + text + "|AD|", "24              001" + day + "AO|AA" + text + "|AE" + text + "|AF" + text + "|"})
	}
	return out
}

// kiosks are of the kinds that are about.
var kiosks = []struct {
	name    string
	end     string
	trailer bool
	listen  bool
}{
	{"serial, CR, trailers", "\r", true, false},
	{"serial, CR LF, trailers", "\r\n", true, false},
	{"serial, CR, no trailers", "\r", false, false},
	{"serial, CR LF, no trailers", "\r\n", false, false},
	{"TCP, CR, trailers", "\r", true, true},
	{"TCP, CR LF, trailers", "\r\n", true, true},
	{"TCP, CR, no trailers", "\r", false, true},
	{"TCP, CR LF, no trailers", "\r\n", false, true},
}

// TestTransparent: what is no repeat passes as it is, in both directions.
func TestTransparent(t *testing.T) {
	for _, c := range kiosks {
		for _, end := range []string{"\r", "\r\n"} {
			t.Run(fmt.Sprintf("%s, ILS with %q", c.name, end), func(t *testing.T) {
				t.Run("SIP2", func(t *testing.T) { dialogue(t, pairs, c.listen, c.trailer, c.end, end) })
				t.Run("unknown", func(t *testing.T) { dialogue(t, unknown(), c.listen, c.trailer, c.end, end) })
			})
		}
	}
}

// dialogue holds a dialogue through the gate and compares all bytes.
func dialogue(t *testing.T, exchanges []exchange, listen, trailer bool, kioskEnd, ilsEnd string) {
	bubble(t, func(t *testing.T, r *rig) {
		var next string // the ILS's next answer
		r.ils.on(func(q *request) bool {
			q.raw(next + ilsEnd)
			return true
		})
		k := r.serialOr(listen).endingIn(kioskEnd)
		var toILS, toKiosk, last string
		ilsTerminator := "\r" // until the ILS has shown its own
		for i, x := range exchanges {
			request := withTrailer(x.request, trailer, i)
			if x.answer != "" {
				next = withTrailer(x.answer, trailer, i)
				last = next
				toILS += request + ilsTerminator
				ilsTerminator = ilsEnd
			}
			k.raw(request + kioskEnd)
			if got := k.read(time.Second); got != last+kioskEnd {
				t.Fatalf("%q got\n%q, want\n%q\n%s", request, got, last+kioskEnd, r.log)
			}
			toKiosk += last + kioskEnd
		}
		k.none(time.Minute)
		if got := r.ils.wire(1); got != toILS {
			t.Errorf("the ILS got\n%q, want\n%q", got, toILS)
		}
		if got := k.heard(); got != toKiosk {
			t.Errorf("the kiosk heard\n%q, want\n%q", got, toKiosk)
		}
		if n := r.ils.connections(); n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// withTrailer is a body with the nth number, if it is to have one; 96 and 97
// have AZ alone.
func withTrailer(body string, trailer bool, n int) string {
	if !trailer {
		return body
	}
	return string(sip2.AppendTrailer([]byte(body), body != "96" && body != "97", byte('0'+n%10)))
}

// serialOr is a kiosk on S2's port, or else on S1's line.
func (r *rig) serialOr(listen bool) *kiosk {
	if listen {
		return r.connect("192.0.2.7")
	}
	return r.serial()
}

// A peer without error detection on one side of the gate stays one on the
// other: no trailer is added or taken away.
func TestTransparentOneSidedTrailers(t *testing.T) {
	for _, kioskHas := range []bool{true, false} {
		bubble(t, func(t *testing.T, r *rig) {
			var next string
			r.ils.on(func(q *request) bool { q.raw(next + "\r"); return true })
			k := r.connect("192.0.2.7")
			for i, x := range pairs {
				if x.answer == "" || x.answer == "96" || strings.HasPrefix(x.answer, "98") {
					continue // a 98 without AY, or with one that was not asked for, belongs to nothing
				}
				next = withTrailer(x.answer, !kioskHas, i)
				k.raw(withTrailer(x.request, kioskHas, i) + "\r")
				if got := k.read(time.Second); got != next+"\r" {
					t.Errorf("%q got\n%q, want\n%q", x.request, got, next)
				}
			}
		})
	}
}

// Wrong checksums of an ILS are for the kiosk to judge, but on a 12.
func TestTransparentWrongChecksums(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var next string
		r.ils.on(func(q *request) bool { q.raw(next + "\r"); return true })
		k := r.serial()
		n := 0
		say := func(request, answer string) {
			t.Helper()
			next = answer
			k.raw(withTrailer(request, true, n) + "\r")
			n++
			if got := k.read(time.Second); got != answer+"\r" {
				t.Errorf("%q got %q, want %q", request, got, answer)
			}
		}
		for _, x := range pairs {
			if x.answer == "" || x.answer == "96" || strings.HasPrefix(x.answer, "98") {
				continue
			}
			say(x.request, withTrailer(x.answer, true, n)) // and the first 12 is right
		}
		for _, x := range pairs {
			if x.answer == "" || strings.HasPrefix(x.answer, "12") {
				continue
			}
			right := withTrailer(x.answer, true, n)
			say(x.request, right[:len(right)-4]+"BEEF")
		}
	})
}
