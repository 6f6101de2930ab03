package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sip2gate/serialbridge/sim"
)

// simRun is ils-sim at work.
type simRun struct {
	addr     string
	in       io.Writer
	out, err *bufio.Reader
	code     <-chan int
}

// runSim starts ils-sim on a free port. It has ended when the test has.
func runSim(t *testing.T, args ...string) *simRun {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	errR, errW := io.Pipe()
	code, over := make(chan int, 1), make(chan struct{})
	go func() { // waited for in Cleanup
		defer close(over)
		c := runILSSim(ctx, &terminal{in: inR, out: outW, err: errW, command: command{name: "ils-sim"}},
			append([]string{"--listen", "127.0.0.1:0"}, args...))
		outW.Close()
		errW.Close()
		code <- c
	}()
	t.Cleanup(func() {
		cancel()
		inW.Close()
		outR.Close()
		errR.Close()
		<-over
	})
	s := &simRun{in: inW, out: bufio.NewReader(outR), err: bufio.NewReader(errR), code: code}
	_, rest, ok := strings.Cut(s.line(t, s.err), "listening on ")
	if !ok {
		t.Fatal("it does not say where it listens")
	}
	s.addr, _, _ = strings.Cut(rest, ";")
	return s
}

func (s *simRun) line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("after %q: %v", line, err)
	}
	return line
}

// say types a line and returns the first line of the answer.
func (s *simRun) say(t *testing.T, line string) string {
	t.Helper()
	s.tell(t, line)
	return s.line(t, s.out)
}

func (s *simRun) tell(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (s *simRun) kiosk(t *testing.T) *sim.Kiosk {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return sim.NewKiosk(conn, sim.KioskOptions{ErrorDetection: true})
}

func lend(t *testing.T, k *sim.Kiosk, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	m, err := k.Checkout(ctx, "21234000000011", "31234000000022", sim.CheckoutOptions{PIN: "4711"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(m.Raw), want) {
		t.Fatalf("answer %q, want %s", m.Raw, want)
	}
}

func TestILSSimIsRuledWhileItRuns(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "loans.jsonl")
	s := runSim(t, "--journal", journal, "--fault", "resend:11:1")
	k := s.kiosk(t)
	lend(t, k, "96")
	if got := s.say(t, "loans"); !strings.HasPrefix(got, "item ") {
		t.Errorf("loans begins with %q", got)
	}
	if got := s.line(t, s.out); strings.Join(strings.Fields(got), " ") != "31234000000022 1 0 0 0 0 -" {
		t.Errorf("before the loan: %q", got)
	}
	lend(t, k, "121N")
	lend(t, k, "121N")
	s.say(t, "loans")
	if got := s.line(t, s.out); !strings.Contains(got, "LENT TWICE") {
		t.Errorf("the incident is not marked: %q", got)
	}
	if got := s.say(t, "desk-checkin 31234000000022"); got != "checked in 31234000000022\n" {
		t.Errorf("the desk says %q", got)
	}
	if got := s.say(t, "fault status 11"); got != "set status:11\n" {
		t.Errorf("fault says %q", got)
	}
	lend(t, k, "98")
	if got := s.say(t, "faults"); got != "set status:11\n" {
		t.Errorf("faults says %q", got)
	}
	if got := s.line(t, s.out); !strings.Contains(got, "black-hole") {
		t.Errorf("faults names %q", got)
	}
	if got := s.say(t, "help"); !strings.HasPrefix(got, "fault KIND") {
		t.Errorf("help begins with %q", got)
	}
	for line := ""; !strings.HasPrefix(line, "quit"); {
		line = s.line(t, s.out)
	}
	for line := ""; !strings.HasPrefix(line, "  refuse"); {
		if line = s.line(t, s.out); strings.Contains(line, "not described") {
			t.Errorf("help says %q", line)
		}
	}
	if got := s.say(t, "clear"); !strings.Contains(got, "all faults are ended") {
		t.Errorf("clear says %q", got)
	}
	if got := s.say(t, "clear"); got != "no fault was set\n" {
		t.Errorf("clear says %q when there is none", got)
	}
	s.tell(t, "lend \x1b[2J 21234000000029")
	s.say(t, "loans")
	if got := s.line(t, s.out); !strings.HasPrefix(got, `\x1b[2J `) {
		t.Errorf("a control character reaches the screen: %q", got)
	}
	s.line(t, s.out) // the other item
	s.tell(t, "lend 39 21234000000029")
	s.say(t, "desk-checkin 39")
	lend(t, k, "121N")
	s.tell(t, "quit")
	if code := <-s.code; code != exitOK {
		t.Errorf("quit ended it with %d", code)
	}
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), `"event":"loan"`); n != 5 {
		t.Errorf("the journal has %d loans", n)
	}
	for _, secret := range []string{"21234000000011", "21234000000029", "4711"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the journal names %s", secret)
		}
	}
}

func TestILSSimSaysWhatIsWrongWithALine(t *testing.T) {
	s := runSim(t)
	if got := s.say(t, "loans"); !strings.Contains(got, "nothing") {
		t.Errorf("loans says %q", got)
	}
	for line, want := range map[string]string{
		"fault loss 11":   "unknown fault",
		"fault late 11":   "add a delay",
		"fault":           "fault KIND",
		"desk-checkin 31": "not on loan",
		"desk-checkin":    "desk-checkin ITEM",
		"hang-up softly":  "reset",
		"lone":            "unknown command",
	} {
		s.tell(t, line)
		if got := s.line(t, s.err); !strings.Contains(got, want) {
			t.Errorf("%s: %q does not say %q", line, got, want)
		}
		if got := s.line(t, s.err); !strings.Contains(got, "help") {
			t.Errorf("%s: the hint is %q", line, got)
		}
	}
}

func TestILSSimPersonasAndSwitches(t *testing.T) {
	s := runSim(t, "--persona", "Koha", "--terminator", "cr", "--no-reads", "--check-az", "--error-detection", "mirror", "--account", "kiosk1:s3cret")
	k := s.kiosk(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if m, err := k.Login(ctx, "kiosk1", "s3cret", ""); err != nil || string(m.Raw[:3]) != "941" {
		t.Fatalf("login: %q, %v", m.Raw, err)
	}
	lend(t, k, "121N")
	lend(t, k, "121Y")
	if m, err := k.ItemInformation(ctx, "31234000000022"); err != nil || string(m.Raw) != "96AZFEF6" {
		t.Errorf("a read was answered %q, %v", m.Raw, err)
	}
	s.tell(t, "hang-up")
	if frame, err := k.Read(ctx); err == nil {
		t.Errorf("got %q after hanging up", frame)
	}
}

func TestILSSimEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, words strings.Builder
	code := runILSSim(ctx, &terminal{in: strings.NewReader(""), out: &out, err: &words}, []string{"--listen", "127.0.0.1:0"})
	if code != exitOK {
		t.Errorf("code %d: %s", code, words.String())
	}
}

func TestILSSimRefusesBadCommandLines(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--persona", "alma"}, exitUsage, "naive, rero or sierra"},
		{[]string{"--fault", "lost"}, exitUsage, "lost:11"},
		{[]string{"--terminator", "nul"}, exitUsage, "cr, crlf or lf"},
		{[]string{"--error-detection", "maybe"}, exitUsage, "mirror, on or off"},
		{[]string{"--account", "kiosk1"}, exitUsage, "USER:PASSWORD"},
		{[]string{"stray"}, exitUsage, "arguments"},
		{[]string{"--listen", taken.Addr().String()}, exitUnwell, "choose another"},
		{[]string{"--listen", "6001"}, exitUnwell, "such as 127.0.0.1:6001"},
		{[]string{"--listen", "192.0.2.1:6001"}, exitUnwell, "no such address"},
		{[]string{"--listen", "127.0.0.1:70000"}, exitUnwell, "such as 127.0.0.1:6001"},
		{[]string{"--journal", filepath.Join(t.TempDir(), "none", "x")}, exitUnwell, "directory"},
	} {
		var out, words strings.Builder
		code := runILSSim(t.Context(), &terminal{in: strings.NewReader(""), out: &out, err: &words}, c.args)
		if code != c.code || !strings.Contains(words.String(), c.says) {
			t.Errorf("%q: code %d, want %d; says %q, want %q", c.args, code, c.code, words.String(), c.says)
		}
	}
}
