package port

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sip2gate/serialbridge/pty"
)

// A pseudo-terminal never has a byte waiting to be sent; here the kernel's
// count of them is made up.
func lineWithQueue(t *testing.T, queued func(fd int) (int, error)) (*pty.Pair, *line) {
	t.Helper()
	p, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	l, err := openSerial(Serial{Path: p.Path, Baud: 115200}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	l.queued = queued
	return p, l
}

// Who reads or writes is told of Close before it waits for the line to empty,
// and is told the truth: closed, not merely late.
func TestCloseWakesBeforeItWaits(t *testing.T) {
	woken := make(chan error)
	_, l := lineWithQueue(t, func(int) (int, error) {
		select {
		case err := <-woken:
			if !errors.Is(err, os.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("woken with %v, want os.ErrClosed", err)
			}
		case <-time.After(20 * time.Second):
			t.Error("Close waits for the line while a read waits for Close")
		}
		return 0, nil
	})
	go func() { // ended by Close, which waits for it
		_, err := l.Read(make([]byte, 1))
		woken <- err
	}()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// What a line that stands still was to send is dropped when it is closed: the
// kernel would hand it to the next session.
func TestCloseDropsWhatCannotLeave(t *testing.T) {
	// More than the far end takes in before it is read: the rest waits at ours.
	answer := make([]byte, 8000)
	for _, c := range []struct {
		name   string
		counts []int
		whole  bool // whether the far end still gets all of the answer
	}{
		{"sent", []int{6, 3, 0}, true},
		{"standing still", []int{6, 6}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, l := lineWithQueue(t, nil)
			left := c.counts
			l.queued = func(int) (n int, err error) {
				n, left = left[0], left[1:]
				return n, nil
			}
			if _, err := l.Write(answer); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if len(left) != 0 {
				t.Errorf("Close asked too seldom: %v left", left)
			}
			if err := p.Master.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(p.Master) // until EIO: the near end is closed
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("the line is not closed")
			}
			if (len(got) == len(answer)) != c.whole {
				t.Errorf("the far end got %d bytes of %d", len(got), len(answer))
			}
		})
	}
}

// The fence stands on a real device while it is open, and goes with it; a
// pseudo-terminal, which stands in for the device here, gets none.
func TestFence(t *testing.T) {
	p, l := lineWithQueue(t, func(int) (int, error) { return 0, nil })
	keeper, err := os.OpenFile(p.Path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer keeper.Close()
	fenced := func() (yes bool) {
		onFD(t, keeper, func(fd int) error {
			n, err := unix.IoctlGetInt(fd, unix.TIOCGEXCL)
			yes = n != 0
			return err
		})
		return yes
	}
	if fenced() {
		t.Error("an open pseudo-terminal is fenced off")
	}
	const ttyUSB, pts = 188, 136 // Linux, devices.txt
	for _, c := range []struct {
		major uint32
		want  bool
	}{{pts, false}, {ttyUSB, true}} {
		if err := l.control(func(fd int) error { fence(fd, c.major); return nil }); err != nil {
			t.Fatal(err)
		}
		if fenced() != c.want {
			t.Errorf("device of major %d fenced: %v", c.major, fenced())
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if fenced() {
		t.Error("the fence outlives Close")
	}
}
