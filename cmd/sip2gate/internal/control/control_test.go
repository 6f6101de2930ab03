package control

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func listen(t *testing.T, dir string, h Handler) *Server {
	t.Helper()
	s, err := Listen(dir, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return s
}

func echo(_ context.Context, r Request) (any, error) {
	switch r.Command {
	case "no":
		return nil, &Error{Text: "not so", Hint: "do this"}
	case "fail":
		return nil, errors.New("it broke")
	case "long":
		return strings.Repeat("x", maxAnswer), nil
	}
	return r, nil
}

func TestCall(t *testing.T) {
	for name, dir := range map[string]string{
		"short": t.TempDir(),
		"long":  filepath.Join(t.TempDir(), strings.Repeat("a-folder-with-a-long-name/", 8)),
	} {
		t.Run(name, func(t *testing.T) {
			if err := Call(dir, Request{}, new(any)); !errors.Is(err, ErrNotRunning) {
				t.Fatalf("before there is a gate: %v", err)
			}
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			s := listen(t, dir, echo)
			fi, err := os.Stat(filepath.Join(dir, socketName))
			if err != nil || fi.Mode().Perm() != 0o600 {
				t.Errorf("the socket: %v, %v", fi.Mode(), err)
			}
			var got Request
			want := Request{Version: Version, Command: "yes", Name: "31234", Lent: true}
			if err := Call(dir, want, &got); err != nil || got != want {
				t.Errorf("%+v, %v", got, err)
			}
			var no *Error
			if err := Call(dir, Request{Command: "no"}, &got); !errors.As(err, &no) || *no != (Error{"not so", "do this"}) {
				t.Errorf("a refusal: %v", err)
			}
			if err := Call(dir, Request{Command: "fail"}, &got); !errors.As(err, &no) || no.Text != "it broke" {
				t.Errorf("a failure: %v", err)
			}
			if err := Call(dir, Request{Command: "long"}, &got); !errors.As(err, &no) || no.Text != "the answer is too long" {
				t.Errorf("too long an answer: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("after the end there is still %v", left)
			}
			if err := Call(dir, Request{}, &got); !errors.Is(err, ErrNotRunning) {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

// A socket that a killed run has left is replaced; anything else is not.
func TestStaleSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, socketName)
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
	if err := Call(dir, Request{}, new(any)); !errors.Is(err, ErrNotRunning) {
		t.Errorf("with a stale socket: %v", err)
	}
	s := listen(t, dir, echo)
	if err := Call(dir, Request{}, new(Request)); err != nil {
		t.Error(err)
	}
	s.Close()

	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(dir, echo); err == nil {
		t.Error("a file in the socket's place was replaced")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "mine" {
		t.Errorf("the file: %q, %v", b, err)
	}
}

// raw sends bytes as they are and returns the answer.
func raw(t *testing.T, dir, send string) (Answer, error) {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(dir, socketName))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, send); err != nil {
		return Answer{}, err
	}
	var a Answer
	err = json.NewDecoder(conn).Decode(&a)
	return a, err
}

func TestBadRequests(t *testing.T) {
	dir := t.TempDir()
	listen(t, dir, echo)
	for _, tt := range []struct{ send, want string }{
		{"{}\n", "speaks version 1 of the control protocol, the command version 0"},
		{"hello\n", "cannot be read"},
		{strings.Repeat("x", maxRequest) + "\n", "too long"},
	} {
		// More than was read may have been sent: then the end comes as a reset,
		// after the answer or instead of it.
		a, err := raw(t, dir, tt.send)
		if len(tt.send) > maxRequest && err != nil {
			continue
		}
		if err != nil || a.Error == nil || !strings.Contains(a.Error.Text, tt.want) {
			t.Errorf("%.20q: %+v, %v", tt.send, a, err)
		}
	}
}

// More connections than there are places are told so, and the end of the
// server ends those that say nothing and those that are being answered.
func TestBounds(t *testing.T) {
	dir := t.TempDir()
	began := make(chan struct{})
	s := listen(t, dir, func(ctx context.Context, r Request) (any, error) {
		if r.Command == "wait" {
			began <- struct{}{}
			<-ctx.Done()
		}
		return nil, context.Cause(ctx)
	})
	results := make(chan error)
	go func() { results <- Call(dir, Request{Command: "wait"}, new(any)) }()
	<-began
	for range maxConnections - 1 {
		conn, err := net.Dial("unix", filepath.Join(dir, socketName))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() // says nothing
	}
	var no *Error
	if err := Call(dir, Request{}, new(any)); !errors.As(err, &no) || no.Text != "the gate is answering other commands" {
		t.Errorf("one too many: %v", err)
	}
	begun := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(begun); d > talkTime/2 {
		t.Errorf("the end took %v", d)
	}
	if err := <-results; !errors.As(err, &no) || no.Text != context.Canceled.Error() {
		t.Errorf("what was being answered: %v", err)
	}
}
