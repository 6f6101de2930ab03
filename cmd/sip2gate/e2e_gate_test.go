package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sip2gate/serialbridge/sim"
)

// The e2e tests drive the program from outside: as a process, over sockets and
// serial lines, with kill -9. The test binary is the program when this is set,
// so that the race detector sees what the program does.
const envProgram = "SIP2GATE_TEST_PROGRAM"

// patience bounds waits that end at once when all is well.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(envProgram) != "" {
		main()
		return
	}
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		// The e2e tests mostly wait for a clock: more of them than there are
		// processors may do so side by side.
		if err := flag.Set("test.parallel", "16"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// setup is a settings file in parts.
type setup struct {
	ils      string   // host:port
	gate     string   // further lines of [gate]
	link     string   // further lines of [ils]
	log      string   // lines of [log]; empty: level debug
	stations []string // the lines of each station but its name: kiosk-1, kiosk-2, ...
}

func (s setup) toml(status string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[gate]\n%s\n[ils]\naddress = %q\n%s\n", s.gate, s.ils, s.link)
	for i, lines := range s.stations {
		fmt.Fprintf(&b, "[[station]]\nname = \"kiosk-%d\"\n%s\n", i+1, lines)
	}
	fmt.Fprintf(&b, "[status]\nlisten = %q\n[log]\n%s\n", status, cmp.Or(s.log, `level = "debug"`))
	return b.String()
}

// gateProcess is one gate in a folder of its own, over any number of runs.
type gateProcess struct {
	t       *testing.T
	dir     string
	file    string
	log     *processLog
	cmd     *exec.Cmd     // nil while it does not run
	ended   chan struct{} // closed when cmd has ended
	begun   int           // the log's length when it was started
	crashed bool          // it was made to crash: its last words are no fault
	env     []string
	count   int // of stations
}

// newGate writes the settings and starts nothing. When the test ends, the gate
// is stopped, and whatever it left behind is searched for patrons.
func newGate(t *testing.T, s setup) *gateProcess {
	t.Helper()
	dir := t.TempDir()
	g := &gateProcess{t: t, dir: dir, file: filepath.Join(dir, "gate.toml"), log: newProcessLog(), count: len(s.stations)}
	g.write(s.toml(freePort(t)))
	t.Cleanup(g.finish)
	return g
}

// startGate writes the settings and waits until all stations are up.
func startGate(t *testing.T, s setup) *gateProcess {
	t.Helper()
	g := newGate(t, s)
	g.start()
	return g
}

func (g *gateProcess) write(toml string) {
	g.t.Helper()
	if err := os.WriteFile(g.file, []byte(toml), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// launch starts the process and waits for nothing.
func (g *gateProcess) launch() {
	g.t.Helper()
	g.begun = g.log.len()
	g.cmd = program(g.t, "run", g.file)
	g.cmd.Env = append(g.cmd.Env, g.env...)
	g.cmd.Stdout, g.cmd.Stderr = g.log, g.log
	if err := g.cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	ended, cmd := make(chan struct{}), g.cmd
	g.ended = ended
	go func() { // ends with the process
		_ = cmd.Wait() // ProcessState tells more
		g.log.wake()
		close(ended)
	}()
}

// start starts the gate and waits until all its stations are up.
func (g *gateProcess) start() {
	g.t.Helper()
	g.launch()
	g.event("gate_started")
	for i := range g.count {
		g.up(i + 1)
	}
}

// up waits until a station has been up since the start.
func (g *gateProcess) up(station int) {
	g.t.Helper()
	g.event("station_up", "station", fmt.Sprintf("kiosk-%d", station))
}

// event waits for an event of this run, with the given fields.
func (g *gateProcess) event(name string, fields ...any) event {
	g.t.Helper()
	return g.eventAfter(g.begun, name, fields...)
}

// eventAfter waits for an event that comes after a point of the log.
func (g *gateProcess) eventAfter(mark int, name string, fields ...any) event {
	g.t.Helper()
	e, ok := g.log.await(mark, patience, name, fields...)
	if !ok {
		g.t.Fatalf("no event %s %v in the log after line %d:\n%s", name, fields, mark, g.log)
	}
	return e
}

// eitherEvent waits for the first event of one of two names in this run.
func (g *gateProcess) eitherEvent(a, b string) {
	g.t.Helper()
	if !g.log.awaitAny(patience, func() bool {
		return len(g.log.events(g.begun, a))+len(g.log.events(g.begun, b)) > 0
	}) {
		g.t.Fatalf("neither %s nor %s in the log:\n%s", a, b, g.log)
	}
}

// kill is kill -9.
func (g *gateProcess) kill() {
	g.t.Helper()
	if err := g.cmd.Process.Kill(); err != nil {
		g.t.Fatal(err)
	}
	<-g.ended
	g.cmd = nil
}

// terminate asks the gate to end and returns without waiting.
func (g *gateProcess) terminate() {
	g.t.Helper()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		g.t.Fatal(err)
	}
}

// exit waits for the end and returns the exit code.
func (g *gateProcess) exit(limit time.Duration) int {
	g.t.Helper()
	select {
	case <-g.ended:
	case <-time.After(limit):
		g.t.Errorf("the gate has not ended within %v:\n%s", limit, g.log)
		_ = g.cmd.Process.Kill()
		<-g.ended
	}
	code := g.cmd.ProcessState.ExitCode()
	g.cmd = nil
	return code
}

// stop ends the gate in order.
func (g *gateProcess) stop() {
	g.t.Helper()
	g.terminate()
	if code := g.exit(patience); code != exitOK {
		g.t.Errorf("exit code %d after SIGTERM:\n%s", code, g.log)
	}
}

// restart is kill -9 and a new start.
func (g *gateProcess) restart() {
	g.t.Helper()
	g.kill()
	g.start()
}

func (g *gateProcess) pid() int { return g.cmd.Process.Pid }

// finish stops the gate and looks at what it leaves.
func (g *gateProcess) finish() {
	if g.cmd != nil {
		g.stop()
	}
	said := g.log.String()
	if !g.crashed {
		for _, bad := range []string{"DATA RACE", "panic:", "fatal error:"} {
			if strings.Contains(said, bad) {
				g.t.Errorf("the gate said %q:\n%s", bad, said)
			}
		}
	}
	g.noPatron()
	if g.t.Failed() {
		g.t.Logf("log of the gate:\n%s", said)
	}
}

// state is the folder with the store.
func (g *gateProcess) state() string { return filepath.Join(g.dir, "state") }

// program is the built binary with arguments, not started.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	// The race detector would wait a second at each exit.
	cmd.Env = append(os.Environ(), envProgram+"=1", "GORACE=atexit_sleep_ms=0")
	return cmd
}

// ports are those given out in this run.
var ports = struct {
	sync.Mutex
	given map[int]bool
}{given: map[int]bool{}}

// freePort is a loopback address that nobody listens on. It lies outside the
// range from which systems choose ports of outgoing connections, so that none
// of those takes it before the gate does.
func freePort(t *testing.T) string {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	for range 1000 {
		n := 12000 + rand.N(20000)
		addr := fmt.Sprintf("127.0.0.1:%d", n)
		if ports.given[n] {
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		l.Close()
		ports.given[n] = true
		return addr
	}
	t.Fatal("there is no free port")
	return ""
}

// listen is a station on a TCP port.
func listen(addr string, more ...string) string {
	return fmt.Sprintf("listen = %q\n%s", addr, strings.Join(more, "\n"))
}

// startILS starts a library system for the length of the test.
func startILS(t *testing.T, o sim.Options) *sim.ILS {
	t.Helper()
	ils, err := sim.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ils.Close() })
	return ils
}

// waitILS waits until the library system has seen something.
func waitILS(t *testing.T, ils *sim.ILS, what string, ok func(sim.Snapshot) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("it took too long"))
	defer cancel()
	if err := ils.WaitFor(ctx, ok); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// fault sets a fault at the library system.
func fault(t *testing.T, ils *sim.ILS, f sim.Fault) {
	t.Helper()
	if err := ils.Fault(f); err != nil {
		t.Fatal(err)
	}
}

// clearFaults ends all faults.
func clearFaults(t *testing.T, ils *sim.ILS) {
	t.Helper()
	if err := ils.ClearFaults(); err != nil {
		t.Fatal(err)
	}
}

// count is what the library system made of an item.
type count struct{ checkouts, loans, renewals, open int }

// oneLoan is what every repeated checkout must lead to.
var oneLoan = count{checkouts: 1, loans: 1, open: 1}

func wantCount(t *testing.T, ils *sim.ILS, item string, want count) {
	t.Helper()
	got := count{ils.Checkouts(item), ils.Loans(item), ils.Renewals(item), ils.OpenLoans(item)}
	if got != want {
		t.Errorf("item %s at the ILS: %+v, want %+v", item, got, want)
	}
}
