package serialbridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sip2gate/dedup"
	"sip2gate/dedup/memory"
	"sip2gate/serialbridge"
	"sip2gate/serialbridge/ils"
	"sip2gate/serialbridge/port"
	"sip2gate/serialbridge/sip2"
)

// A rig is a whole bridge in a synctest bubble, with a scripted ILS and two
// stations: S1 on a line, S2 on a listening port. Nothing of it sleeps for real.
type rig struct {
	t   *testing.T
	ils *mock
	log *logBuffer

	store  dedup.Store
	gate   *dedup.Gate
	bridge *serialbridge.Bridge
	lines  chan net.Conn // what S1's port opens next
	calls  chan net.Conn // who connects to S2
	cancel context.CancelFunc
	done   chan struct{}

	window     time.Duration
	settle     time.Duration
	ilsTimeout time.Duration
	match      bool
	amnesia    bool
	resolve    []string
	address    string
	edit       func(c *serialbridge.Config)
}

// bubble runs f with a rig that is started and stopped around it.
func bubble(t *testing.T, f func(t *testing.T, r *rig), setup ...func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{
			t: t, log: &logBuffer{}, ils: newMock(t),
			store:  memory.New("a test"),
			window: 90 * time.Second, settle: 30 * time.Second, ilsTimeout: 10 * time.Second,
			resolve: []string{"63", "17"}, address: "ils:6001",
		}
		for _, s := range setup {
			s(r)
		}
		r.start()
		defer r.log.noPatron(t)
		defer func() { // after a t.Fatal too: a bubble ends with all that runs in it
			r.stop()
			r.ils.serving.Wait()
		}()
		f(t, r)
	})
}

var testSecret = []byte("unit-test-secret-not-for-prod-32")

func (r *rig) start() {
	r.t.Helper()
	log := slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r.lines, r.calls = make(chan net.Conn), make(chan net.Conn)
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.done = cancel, make(chan struct{})
	target := dedup.NewKeyer(testSecret, false).Digest("ils:", []byte(r.address))
	gate, err := dedup.New(ctx, dedup.Options{
		Store: r.store, Clock: bubbleClock{}, Secret: testSecret, Match: r.match, Amnesia: r.amnesia,
		Window: r.window, Settle: r.settle, ILSTimeout: r.ilsTimeout, Target: target,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.gate = gate
	srv := ils.NewServer(ils.Config{
		Address: r.address, Timeout: r.ilsTimeout, Resolve: r.resolve, DialContext: r.ils.dial, Logger: log,
	})
	messages := serialbridge.Messages{
		Down: []byte("cannot be reached"), Doubt: []byte("could not be confirmed, please ask staff"),
		Conflict: []byte("differs from one just made"), Lent: []byte("Already on loan to you"),
	}
	cfg := serialbridge.Config{
		WANDown: serialbridge.Answer, Checksum: serialbridge.ChecksumAuto, Target: target, Logger: log,
		Stations: []serialbridge.Station{
			{Name: "S1", Open: r.open, Timeout: 15 * time.Second, Retries: 2, Messages: messages},
			{Name: "S2", Listen: func() (serialbridge.Listener, error) { return &fakeListener{r: r, closed: make(chan struct{})}, nil },
				Timeout: 15 * time.Second, Retries: 2, Messages: messages},
		},
	}
	if r.edit != nil {
		r.edit(&cfg)
	}
	b := serialbridge.New(cfg, gate, srv)
	r.bridge = b
	done := r.done
	go func() {
		defer close(done)
		_ = b.Run(ctx)
	}()
}

// stop ends the bridge and waits for it. The store stays as it is.
func (r *rig) stop() {
	r.cancel()
	<-r.done
	r.ils.hangUp()
}

// restart is a clean stop and a start on the same store.
func (r *rig) restart() {
	r.stop()
	r.start()
}

func (r *rig) open(ctx context.Context) (port.Conn, error) {
	select {
	case c := <-r.lines:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serial plugs a kiosk into S1's line. It fails if the line is not waited for.
func (r *rig) serial() *kiosk {
	here, there := net.Pipe()
	select {
	case r.lines <- there:
	case <-time.After(time.Minute):
		r.t.Fatal("S1's port was not opened again within a minute")
	}
	return r.kiosk(here)
}

// connect is a kiosk that connects to S2 from an address.
func (r *rig) connect(ip string) *kiosk {
	here, there := net.Pipe()
	r.calls <- &addressed{Conn: there, remote: &net.TCPAddr{IP: net.ParseIP(ip), Port: 40000}}
	return r.kiosk(here)
}

// after waits for injected time to pass.
func after(d time.Duration) { <-time.After(d) }

// bubbleClock is gate time from the bubble's own clock.
type bubbleClock struct{}

var bubbleStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (bubbleClock) Now() time.Duration { return time.Since(bubbleStart) }

type addressed struct {
	net.Conn
	remote net.Addr
}

func (a *addressed) RemoteAddr() net.Addr { return a.remote }

type fakeListener struct {
	r      *rig
	once   sync.Once
	closed chan struct{}
}

func (l *fakeListener) Accept(ctx context.Context) (net.Conn, error) {
	select {
	case c := <-l.r.calls:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *fakeListener) Addr() net.Addr { return &net.TCPAddr{} }
func (l *fakeListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }

// logBuffer keeps the log.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// events are the log lines of one name.
func (l *logBuffer) events(name string) []map[string]any {
	var out []map[string]any
	for line := range strings.Lines(l.String()) {
		var e map[string]any
		if json.Unmarshal([]byte(line), &e) == nil && e["msg"] == name {
			out = append(out, e)
		}
	}
	return out
}

var logTimes = regexp.MustCompile(`"time":"[^"]*"`)

// noPatron fails if the log shows who borrowed what.
func (l *logBuffer) noPatron(t *testing.T) {
	t.Helper()
	log := logTimes.ReplaceAllString(l.String(), "") // a time can have any digits
	for _, secret := range []string{"21234000000011", "21234000000029", "4711", "4712", "s3cret", "The Long Rain", "Reader One"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log shows %q:\n%s", secret, l)
		}
	}
}

// caseFrames are the frames that the cases name.
var caseFrames = sync.OnceValue(func() map[string]string {
	data, err := os.ReadFile("sip2/testdata/cases-frames.txt")
	if err != nil {
		panic(err)
	}
	frames := make(map[string]string)
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if name, rest, ok := strings.Cut(line, " "); ok && !strings.HasPrefix(line, "#") {
			frames[name] = unescape(strings.TrimLeft(rest, " "))
		}
	}
	return frames
})

func unescape(s string) string {
	if before, rest, ok := strings.Cut(s, "{"); ok {
		inner, tail, _ := strings.Cut(rest, "}")
		c, n, _ := strings.Cut(inner, "*")
		count, _ := strconv.Atoi(n)
		s = before + strings.Repeat(c, count) + tail
	}
	quoted := strings.ReplaceAll(s, `"`, `\"`)
	out, err := strconv.Unquote(`"` + quoted + `"`)
	if err != nil {
		panic(fmt.Sprintf("frame %q: %v", s, err))
	}
	return out
}

// frameOf is a frame by its name, or the bytes themselves.
func frameOf(t testing.TB, name string) []byte {
	t.Helper()
	if f, ok := caseFrames()[name]; ok {
		return []byte(f)
	}
	if len(name) > 2 && (name[0] >= '0' && name[0] <= '9' || slices.Contains([]byte{'\r', '\n', 0xFF, ' ', 'X'}, name[0])) {
		return []byte(name)
	}
	t.Fatalf("no frame is called %q", name)
	return nil
}

// edited is a frame with a text replaced, and its checksum made right again.
func edited(t testing.TB, frame, from, to string) string {
	t.Helper()
	f := strings.TrimSuffix(string(frameOf(t, frame)), "\r")
	if !strings.Contains(f, from) {
		t.Fatalf("frame %s does not contain %q", frame, from)
	}
	f = strings.ReplaceAll(f, from, to)
	tr := sip2.ReadTrailer([]byte(f))
	if !tr.Present {
		return f + "\r"
	}
	return string(sip2.AppendTrailer([]byte(f[:tr.Start]), tr.HasSeq, tr.Seq)) + "\r"
}

// withoutTrailer is a frame of a kiosk without error detection.
func withoutTrailer(t testing.TB, frame string) string {
	t.Helper()
	f := bytes.TrimSuffix(frameOf(t, frame), []byte("\r"))
	return string(sip2.Body(f, sip2.ReadTrailer(f))) + "\r"
}
