package port_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"sip2gate/serialbridge/port"
)

func TestGone(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{os.ErrDeadlineExceeded, false},
		{&os.PathError{Op: "read", Path: "/dev/ttyUSB0", Err: os.ErrDeadlineExceeded}, false},
		{&net.OpError{Op: "write", Err: os.ErrDeadlineExceeded}, false},
		{context.Canceled, false},
		{context.DeadlineExceeded, false},
		{io.EOF, true},
		{io.ErrUnexpectedEOF, true},
		{&os.PathError{Op: "write", Path: "/dev/ttyUSB0", Err: syscall.EIO}, true},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, true},
		{fmt.Errorf("write answer: %w", syscall.EPIPE), true},
		{os.ErrClosed, true},
		{net.ErrClosed, true},
	} {
		if got := port.Gone(c.err); got != c.want {
			t.Errorf("Gone(%v) = %v, want %v", c.err, got, c.want)
		}
	}

	// A peer that the kernel's keep-alive has found dead calls itself a
	// time-out, but is no deadline: waiting on would be in vain.
	dead := &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)}
	if !dead.Timeout() || !port.Gone(dead) {
		t.Errorf("Gone(%v) = false", dead)
	}
}

func TestWireTime(t *testing.T) {
	for _, c := range []struct {
		line  port.Serial
		bytes int
		want  time.Duration
	}{
		{port.Serial{}, 96, 100 * time.Millisecond}, // 960 bits at 9600
		{port.Serial{Baud: 1200, DataBits: 7, Parity: "even", StopBits: 1}, 120, time.Second},
		{port.Serial{Baud: 1100, DataBits: 7, Parity: "odd", StopBits: 2}, 100, time.Second},
		{port.Serial{Baud: 9000, DataBits: 7}, 1000, time.Second},
		{port.Serial{}, 0, 0},
		{port.Serial{}, -1, 0},
	} {
		if got := c.line.WireTime(c.bytes); (got - c.want).Abs() > time.Microsecond {
			t.Errorf("%v: WireTime(%d) = %v, want %v", c.line, c.bytes, got, c.want)
		}
	}
}

func TestSerialString(t *testing.T) {
	for _, c := range []struct {
		line port.Serial
		want string
	}{
		{port.Serial{Path: "/dev/ttyAMA0"}, "/dev/ttyAMA0 9600 8N1"},
		{port.Serial{Path: "a", Baud: 19200, DataBits: 7, Parity: "even", Flow: "rtscts"}, "a 19200 7E1 rtscts"},
		{port.Serial{Path: "a", Parity: "odd", StopBits: 2, Flow: "none"}, "a 9600 8O2"},
	} {
		if got := c.line.String(); got != c.want {
			t.Errorf("String() = %q, want %q", got, c.want)
		}
	}
}

func TestSameDeviceByName(t *testing.T) {
	dir := t.TempDir()
	device, other := filepath.Join(dir, "ttyUSB0"), filepath.Join(dir, "ttyUSB1")
	for _, name := range []string{device, other} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "by-id")
	second := filepath.Join(dir, "by-path")
	dangling := filepath.Join(dir, "dangling")
	for name, target := range map[string]string{link: "ttyUSB0", second: "by-id", dangling: "ttyUSB7"} {
		if err := os.Symlink(target, name); errors.Is(err, errors.ErrUnsupported) {
			t.Skip("no symbolic links here")
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{device, device, true},
		{device, link, true},
		{link, second, true},
		{device, dir + "/./x/../ttyUSB0", true},
		{device, other, false},
		{link, other, false},
		{dangling, dangling, true}, // an adapter not plugged in, configured twice
		{dangling, device, false},
		{dangling, dir + "/missing", false},
	} {
		if got := port.SameDevice(c.a, c.b); got != c.want {
			t.Errorf("SameDevice(%s, %s) = %v, want %v", c.a, c.b, got, c.want)
		}
		if got := port.SameDevice(c.b, c.a); got != c.want {
			t.Errorf("SameDevice(%s, %s) = %v, want %v", c.b, c.a, got, c.want)
		}
	}
}
