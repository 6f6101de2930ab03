package config

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestNearest(t *testing.T) {
	known := []string{"ca_file", "tls", "timeout", "wan_down", "login_password_file", "address", "even"}
	for word, want := range map[string]string{
		"ca-file": "ca_file", "Tls": "tls", "TIMEOUT": "timeout", "wandown": "wan_down", "tmieout": "timeout",
		"adress": "address", "login_pasword_fle": "login_password_file", "E": "even", "timeouts": "timeout",
		"tsl": "tls", "colour": "", "x": "", "": "",
	} {
		if got := nearest(word, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Second: "1s", 90 * time.Second: "90s", 2 * time.Minute: "2m", time.Hour: "1h", 336 * time.Hour: "336h",
		90 * time.Minute: "1h30m", 1500 * time.Millisecond: "1.5s", 601 * time.Second: "10m1s", 0: "0s",
	} {
		got := Span(d)
		if got != want {
			t.Errorf("Span(%v) = %q, want %q", d, got, want)
		}
		if back, err := time.ParseDuration(got); err != nil || back != d {
			t.Errorf("Span(%v) = %q, which is %v, %v", d, got, back, err)
		}
	}
}

func TestOverlap(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{":6001", ":6001", true},
		{":6001", ":6002", false},
		{"0.0.0.0:6001", "10.0.0.1:6001", true},
		{"[::]:6001", "127.0.0.1:6001", true},
		{"10.0.0.1:6001", "10.0.0.2:6001", false},
		{"10.0.0.1:6001", "[::ffff:10.0.0.1]:06001", true},
		{"localhost:6001", "127.0.0.1:6001", true},
	} {
		if got := overlap(tt.a, tt.b); got != tt.want {
			t.Errorf("overlap(%q, %q) = %v", tt.a, tt.b, got)
		}
		if got := overlap(tt.b, tt.a); got != tt.want {
			t.Errorf("overlap(%q, %q) = %v", tt.b, tt.a, got)
		}
	}
}

func TestReaches(t *testing.T) {
	for _, tt := range []struct {
		dial, listen string
		want         bool
	}{
		{"127.0.0.1:6001", ":6001", true},
		{"localhost:6001", "0.0.0.0:6001", true},
		{"127.0.0.1:6001", ":6002", false},
		{"ils.example.org:6001", ":6001", false},
		{"10.0.0.1:6001", "10.0.0.1:6001", true},
		{"10.0.0.1:6001", "10.0.0.2:6001", false},
	} {
		if got := reaches(tt.dial, tt.listen); got != tt.want {
			t.Errorf("reaches(%q, %q) = %v", tt.dial, tt.listen, got)
		}
	}
}

func TestEncode(t *testing.T) {
	for charset, want := range map[string]string{
		"utf-8": "für", "iso-8859-1": "f\xFCr", "windows-1252": "f\xFCr", "cp850": "f\x81r", "cp437": "f\x81r",
	} {
		got, err := Encode(charset, "für")
		if err != nil || string(got) != want {
			t.Errorf("Encode(%s) = %q, %v, want %q", charset, got, err, want)
		}
	}
	for _, charset := range Charsets() {
		got, err := Encode(charset, "plain |^~ text")
		if err != nil || string(got) != "plain |^~ text" {
			t.Errorf("Encode(%s) = %q, %v", charset, got, err)
		}
	}
	for charset, char := range map[string]rune{"ascii": 'ü', "iso-8859-1": '€', "cp850": '€', "cp437": 'Ø'} {
		_, err := Encode(charset, "a"+string(char))
		ce, ok := errors.AsType[*CharsetError](err)
		if !ok || ce.Char != char || ce.Charset != charset {
			t.Errorf("Encode(%s, %c): %v", charset, char, err)
		}
	}
	if _, err := Encode("ebcdic", "a"); err == nil {
		t.Error("an unknown character set was taken")
	}
}

// TestKeysAreExplained holds that the technician's page has every key.
func TestKeysAreExplained(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/technician.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, ok := strings.Cut(string(page), "## All keys")
	if !ok {
		t.Fatal("there is no list of keys")
	}
	for _, table := range tables {
		_, rows, ok := strings.Cut(list, "`"+bracket(table.name, table.array)+"`")
		if !ok {
			t.Errorf("[%s] is not explained", table.name)
		}
		rows, _, _ = strings.Cut(rows, "\n| **")
		for _, key := range table.keys {
			if !strings.Contains(rows, "`"+key+"`") {
				t.Errorf("[%s] %s is not explained", table.name, key)
			}
		}
	}
}
