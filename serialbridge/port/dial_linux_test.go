package port_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sip2gate/serialbridge/backoff"
	"sip2gate/serialbridge/port"
)

// program finds a terminal server to test against, or skips the test.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// run starts a program that is killed at the end of the test, or by the
// function returned.
func run(t *testing.T, cmd *exec.Cmd) (kill func()) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	return kill
}

// eventually repeats f with the pauses of a station until it succeeds.
func eventually(t *testing.T, f func(ctx context.Context) error) {
	t.Helper()
	ctx := within(t)
	retry := backoff.Timer{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond}
	for {
		err := f(ctx)
		if err == nil {
			return
		}
		if retry.Wait(ctx) != nil {
			t.Fatalf("still failing: %v", err)
		}
	}
}

// dial connects, trying again while the terminal server is starting.
func dial(t *testing.T, addr string) port.Conn {
	t.Helper()
	var c port.Conn
	eventually(t, func(ctx context.Context) (err error) {
		c, err = port.Dial(ctx, addr)
		return err
	})
	t.Cleanup(func() { c.Close() })
	bound(t, c)
	return c
}

func TestDialSer2net(t *testing.T) {
	path := program(t, "ser2net")
	kiosk := newPair(t)
	// A wire does not hang up when the program at its end dies; a
	// pseudo-terminal does, unless somebody keeps it open.
	wire, err := os.OpenFile(kiosk.Path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer wire.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	_, tcp, _ := net.SplitHostPort(addr)
	config := filepath.Join(t.TempDir(), "ser2net.yaml")
	text := fmt.Sprintf(`%%YAML 1.1
---
connection: &kiosk
  accepter: tcp,127.0.0.1,%s
  connector: serialdev,%s,9600n81,local
`, tcp, kiosk.Path)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ser2net := func() *exec.Cmd {
		cmd := exec.Command(path, "-n", "-u", "-c", config)
		cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
		return cmd
	}

	kill := run(t, ser2net())
	c := dial(t, addr)
	for range 3 {
		pass(t, c, kiosk.Master, frame)
		pass(t, kiosk.Master, c, frame)
	}
	// The kiosk is silent: a deadline, and the line is still there.
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) || port.Gone(err) {
		t.Fatalf("read from a silent kiosk = %v", err)
	}
	bound(t, c)
	// The terminal server restarts: the line is gone, and can be had again.
	kill()
	if _, err := c.Read(make([]byte, 10)); !port.Gone(err) || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read after the terminal server died = %v", err)
	}
	c.Close()
	if _, err := port.Dial(within(t), addr); !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), addr) {
		t.Errorf("dial while it is down = %v, want refused, naming %s", err, addr)
	}
	run(t, ser2net())
	c = dial(t, addr)
	pass(t, c, kiosk.Master, frame)
	pass(t, kiosk.Master, c, frame)
}

func TestDialSocat(t *testing.T) {
	path := program(t, "socat")
	link := filepath.Join(t.TempDir(), "kiosk")
	// socat joins a TCP port to a pseudo-terminal of its own making: Dial and
	// OpenSerial meet through it.
	cmd := exec.Command(path, "-d", "-d", "TCP-LISTEN:0,bind=127.0.0.1,reuseaddr", "PTY,raw,echo=0,link="+link)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	kill := run(t, cmd)
	listening := regexp.MustCompile(`listening on .*?(127\.0\.0\.1:\d+)`)
	var addr string
	for lines := bufio.NewScanner(stderr); addr == "" && lines.Scan(); {
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			addr = m[1]
		}
	}
	if addr == "" {
		t.Fatal("socat does not say where it listens")
	}
	far := dial(t, addr)
	var near port.Conn
	eventually(t, func(context.Context) (err error) { // the link is made after the connect
		near, err = port.OpenSerial(port.Serial{Path: link})
		return err
	})
	defer near.Close()
	bound(t, near)
	for range 3 {
		pass(t, near, far, frame)
		pass(t, far, near, frame)
	}
	kill()
	for _, c := range []port.Conn{near, far} {
		if _, err := c.Read(make([]byte, 10)); !port.Gone(err) {
			t.Errorf("read after socat died = %v", err)
		}
	}
	near.Close()
	if _, err := port.Dial(within(t), addr); err == nil {
		t.Error("dial succeeds after socat died")
	}
}

func TestDialGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := port.Dial(ctx, "127.0.0.1:9"); !errors.Is(err, context.Canceled) || c != nil {
		t.Errorf("Dial under an ended context = %v, %v", c, err)
	}
	for _, addr := range []string{"127.0.0.1", "127.0.0.1:port-of-no-service"} {
		if c, err := port.Dial(within(t), addr); err == nil || c != nil {
			t.Errorf("Dial(%q) = %v, %v", addr, c, err)
		}
	}
	if _, err := port.OpenSerial(port.Serial{Path: "127.0.0.1:4001"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a TCP address as a serial port = %v", err)
	}
}

// C-077: a peer that lost its cable is found by the kernel, idle or not. Both
// directions ask alike.
func TestSilentPeersAreFound(t *testing.T) {
	t.Run("C-077", func(t *testing.T) {
		l, err := port.Listen("127.0.0.1:0", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		dialled := dial(t, l.Addr().String())
		accepted, err := l.Accept(within(t))
		if err != nil {
			t.Fatal(err)
		}
		defer accepted.Close()
		for name, c := range map[string]any{"dialled": dialled, "accepted": accepted} {
			conn, err := c.(syscall.Conn).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range []struct {
				name             string
				level, opt, want int
			}{
				{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
				{"TCP_KEEPIDLE, s", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 10},
				{"TCP_KEEPINTVL, s", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 5},
				{"TCP_KEEPCNT", unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 6},
				{"TCP_USER_TIMEOUT, ms", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 40_000},
				{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
			} {
				var got int
				cerr := conn.Control(func(fd uintptr) { got, err = unix.GetsockoptInt(int(fd), o.level, o.opt) })
				if cerr != nil || err != nil || got != o.want {
					t.Errorf("%s: %s = %d, want %d (%v, %v)", name, o.name, got, o.want, cerr, err)
				}
			}
		}

		// The kiosk that lost its cable comes back from the same address: it is
		// served while the old connection still stands.
		again := dial(t, l.Addr().String())
		served, err := l.Accept(within(t))
		if err != nil {
			t.Fatal(err)
		}
		defer served.Close()
		bound(t, served)
		pass(t, again, served, frame)
		pass(t, served, again, frame)
	})
}

// C-113: a storm of connections from outside costs nothing but its refusal, and
// the kiosk that comes after it is served.
func TestRefusedStorm(t *testing.T) {
	t.Run("C-113", func(t *testing.T) {
		const storm = 200
		l, err := port.Listen("127.0.0.1:0", []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		refused := 0
		l.OnRefused = func(p netip.AddrPort) {
			if p.Addr() != netip.MustParseAddr("127.0.0.2") {
				t.Errorf("refused %v", p)
			}
			refused++
		}
		files := descriptors(t)
		outside := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		strangers := make(chan net.Conn, storm)
		go func() { // ends after its dials; the test takes every result
			defer close(strangers)
			for range storm {
				c, err := outside.DialContext(within(t), "tcp", l.Addr().String())
				if err != nil {
					t.Errorf("dial from outside: %v", err)
					return
				}
				strangers <- c
			}
			kiosk, err := port.Dial(within(t), l.Addr().String())
			if err != nil {
				t.Errorf("dial from inside: %v", err)
				return
			}
			strangers <- kiosk.(net.Conn)
		}()
		served, err := l.Accept(within(t))
		if err != nil {
			t.Fatal(err)
		}
		defer served.Close()
		bound(t, served)
		var all []net.Conn
		for c := range strangers {
			t.Cleanup(func() { c.Close() })
			bound(t, c)
			all = append(all, c)
		}
		if len(all) != storm+1 || refused != storm {
			t.Fatalf("%d connections, %d refused; want %d refused", len(all), refused, storm)
		}
		for _, c := range all[:storm] {
			if _, err := c.Read(make([]byte, 1)); !port.Gone(err) {
				t.Fatalf("a refused connection reads %v", err)
			}
		}
		pass(t, all[storm], served, frame)
		// Besides the far ends, which this test holds, one connection is open.
		if now := descriptors(t); now != files+storm+1+1 {
			t.Errorf("%d files open, want %d", now, files+storm+1+1)
		}
	})
}
