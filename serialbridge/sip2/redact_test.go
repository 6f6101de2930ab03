package sip2_test

import (
	"strings"
	"testing"

	"sip2gate/serialbridge/sip2"
)

func TestRedact(t *testing.T) {
	tests := []struct{ name, frame, want string }{
		{"checkout", "11YN20261130    101500                  AOMAIN|AA21234000000011|AB31234000000022|AC|AD4711|BON|BIN|AY1AZE910",
			`11 AO="MAIN" AA[14] AB="31234000000022" AC[0] AD[4] BO[1] BI[1] AY1 AZ`},
		{"login", "9300CNkiosk1|COs3cret|CPMAIN|AY0AZ0000", `93 CN[6] CO[6] CP[4] AY0 AZ (wrong)`},
		{"no trailer", "941", `94`},
		{"text", "Problems with patron 21234000000011", `text[35]`},
		{"unknown code", "77 21234000000011|", `77 text[16]`},
		{"short", "11YN2026", `11 cut[4]`},
		{"delimiter lost", "11YN20261130    101500                  AOMAIN|AB3123AA21234000000011|AD4711|", `11 AO="MAIN" AB[20] AD[4]`},
		{"other delimiter", "11YN20261130    101500                  AOMAIN^AA21234000000011^AB3123^AD4711^", `11 AO[36]`},
		{"value with delimiter", "24              00120261130    101500AEDoe|1234|jane|", `24 AE[3] ??[2] ??[2]`},
		{"control characters", "1720261130    101520AOa\nb\x1b|AB\xFFx|", `17 AO="a\nb\x1b" AB="\xffx"`},
		{"long", "1720261130    101520AB" + strings.Repeat("1", 65) + "|", `17 AB[65]`},
		{"nothing", "", ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := sip2.Redact([]byte(tt.frame), '|'); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// What identifies a person or is secret in the golden frames must not come
// through, read with the right delimiter or with a wrong one.
func TestRedactGolden(t *testing.T) {
	secrets := []string{"B1029384756", "Doe", "1 Main St", "jane@", "s3cret", "kiosk7", "darkness", "Zo", "1234|"}
	for _, g := range goldenFrames(t) {
		for _, delim := range []byte{g.delim(), '~'} {
			got := sip2.Redact(g.frame(t), delim)
			for _, secret := range secrets {
				if strings.Contains(got, secret) {
					t.Errorf("%s: %q in %s", g.ID, secret, got)
				}
			}
			for _, r := range got {
				if r < ' ' || r > '~' {
					t.Errorf("%s: %q in %s", g.ID, r, got)
				}
			}
		}
	}
}
