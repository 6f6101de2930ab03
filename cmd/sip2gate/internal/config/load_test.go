package config

import (
	"bytes"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

var update = flag.Bool("update", false, "write the expected reports anew")

// TestReports holds each file of testdata against the report beside it. The
// names tell the numbers of the cases that they come from.
func TestReports(t *testing.T) {
	files, err := filepath.Glob("testdata/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".toml"), func(t *testing.T) {
			name := filepath.ToSlash(file)
			c, problems := ReadFile(name)
			got := outcome(c, problems)
			want := strings.TrimSuffix(file, ".toml") + ".want"
			if *update {
				if err := os.WriteFile(want, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			expected, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(expected) {
				t.Errorf("report:\n%s\nwant:\n%s", got, expected)
			}
			if (c == nil) != Failed(problems) {
				t.Errorf("config %v with problems %v", c, problems)
			}
		})
	}
}

func outcome(c *Config, problems []Problem) string {
	var b strings.Builder
	for _, p := range problems {
		fmt.Fprintln(&b, p)
	}
	if c != nil {
		fmt.Fprintln(&b, "ok:", c.Summary())
	}
	return b.String()
}

const rightFile = "[ils]\naddress = \"ils.example.org:6001\" # ü\n\n[[station]]\nname = \"kiosk-1\"\nlisten = \":6001\"\n"

// TestWindowsEditors is C-095: the same file as Windows programs save it.
func TestWindowsEditors(t *testing.T) {
	utf16 := func(mark string, high, low int) []byte {
		out := []byte(mark)
		for _, r := range rightFile {
			unit := [2]byte{}
			unit[high], unit[low] = byte(r>>8), byte(r)
			out = append(out, unit[:]...)
		}
		return out
	}
	dos := strings.ReplaceAll(rightFile, "\n", "\r\n")
	want, problems := Load("x.toml", []byte(rightFile))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for name, data := range map[string][]byte{
		"mark":               []byte("\xEF\xBB\xBF" + rightFile),
		"UTF-16LE":           utf16("\xFF\xFE", 1, 0),
		"UTF-16BE":           utf16("\xFE\xFF", 0, 1),
		"UTF-16LE, no mark":  utf16("", 1, 0),
		"UTF-16BE, no mark":  utf16("", 0, 1),
		"mark in line 2":     []byte(strings.Replace(rightFile, "address", "\uFEFFaddress", 1)),
		"CR LF":              []byte(dos),
		"CR LF and mark":     []byte("\xEF\xBB\xBF" + dos),
		"CR":                 []byte(strings.ReplaceAll(rightFile, "\n", "\r")),
		"Ctrl-Z":             []byte(dos + "\x1a"),
		"tabs":               []byte(strings.ReplaceAll(strings.ReplaceAll(rightFile, " = ", "\t=\t"), "\n", "\t\n\t")),
		"no last line end":   []byte(strings.TrimSpace(rightFile)),
		"Windows-1252 words": []byte(strings.ReplaceAll(rightFile, "ü", "\xFC")),
	} {
		t.Run(name, func(t *testing.T) {
			c, problems := Load("x.toml", data)
			if got := outcome(c, problems); got != outcome(want, nil) {
				t.Errorf("got:\n%s", got)
			}
		})
	}
}

// TestPlaces is what is wrong in a line, with its place, for what an editor or
// a damaged card leaves there. Line and column count characters.
func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		name, old, new string
		want           string
	}{
		{"a quote of Windows-1252", `"kiosk-1"`, "\x93kiosk-1\x94", "x.toml:5:8: the byte 0x93 is not UTF-8\n    save the file as UTF-8; in Windows-1252 the byte is “"},
		{"a letter of Windows-1252", `"kiosk-1"`, "\"k\xFC\"", "x.toml:5:10: the byte 0xFC is not UTF-8\n    save the file as UTF-8; in Windows-1252 the byte is ü"},
		{"a byte that is nothing", `"kiosk-1"`, "\"k\x81\"", "x.toml:5:10: the byte 0x81 is not UTF-8\n    save the file as UTF-8"},
		{"NUL", "name", "\x00name", "x.toml:5:1: U+0000 NUL cannot stand here"},
		{"NUL in text", "kiosk-1", "kiosk\x00", "x.toml:5:14: U+0000 NUL cannot stand here"},
		{"NUL in a value", `"kiosk-1"`, "\x00", "x.toml:5:8: U+0000 NUL cannot stand here"},
		{"Ctrl-Z in the middle", "name", "\x1aname", "x.toml:5:1: U+001A Ctrl-Z cannot stand here"},
		{"mark inside a line", "name =", "name \uFEFF=", "x.toml:5:6: U+FEFF BYTE ORDER MARK cannot stand here"},
		{"after characters beyond ASCII", `"ils.example.org:6001"`, `"ils.example.org:6001" ü`, "x.toml:2:34: U+00FC 'ü' cannot stand here"},
		{"line end in text", "kiosk-1", "kiosk\r1", "x.toml:5:8: the text is not closed with \""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := strings.Replace(rightFile, tt.old, tt.new, 1)
			if data == rightFile {
				t.Fatal("nothing replaced")
			}
			c, problems := Load("x.toml", []byte(data))
			if got := outcome(c, problems); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got:\n%s\nwant it to begin with:\n%s", got, tt.want)
			}
		})
	}
}

// TestSameDevice is C-074 and C-098: one device by two paths.
func TestSameDevice(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "sip2gate")
	if err != nil {
		t.Skipf("no folder below /dev that can be written: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // in memory
	link := filepath.ToSlash(filepath.Join(dir, "by-id"))
	device := filepath.ToSlash(filepath.Join(dir, "ttyUSB0"))
	if err := os.WriteFile(device, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(device, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	data := fmt.Sprintf("[ils]\naddress = \"ils.example.org:6001\"\n[[station]]\nname = \"a\"\nserial = %q\n[[station]]\nname = \"b\"\nserial = %q\n", device, link)
	c, problems := Load("x.toml", []byte(data))
	want := "x.toml:8:10: station \"b\" is on the same device as station \"a\", see x.toml:5:10\n    each station has its own serial\n"
	if got := outcome(c, problems); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestUnreadableFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sip2gate.toml")
	check := func(want string) {
		t.Helper()
		c, problems := ReadFile(path)
		if got := strings.ReplaceAll(outcome(c, problems), path, "FILE"); c != nil || !strings.HasPrefix(got, want) {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	}
	check("FILE: cannot be read: no such file or directory\n")
	if err := os.WriteFile(path+".txt", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	check("FILE: cannot be read: no such file or directory\n    there is FILE.txt: the editor has added .txt; rename it\n")
	if err := os.WriteFile(path, bytes.Repeat([]byte("#"), maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	check("FILE: cannot be read: it is larger than 1 MiB")
}

// TestEveryKey makes sure that each key of the file reaches its own place: all
// of good-full.toml differs from the defaults.
func TestEveryKey(t *testing.T) {
	c, problems := ReadFile("testdata/good-full.toml")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	net := func(s string) netip.Prefix { return netip.MustParsePrefix(s) }
	serial, pool, moxa := defaultStation(), defaultStation(), defaultStation()
	serial.Name, serial.Serial, serial.Baud = "serial-1", "/dev/null", 19200
	serial.DataBits, serial.Parity, serial.StopBits, serial.Flow = 7, "even", 2, "rtscts"
	serial.Timeout, serial.Retries, serial.Delimiter, serial.Charset, serial.Terminator = 20*time.Second, 3, '^', "cp850", "cr"
	pool.Name, pool.Listen, pool.MaxConnections = "pool", "127.0.0.1:6001", 4
	pool.Allow = []netip.Prefix{net("10.1.2.0/24"), net("192.0.2.7/32")}
	moxa.Name, moxa.Dial = "moxa", "moxa.example.org:4001"
	want := &Config{
		Gate: Gate{Mode: "enforce", Window: 3 * time.Minute, Sequence: "match", Checksum: "strict", StateDir: "/var/lib/sip2gate",
			SecretFile: filepath.Join("testdata", "secret-of-the-branch"), Store: "bolt", DoubtRetention: 400 * time.Hour},
		ILS: ILS{Address: "[2001:db8::1]:6002", Timeout: 8 * time.Second, Settle: 45 * time.Second, WANDown: "close", Resolve: []string{},
			TLS: true, CAFile: filepath.Join("testdata", "ca.pem"), ServerName: "ils.example.org", LoginUser: "gate",
			LoginPasswordFile: filepath.Join("testdata", "password.txt"), Location: "MAIN", Terminator: "crlf"},
		Stations: []Station{serial, pool, moxa},
		Messages: Messages{Down: "Ask staff: down", Doubt: "Ask staff: doubt", Conflict: "Ask staff: conflict", Lent: "On loan"},
		Status:   defaults().Status,
		Log:      Log{Level: "debug", Format: "text"},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	if password, err := c.ILS.LoginPassword(); password != "secret" || err != nil {
		t.Errorf("password %q, %v", password, err)
	}
}

func TestDefaults(t *testing.T) {
	c, problems := Load("/etc/sip2gate/sip2gate.toml", []byte(rightFile))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := defaults()
	want.Gate.StateDir, want.Gate.SecretFile = "/etc/sip2gate/state", "/etc/sip2gate/state/secret"
	want.ILS.Address = "ils.example.org:6001"
	station := defaultStation()
	station.Name, station.Listen = "kiosk-1", ":6001"
	want.Stations = []Station{station}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	if got := c.Stations[0].Horizon(); got != 45*time.Second {
		t.Errorf("horizon %v", got)
	}
}

// FuzzLoad holds that no file makes Load panic, that every problem has a place
// inside the file, and that what Load takes is TOML with the same values for
// the library as well.
func FuzzLoad(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.toml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("\xFF\xFE[\x00"))
	f.Add([]byte("a = \"\"\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		text := lines(data)
		c, problems := Load("x.toml", data)
		if (c == nil) != Failed(problems) {
			t.Fatalf("config %v with problems %v", c, problems)
		}
		for i, p := range problems {
			if p.Line < 1 || p.Line > len(text) || p.Col < 1 || p.Col > len(text[p.Line-1])+1 {
				t.Errorf("no such place: %v", p)
			}
			if i > 0 && p.Line < problems[i-1].Line {
				t.Errorf("out of order: %v", problems)
			}
			if p.Text == "" || strings.ContainsAny(p.Text+p.Hint, "\r\n") {
				t.Errorf("not one line: %q %q", p.Text, p.Hint)
			}
		}
		if c == nil || !utf8.Valid(data) {
			return
		}
		var m map[string]any
		if _, err := toml.Decode(string(data), &m); err != nil {
			return // what an editor left and was read as meant
		}
		if all, ok := m["station"].([]map[string]any); ok && len(all) != len(c.Stations) {
			t.Errorf("%d stations, the library sees %d", len(c.Stations), len(all))
		}
		if gate, ok := m["gate"].(map[string]any); ok {
			if s, ok := gate["window"].(string); ok {
				if d, err := time.ParseDuration(s); err != nil || d != c.Gate.Window {
					t.Errorf("window %v, the library sees %q", c.Gate.Window, s)
				}
			}
		}
	})
}
