package serialbridge_test

import (
	"net"
	"strings"
	"sync"
	"time"

	"sip2gate/serialbridge/sip2"
)

// loggedIn sends LOGIN and takes the answer.
func (k *kiosk) loggedIn() *kiosk {
	k.r.t.Helper()
	k.send("LOGIN")
	k.expect("R-LOGIN-Y", time.Second)
	return k
}

type kiosk struct {
	r    *rig
	conn net.Conn
	got  chan string // whole frames with their terminator

	mu     sync.Mutex
	end    string // how it ends its frames: "\r", or "\r\n"
	stream []byte // all that it was sent
}

// endingIn makes a kiosk that ends its frames in another way, and wants the
// answers so. It is called before the first frame.
func (k *kiosk) endingIn(end string) *kiosk {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.end = end
	return k
}

// heard is every byte that the kiosk was sent.
func (k *kiosk) heard() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return string(k.stream)
}

// took notes a byte, and reports whether it ends a frame.
func (k *kiosk) took(b byte) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stream = append(k.stream, b)
	return strings.HasSuffix(string(k.stream[max(0, len(k.stream)-2):]), k.end)
}

func (r *rig) kiosk(conn net.Conn) *kiosk {
	k := &kiosk{r: r, conn: conn, got: make(chan string, 100), end: "\r"}
	go func() {
		defer close(k.got)
		var frame []byte
		buf := make([]byte, 1)
		for {
			if _, err := conn.Read(buf); err != nil {
				return
			}
			frame = append(frame, buf[0])
			if k.took(buf[0]) {
				k.got <- string(frame)
				frame = frame[:0]
			}
		}
	}()
	return k
}

// send writes frames, named or literal, in one write.
func (k *kiosk) send(frames ...string) {
	k.r.t.Helper()
	var all []byte
	for _, f := range frames {
		all = append(all, k.ended(frameOf(k.r.t, f))...)
	}
	k.raw(string(all))
}

// ended is a frame with the kiosk's own terminator.
func (k *kiosk) ended(frame []byte) string { return strings.TrimSuffix(string(frame), "\r") + k.end }

func (k *kiosk) raw(bytes string) {
	k.r.t.Helper()
	if err := k.conn.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
		k.r.t.Fatal(err)
	}
	if _, err := k.conn.Write([]byte(bytes)); err != nil {
		k.r.t.Fatalf("the kiosk could not write %q: %v", bytes, err)
	}
}

// read is the next frame, which must come within d.
func (k *kiosk) read(d time.Duration) string {
	k.r.t.Helper()
	select {
	case f, ok := <-k.got:
		if !ok {
			k.r.t.Fatalf("the gate closed the connection\n%s", k.r.log)
		}
		return f
	case <-time.After(d):
		k.r.t.Fatalf("no answer within %v\n%s", d, k.r.log)
	}
	return ""
}

// expect wants one frame, named or literal, byte for byte.
func (k *kiosk) expect(frame string, d time.Duration) {
	k.r.t.Helper()
	want := k.ended(frameOf(k.r.t, frame))
	if got := k.read(d); got != want {
		k.r.t.Fatalf("answer\n got %q\nwant %q\n%s", got, want, k.r.log)
	}
}

// refused wants a refusal of the gate's own with the request's AY.
func (k *kiosk) refused(ay byte, text string, d time.Duration) {
	k.r.t.Helper()
	got := k.read(d)
	m := sip2.Parse([]byte(strings.TrimSuffix(got, "\r")), '|')
	af, _ := m.Field("AF")
	if !strings.HasPrefix(got, "120NUN") || !strings.Contains(string(af), text) ||
		ay != 0 && (m.Trailer.Seq != ay || !m.Trailer.Valid) || ay == 0 && m.Trailer.Present {
		k.r.t.Fatalf("got %q, want a refusal with AY%c that says %q\n%s", got, ay, text, k.r.log)
	}
}

// none wants silence for d.
func (k *kiosk) none(d time.Duration) {
	k.r.t.Helper()
	select {
	case f, ok := <-k.got:
		if ok {
			k.r.t.Fatalf("an answer that should not be: %q\n%s", f, k.r.log)
		}
		k.r.t.Fatal("the gate closed the connection")
	case <-time.After(d):
	}
}

// closed wants the gate to end the connection within d.
func (k *kiosk) closed(d time.Duration) {
	k.r.t.Helper()
	select {
	case f, ok := <-k.got:
		if ok {
			k.r.t.Fatalf("an answer that should not be: %q", f)
		}
	case <-time.After(d):
		k.r.t.Fatalf("the connection was not closed within %v", d)
	}
}

func (k *kiosk) hangUp() { k.conn.Close() }
