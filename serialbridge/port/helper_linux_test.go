package port_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sip2gate/serialbridge/port"
	"sip2gate/serialbridge/pty"
)

// patience bounds waits that end at once when all is well.
const patience = 20 * time.Second

// The test binary runs as the second process of the locking tests when these
// are set: the device to open, and whether through this package or as another
// serial program would, with TIOCEXCL and no lock.
const (
	envDevice = "PORT_TEST_DEVICE"
	envPlain  = "PORT_TEST_PLAIN"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(envDevice); path != "" {
		os.Exit(secondProcess(path, os.Getenv(envPlain) != ""))
	}
	os.Exit(m.Run())
}

// secondProcess opens the device, says how that went, and holds it until its
// standard input ends.
func secondProcess(path string, plain bool) int {
	var c io.Closer
	var err error
	if plain {
		var f *os.File
		if f, err = os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0); err == nil {
			err = unix.IoctlSetInt(int(f.Fd()), unix.TIOCEXCL, 0)
		}
		c = f
	} else {
		c, err = port.OpenSerial(port.Serial{Path: path})
	}
	switch {
	case errors.Is(err, port.ErrBusy):
		fmt.Println("busy")
	case err != nil:
		fmt.Println("failed:", err)
	default:
		fmt.Println("open")
		_, _ = io.Copy(io.Discard, os.Stdin)
		c.Close()
	}
	return 0
}

// process is a second process with a device.
type process struct {
	cmd   *exec.Cmd
	said  string // "open", "busy" or "failed: ..."
	stdin io.Closer
}

// start runs the second process and waits until it has tried to open path. As
// nobody it runs without root's privileges.
func start(t *testing.T, path string, plain, nobody bool) *process {
	t.Helper()
	cmd := exec.Command("/proc/self/exe") // reached without walking a path that nobody may not enter
	cmd.Env = append(os.Environ(), envDevice+"="+path)
	if plain {
		cmd.Env = append(cmd.Env, envPlain+"=1")
	}
	if nobody {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, stdin: stdin}
	t.Cleanup(p.kill)
	said, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("second process said nothing: %v", err)
	}
	p.said = strings.TrimSpace(said)
	return p
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// newPair makes a pseudo-terminal for the length of the test.
func newPair(t *testing.T) *pty.Pair {
	t.Helper()
	p, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	if err := p.Master.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return p
}

// open opens a serial line for the length of the test.
func open(t *testing.T, s port.Serial) port.Conn {
	t.Helper()
	c, err := port.OpenSerial(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	bound(t, c)
	return c
}

// bound keeps a test that goes wrong from hanging.
func bound(t *testing.T, c port.Conn) {
	t.Helper()
	for _, set := range []func(time.Time) error{c.SetReadDeadline, c.SetWriteDeadline} {
		if err := set(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
	}
}

// pass sends text into one end and expects it, and nothing else, at the other.
func pass(t *testing.T, from io.Writer, to io.Reader, text string) {
	t.Helper()
	if _, err := io.WriteString(from, text); err != nil {
		t.Fatalf("write: %v", err)
	}
	got := make([]byte, len(text))
	if n, err := io.ReadFull(to, got); err != nil || string(got) != text {
		t.Fatalf("read %q, %v; want %q", got[:n], err, text)
	}
}

// settings returns the line settings of a pseudo-terminal, read at its master.
func settings(t *testing.T, p *pty.Pair) unix.Termios {
	t.Helper()
	var got *unix.Termios
	onMaster(t, p, func(fd int) (err error) {
		got, err = unix.IoctlGetTermios(fd, unix.TCGETS2)
		return err
	})
	return *got
}

// onMaster runs f on the master's descriptor.
func onMaster(t *testing.T, p *pty.Pair, f func(fd int) error) {
	t.Helper()
	conn, err := p.Master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if cerr := conn.Control(func(fd uintptr) { err = f(int(fd)) }); cerr != nil || err != nil {
		t.Fatal(cerr, err)
	}
}

// descriptors counts this process's open files.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// within returns a context that ends with the test or with patience.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
