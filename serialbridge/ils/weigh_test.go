package ils

import (
	"strings"
	"testing"

	"sip2gate/serialbridge/sip2"
)

// What a 64 proves about one loan, and what it does not.
func TestWeighPatronInformation(t *testing.T) {
	const whole = "64              00120261130    101523000000000001000000000000AOMAIN|AA21234000000011|AEx|BLY|CQY|AU31234000000105|"
	swap := func(from, to string) string {
		if !strings.Contains(whole, from) {
			t.Fatalf("no %q in the frame", from)
		}
		return strings.Replace(whole, from, to, 1)
	}
	for _, c := range []struct {
		name, frame     string
		charged, absent bool
	}{
		{"a whole list without the item", whole, false, true},
		{"the item is in it", swap("AU31234000000105", "AU31234000000022"), true, false},
		{"with blanks round it", swap("AU31234000000105", "AU 31234000000022 "), true, false},
		{"never as a part of another", swap("AU31234000000105", "AU312340000000220"), false, false},
		{"nothing charged", strings.Replace(swap("AU31234000000105|", ""), "000000000001", "000000000000", 1), false, true},
		{"no count", swap("000000000001000000000000", "00000000    000000000000"), false, false},
		{"a list cut short", swap("000000000001", "000000000003"), false, false},
		{"a title", swap("AU31234000000105", "AUThe Long Rain"), false, false},
		{"a title of digits", swap("AU31234000000105", "AU1984"), false, false},
		{"the patron is not valid", swap("BLY", "BLN"), false, false},
		{"the PIN is not valid", swap("CQY", "CQN"), false, false},
		{"another patron", swap("AA21234000000011", "AA21234000000029"), false, false},
		{"charged all the same, whoever is valid", strings.Replace(swap("BLY", "BLN"), "0105", "0022", 1), true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := sip2.ParseAnswer([]byte(c.frame), '|')
			got := readPatron(&m, Query{Patron: []byte("21234000000011"), Item: []byte("31234000000022")})
			if got.charged != c.charged || got.absent != c.absent {
				t.Errorf("charged %v, absent %v (%s); want %v, %v", got.charged, got.absent, got.note, c.charged, c.absent)
			}
		})
	}
}
