package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sip2gate/serialbridge/port"
)

// call runs the program as a user would and gives its exit code and what it
// wrote.
func call(t *testing.T, stdin string, args ...string) (code int, out, words string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(stdin), &o, &e)
	return code, o.String(), e.String()
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		args  []string
		code  int
		out   string // in stdout; empty: nothing there
		words string // in stderr; empty: nothing there
	}{
		{nil, exitUsage, "", "usage: sip2gate COMMAND"},
		{[]string{"help"}, exitOK, "check FILE", ""},
		{[]string{"--help"}, exitOK, "check FILE", ""},
		{[]string{"help", "check"}, exitOK, "usage: sip2gate check [--json] FILE\n", ""},
		{[]string{"check", "-h"}, exitOK, "usage: sip2gate check [--json] FILE\n", ""},
		{[]string{"help", "chekc"}, exitUsage, "", `there is no command "chekc"`},
		{[]string{"chekc"}, exitUsage, "", "sip2gate: there is no command \"chekc\"\n    sip2gate help lists the commands\n"},
		{[]string{"check"}, exitUsage, "", "sip2gate check: wrong number of arguments\n"},
		{[]string{"check", "a", "b"}, exitUsage, "", "wrong number of arguments"},
		{[]string{"check", "a", "--jsno"}, exitUsage, "", "flag provided but not defined: -jsno"},
		{[]string{"version", "x"}, exitUsage, "", "wrong number of arguments"},
		{[]string{"ports", "x"}, exitUsage, "", "wrong number of arguments"},
		{[]string{"decode", "--delimiter", "", "941"}, exitUsage, "", "is not one character"},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			code, out, words := call(t, "", tt.args...)
			if code != tt.code || !strings.Contains(out, tt.out) || !strings.Contains(words, tt.words) ||
				(out == "") != (tt.out == "") || (words == "") != (tt.words == "") {
				t.Errorf("code %d\nout: %s\nerr: %s", code, out, words)
			}
		})
	}
}

// TestHelpOfEveryCommand calls each as help does: a command that does not know
// --help would start working instead.
func TestHelpOfEveryCommand(t *testing.T) {
	for _, c := range commands() {
		code, out, words := call(t, "", "help", c.name)
		if want := "usage: sip2gate " + c.name; code != exitOK || !strings.HasPrefix(out, want) || words != "" {
			t.Errorf("%s: code %d\nout: %s\nerr: %s", c.name, code, out, words)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, word := range []string{"version", "--version", "-version", "-v"} {
		code, out, _ := call(t, "", word)
		if code != exitOK || !strings.HasPrefix(out, "sip2gate ") || !strings.Contains(out, " go1.") {
			t.Errorf("%s: code %d: %s", word, code, out)
		}
	}
	code, out, _ := call(t, "", "version", "--json")
	var b build
	if err := json.Unmarshal([]byte(out), &b); code != exitOK || err != nil || b.Go == "" || b.OS == "" || b.Version == "" {
		t.Errorf("code %d, %v: %s", code, err, out)
	}
}

// TestSamples holds that what a technician starts from is right, and gives no
// warning but that the adapter of the sample is not here.
func TestSamples(t *testing.T) {
	files, err := filepath.Glob("../../firmware/samples/*.toml")
	if err != nil || len(files) < 2 {
		t.Fatalf("samples: %v, %v", files, err)
	}
	for _, file := range files {
		code, out, words := call(t, "", "check", file)
		rest := ""
		for line := range strings.Lines(out) {
			if !strings.Contains(line, "warning: there is no /dev/serial/by-id/") && !strings.HasPrefix(line, "    plug the adapter in;") {
				rest += line
			}
		}
		if code != exitOK || !strings.HasPrefix(rest, file+": ok: ") || strings.Count(rest, "\n") != 1 || words != "" {
			t.Errorf("%s: code %d\n%s%s", file, code, out, words)
		}
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const good = "[ils]\naddress = \"ils.example.org:6001\"\n[[station]]\nname = \"k\"\nlisten = \":6001\"\n"
	fine := file("good.toml", good)
	idle := file("idle.toml", good+"baud = 9600\nretries = 9\n")
	bad := file("bad.toml", good+"bau = 9600\n[gate]\nwindow = \"0s\"\n")

	code, out, words := call(t, "", "check", fine)
	if want := fine + ": ok: ILS ils.example.org:6001, TLS off, window 90s, sequence ignore, 1 station\n"; code != exitOK || out != want || words != "" {
		t.Errorf("code %d\n%s%s", code, out, words)
	}
	code, out, _ = call(t, "", "check", idle)
	if code != exitOK || !strings.Contains(out, idle+":6:1: warning: baud has no effect") || !strings.HasSuffix(out, "1 station, 2 warnings\n") {
		t.Errorf("code %d\n%s", code, out)
	}
	code, out, words = call(t, "", "check", bad)
	if want := bad + ":6:1: unknown key \"bau\" in [[station]]\n    did you mean \"baud\"?\n" +
		bad + ":8:10: window: \"0s\" is out of range: 1s to 24h\n"; code != exitUnwell || out != want || words != "" {
		t.Errorf("code %d\n%s%s", code, out, words)
	}
	code, out, _ = call(t, "", "check", filepath.Join(dir, "none.toml"))
	if code != exitUnwell || !strings.Contains(out, "none.toml: cannot be read: ") {
		t.Errorf("code %d\n%s", code, out)
	}

	var report struct {
		OK       bool
		Summary  string
		Problems []struct {
			Line, Col int
			Text      string
			Warning   bool
		}
	}
	code, out, _ = call(t, "", "check", bad, "--json") // a flag may come last
	if err := json.Unmarshal([]byte(out), &report); code != exitUnwell || err != nil || report.OK ||
		len(report.Problems) != 2 || report.Problems[1].Line != 8 || report.Problems[1].Col != 10 {
		t.Errorf("code %d, %v: %s", code, err, out)
	}
	code, out, _ = call(t, "", "check", "--json", fine)
	if code != exitOK || !strings.Contains(out, `"ok":true`) || !strings.Contains(out, `"problems":[]`) {
		t.Errorf("code %d: %s", code, out)
	}
}

func TestPorts(t *testing.T) {
	found := []port.Info{
		{Path: "/dev/serial/by-id/usb-FTDI-if00", Device: "/dev/ttyUSB0", What: "FTDI FT232R", ByID: "/dev/serial/by-id/usb-FTDI-if00"},
		{Path: "/dev/serial/by-path/platform-1", Device: "/dev/ttyUSB1", What: "CH340", ByPath: "/dev/serial/by-path/platform-1", Ambiguous: true},
		{Path: "/dev/ttyAMA0", Device: "/dev/ttyAMA0", What: "serial port"},
	}
	for _, tt := range []struct {
		name  string
		args  []string
		ports []port.Info
		err   error
		code  int
		out   string
		words string
	}{
		{name: "table", ports: found, out: `serial = "/dev/serial/by-id/usb-FTDI-if00"  # FTDI FT232R, now /dev/ttyUSB0
serial = "/dev/serial/by-path/platform-1"   # CH340, now /dev/ttyUSB1; another adapter has the same name, so this is the socket
serial = "/dev/ttyAMA0"                     # serial port
`},
		{name: "json", args: []string{"--json"}, ports: found[2:], out: `[{"serial":"/dev/ttyAMA0","device":"/dev/ttyAMA0","what":"serial port"}]` + "\n"},
		{name: "none", words: "sip2gate ports: there is no serial port\n    plug the adapter in; dmesg tells whether the system has seen it\n"},
		{name: "none in json", args: []string{"--json"}, out: "[]\n"},
		{name: "not here", err: errors.ErrUnsupported, code: exitUnwell,
			words: "sip2gate ports: ports can be listed on Linux only\n    look them up in the system's device manager\n"},
		{name: "broken", err: errors.New("no sysfs"), code: exitUnwell, words: "sip2gate ports: list the serial ports: no sysfs\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, words bytes.Buffer
			term := &terminal{in: strings.NewReader(""), out: &out, err: &words, command: command{name: "ports"}}
			code := listPorts(term, tt.args, func() ([]port.Info, error) { return tt.ports, tt.err })
			if code != tt.code || out.String() != tt.out || words.String() != tt.words {
				t.Errorf("code %d\n%s%s", code, out.String(), words.String())
			}
		})
	}
}

// TestParse is the part of the command line that the flag package leaves to
// its caller: flags behind other arguments, and -- before what looks like one.
func TestParse(t *testing.T) {
	term := &terminal{out: io.Discard, err: io.Discard, command: command{name: "x"}}
	for _, tt := range []struct {
		args string
		rest string
		on   bool
	}{
		{"a b", "a b", false},
		{"--on a b", "a b", true},
		{"a --on b", "a b", true},
		{"a b --on", "a b", true},
		{"a -- --on b", "a --on b", false},
		{"-- -a", "-a", false},
		{"", "", false},
	} {
		f := term.flags()
		on := f.Bool("on", false, "")
		rest, code, ok := term.parse(f, strings.Fields(tt.args), 0, -1)
		if got := strings.Join(rest, " "); !ok || code != exitOK || got != tt.rest || *on != tt.on {
			t.Errorf("%q: %q, on %v, code %d", tt.args, got, *on, code)
		}
	}
}
