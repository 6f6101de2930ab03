package port_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sip2gate/serialbridge/port"
)

// C-074: two stations, or two programs, never share a line, whatever names they
// know the device by, and as root too.
func TestHeldAlone(t *testing.T) {
	t.Run("C-074 two stations of one gate", func(t *testing.T) {
		p := newPair(t)
		link := filepath.Join(t.TempDir(), "by-path")
		if err := os.Symlink(p.Path, link); err != nil {
			t.Fatal(err)
		}
		if !port.SameDevice(link, p.Path) {
			t.Error("SameDevice does not see it beforehand")
		}
		first := open(t, port.Serial{Path: p.Path, Baud: 19200})
		before := settings(t, p)
		pass(t, p.Master, first, frame)
		if _, err := port.OpenSerial(port.Serial{Path: link, Baud: 300, Flow: "xonxoff"}); !errors.Is(err, port.ErrBusy) {
			t.Fatalf("second open = %v, want ErrBusy", err)
		} else if !strings.Contains(err.Error(), link) {
			t.Errorf("error %q does not name the device", err)
		}
		if settings(t, p) != before {
			t.Error("the attempt changed the settings of the line in use")
		}
		pass(t, p.Master, first, frame)
		pass(t, first, p.Master, frame)
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		second := open(t, port.Serial{Path: link})
		pass(t, p.Master, second, frame)
	})

	t.Run("C-074 two processes", func(t *testing.T) {
		p := newPair(t)
		link := filepath.Join(t.TempDir(), "by-id")
		if err := os.Symlink(p.Path, link); err != nil {
			t.Fatal(err)
		}
		line := open(t, port.Serial{Path: p.Path})
		if other := start(t, link, false, false); other.said != "busy" {
			t.Errorf("a second process says %q, want busy", other.said)
		}
		line.Close()
		holder := start(t, link, false, false)
		if holder.said != "open" {
			t.Fatalf("a second process says %q after Close, want open", holder.said)
		}
		if _, err := port.OpenSerial(port.Serial{Path: p.Path}); !errors.Is(err, port.ErrBusy) {
			t.Errorf("open while another process holds it = %v, want ErrBusy", err)
		}
		holder.kill() // the lock dies with its holder
		line = open(t, port.Serial{Path: p.Path})
		pass(t, p.Master, line, frame)
	})

	t.Run("C-074 without root", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("needs root, to become nobody")
		}
		p := newPair(t)
		if err := os.Chmod(p.Path, 0o666); err != nil {
			t.Fatal(err)
		}
		other := start(t, p.Path, true, false)
		if other.said != "open" {
			t.Fatalf("another program says %q", other.said)
		}
		if gate := start(t, p.Path, false, true); gate.said != "busy" {
			t.Errorf("a gate that is not root says %q, want busy", gate.said)
		}
		other.kill()
		// Root gets past the fence that was left standing, and takes it down.
		line := open(t, port.Serial{Path: p.Path})
		if gate := start(t, p.Path, false, true); gate.said != "busy" {
			t.Errorf("a second gate, not root, says %q, want busy", gate.said)
		}
		line.Close()
		gate := start(t, p.Path, false, true)
		if gate.said != "open" {
			t.Fatalf("a gate that is not root says %q after Close, want open", gate.said)
		}
		gate.kill() // and so does the next start after a kill
		if gate := start(t, p.Path, false, true); gate.said != "open" {
			t.Errorf("a gate that is not root says %q after a kill, want open", gate.said)
		}
	})
}

// No child of this process inherits the line: it would hold the lock, and keep
// an unplugged adapter from coming back under its own name.
func TestOneDescriptorNotInherited(t *testing.T) {
	p := newPair(t)
	open(t, port.Serial{Path: p.Path})
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || target != p.Path {
			continue
		}
		found++
		info, err := os.ReadFile("/proc/self/fdinfo/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		var flags int
		_, rest, _ := strings.Cut(string(info), "flags:")
		if _, err := fmt.Sscanf(rest, "%o", &flags); err != nil {
			t.Fatal(err)
		}
		if flags&0o2000000 == 0 {
			t.Error("the line is open without O_CLOEXEC")
		}
	}
	if found != 1 {
		t.Errorf("%d descriptors for one line, want 1", found)
	}
}
