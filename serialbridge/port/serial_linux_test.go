package port_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sip2gate/serialbridge/port"
	"sip2gate/serialbridge/pty"
)

const frame = "11YN20261201    120000                  AOMAIN|AA21000001|AB31000001|AC|AY1AZ0000\r"

func TestLineSettings(t *testing.T) {
	for _, c := range []struct {
		line         port.Serial
		speed        uint32
		iflag, cflag uint32
	}{
		{port.Serial{}, 9600, 0, 0},
		{port.Serial{Baud: 19200, Flow: "xonxoff"}, 19200, unix.IXON | unix.IXOFF, 0},
		{port.Serial{Baud: 12345, Flow: "rtscts"}, 12345, 0, unix.CRTSCTS},
		{port.Serial{Baud: 4800, DataBits: 7, Parity: "even"}, 4800, 0, 0}, // no line: not held to it
		{port.Serial{Baud: 115200, StopBits: 2}, 115200, 0, unix.CSTOPB},
	} {
		p := newPair(t)
		c.line.Path = p.Path
		// What another program may have left: a terminal for people.
		onMaster(t, p, func(fd int) error {
			return unix.IoctlSetTermios(fd, unix.TCSETS, &unix.Termios{
				Iflag: unix.ICRNL | unix.IXON | unix.IXANY | unix.ISTRIP,
				Oflag: unix.OPOST | unix.ONLCR,
				Lflag: unix.ECHO | unix.ICANON | unix.ISIG | unix.IEXTEN,
				Cflag: unix.B300 | unix.CS8 | unix.CREAD | unix.CRTSCTS,
			})
		})
		line := open(t, c.line)
		got := settings(t, p)
		if got.Ispeed != c.speed || got.Ospeed != c.speed {
			t.Errorf("%v: speed %d/%d", c.line, got.Ispeed, got.Ospeed)
		}
		if f := got.Iflag & (unix.IXON | unix.IXOFF | unix.IXANY | unix.ICRNL | unix.ISTRIP); f != c.iflag {
			t.Errorf("%v: c_iflag %#o, want %#o", c.line, f, c.iflag)
		}
		if f := got.Cflag & (unix.CRTSCTS | unix.CSTOPB); f != c.cflag {
			t.Errorf("%v: c_cflag %#o, want %#o", c.line, f, c.cflag)
		}
		if got.Oflag&unix.OPOST != 0 || got.Lflag&(unix.ECHO|unix.ICANON|unix.ISIG|unix.IEXTEN) != 0 {
			t.Errorf("%v: not raw", c.line)
		}
		// All values pass as they are, but for the two that XON/XOFF eats.
		var all []byte
		for b := range 256 {
			if c.line.Flow != "xonxoff" || b != 0x11 && b != 0x13 {
				all = append(all, byte(b))
			}
		}
		pass(t, p.Master, line, string(all))
		pass(t, line, p.Master, string(all))
	}
}

func TestOldInputIsDiscarded(t *testing.T) {
	for range 50 {
		p := newPair(t)
		if _, err := io.WriteString(p.Master, strings.Repeat("old", 500)+frame); err != nil {
			t.Fatal(err)
		}
		line := open(t, port.Serial{Path: p.Path})
		pass(t, p.Master, line, "new\r")
		line.Close()
		p.Close()
	}
}

func TestDeadlines(t *testing.T) {
	p := newPair(t)
	line := open(t, port.Serial{Path: p.Path})
	buf := make([]byte, 100)

	if err := line.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := line.Read(buf); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || port.Gone(err) {
		t.Errorf("read past its deadline = %d, %v", n, err)
	}
	if err := line.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { // ends with the deadline set below; the test waits for it
		_, err := line.Read(buf)
		ended <- err
	}()
	if err := line.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read during which a deadline came = %v", err)
	}
	bound(t, line)
	pass(t, p.Master, line, frame) // a deadline harms nothing
}

// C-055's rule for the station side: a kiosk that does not read (CTS low) holds
// up no other.
func TestStalledWriter(t *testing.T) {
	stalled, well := newPair(t), newPair(t)
	line := open(t, port.Serial{Path: stalled.Path})
	if err := line.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	type result struct {
		n   int
		err error
	}
	ended := make(chan result)
	go func() { // ends at the deadline; the test waits for it
		n, err := line.Write(make([]byte, 1<<20))
		ended <- result{n, err}
	}()
	other := open(t, port.Serial{Path: well.Path})
	for range 20 {
		pass(t, well.Master, other, frame)
		pass(t, other, well.Master, frame)
	}
	r := <-ended
	if !errors.Is(r.err, os.ErrDeadlineExceeded) || port.Gone(r.err) || r.n == 0 || r.n == 1<<20 {
		t.Errorf("write on a line that stands still = %d, %v; want a part and the deadline", r.n, r.err)
	}
}

func TestCloseWakes(t *testing.T) {
	p := newPair(t)
	line := open(t, port.Serial{Path: p.Path})
	for _, set := range []func(time.Time) error{line.SetReadDeadline, line.SetWriteDeadline} {
		if err := set(time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error)
	go func() { // both are ended by Close; the test waits for them
		_, err := line.Read(make([]byte, 10))
		ended <- err
	}()
	go func() {
		_, err := line.Write(make([]byte, 1<<20))
		ended <- err
	}()
	// The writer has begun once its first byte is here, and then cannot end.
	if _, err := io.ReadFull(p.Master, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := line.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	for range 2 {
		if err := <-ended; !errors.Is(err, os.ErrClosed) || !port.Gone(err) {
			t.Errorf("woken with %v, want os.ErrClosed", err)
		}
	}
	if _, err := line.Write([]byte("late")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write after Close = %v", err)
	}
	if _, err := line.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("read after Close = %v", err)
	}
	if err := line.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("second Close = %v", err)
	}
}

func TestUnplugged(t *testing.T) {
	// A frame in pieces, as an FTDI adapter hands it over: what a deadline
	// falls into is neither lost nor doubled.
	t.Run("C-072", func(t *testing.T) {
		p := newPair(t)
		line := open(t, port.Serial{Path: p.Path})
		pass(t, p.Master, line, frame[:62])
		if err := line.SetReadDeadline(time.Now().Add(16 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if n, err := line.Read(make([]byte, 100)); n != 0 || port.Gone(err) {
			t.Fatalf("read in the pause = %d, %v", n, err)
		}
		bound(t, line)
		pass(t, p.Master, line, frame[62:])
	})

	// The adapter comes back under another name while the old one is still
	// open; its stable name leads to the new one.
	t.Run("C-070", func(t *testing.T) {
		adapter := &pty.Adapter{Link: filepath.Join(t.TempDir(), "usb-1a86_USB_Serial-if00-port0")}
		old, err := adapter.Plug()
		if err != nil {
			t.Fatal(err)
		}
		before := open(t, port.Serial{Path: adapter.Link})
		pass(t, old.Master, before, frame[:30])
		now, err := adapter.Plug()
		if err != nil {
			t.Fatal(err)
		}
		defer adapter.Pull()
		if now.Path == old.Path {
			t.Fatalf("the device came back under its old name %s: the test proves nothing", now.Path)
		}
		if _, err := before.Read(make([]byte, 100)); !port.Gone(err) {
			t.Fatalf("read on the old device = %v", err)
		}
		after := open(t, port.Serial{Path: adapter.Link}) // even before the old one is closed
		pass(t, now.Master, after, frame)
		pass(t, after, now.Master, frame)
	})

	t.Run("C-073", func(t *testing.T) {
		adapter := &pty.Adapter{Link: filepath.Join(t.TempDir(), "by-path")}
		defer adapter.Pull()
		files := descriptors(t)
		for i := range 20 {
			p, err := adapter.Plug()
			if err != nil {
				t.Fatal(err)
			}
			line := open(t, port.Serial{Path: adapter.Link})
			pass(t, p.Master, line, fmt.Sprint(frame, i))
			pass(t, p.Master, line, frame[:30])
			if err := adapter.Pull(); err != nil {
				t.Fatal(err)
			}
			for range 3 { // an error each time, never zero bytes without one
				if n, err := line.Read(make([]byte, 10)); n != 0 || !errors.Is(err, io.EOF) || !port.Gone(err) {
					t.Fatalf("read on a device pulled = %d, %v", n, err)
				}
			}
			if _, err := line.Write([]byte("x")); !errors.Is(err, unix.EIO) || !port.Gone(err) {
				t.Fatalf("write on a device pulled = %v", err)
			}
			if err := line.Close(); err != nil {
				t.Errorf("close of a device pulled = %v", err)
			}
			if _, err := port.OpenSerial(port.Serial{Path: adapter.Link}); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("opening a device pulled = %v", err)
			}
		}
		if now := descriptors(t); now != files {
			t.Errorf("%d files open, %d before", now, files)
		}
	})
}

func TestOpenSerialRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("a file, not a line"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := descriptors(t)
	for _, c := range []struct {
		line port.Serial
		want string
	}{
		{port.Serial{Path: file}, "not a serial port"},
		{port.Serial{Path: dir}, "is a directory"},
		{port.Serial{Path: "/dev/null"}, "set 9600 baud"},
		{port.Serial{Path: filepath.Join(dir, "none")}, "no such file"},
		{port.Serial{}, "no device given"},
		{port.Serial{Path: file, DataBits: 9}, "data bits 9"},
		{port.Serial{Path: file, Parity: "mark"}, `parity "mark"`},
		{port.Serial{Path: file, StopBits: 3}, "stop bits 3"},
		{port.Serial{Path: file, Flow: "dtrdsr"}, `flow "dtrdsr"`},
		{port.Serial{Path: file, Baud: -1}, "baud -1"},
	} {
		conn, err := port.OpenSerial(c.line)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.line.Path) {
			t.Errorf("OpenSerial(%v) = %v, want an error with %q and the device", c.line, err, c.want)
		}
		if conn != nil {
			t.Errorf("OpenSerial(%v) gave a Conn with its error", c.line)
		}
	}
	if now := descriptors(t); now != files {
		t.Errorf("%d files open, %d before", now, files)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "a file, not a line" {
		t.Errorf("the file that was no port now holds %q, %v", text, err)
	}
}
