package pty_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sip2gate/serialbridge/pty"
)

// openNear opens the gate's end as a file with deadlines.
func openNear(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestPair(t *testing.T) {
	p, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()

	// What the kiosk says before the gate listens waits, and is not echoed.
	if _, err := io.WriteString(p.Master, "early\r"); err != nil {
		t.Fatal(err)
	}
	if err := p.Master.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := p.Master.Read(make([]byte, 10)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read before the gate opened its end = %d, %v", n, err)
	}
	if err := p.Master.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}

	near := openNear(t, p.Path)
	var all []byte
	for b := range 256 {
		all = append(all, byte(b))
	}
	if _, err := p.Master.Write(all); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 6+256)
	if _, err := io.ReadFull(near, got); err != nil || string(got) != "early\r"+string(all) {
		t.Errorf("the gate reads %q, %v", got, err)
	}
	if _, err := near.Write(all); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(p.Master, got[:256]); err != nil || string(got[:256]) != string(all) {
		t.Errorf("the kiosk reads %q, %v", got[:256], err)
	}

	near.Close()
	if _, err := p.Master.Read(got); !errors.Is(err, unix.EIO) {
		t.Errorf("the kiosk reads %v after the gate closed, want EIO", err)
	}
	near = openNear(t, p.Path)
	p.Close()
	if _, err := near.Read(got); !errors.Is(err, io.EOF) {
		t.Errorf("the gate reads %v after a hang-up, want end of file", err)
	}
}

func TestAdapter(t *testing.T) {
	a := &pty.Adapter{Link: filepath.Join(t.TempDir(), "by-id")}
	if err := a.Pull(); err != nil {
		t.Errorf("Pull of what was never plugged = %v", err)
	}
	first, err := a.Plug()
	if err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(a.Link); err != nil || to != first.Path {
		t.Errorf("link leads to %s, %v; want %s", to, err, first.Path)
	}
	near := openNear(t, a.Link)
	second, err := a.Plug() // pulls first
	if err != nil {
		t.Fatal(err)
	}
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the first device reads %v, want end of file", err)
	}
	if to, err := os.Readlink(a.Link); err != nil || to != second.Path {
		t.Errorf("link leads to %s, %v; want %s", to, err, second.Path)
	}
	if err := a.Pull(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(a.Link); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link is left behind: %v", err)
	}
	if err := os.WriteFile(a.Link, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Plug(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Plug over a file = %v, want an error", err)
	}
}
