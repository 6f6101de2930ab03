package port

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"go.bug.st/serial"
	"golang.org/x/sys/unix"
)

// openSerial opens the device twice. All bytes go through a non-blocking file,
// whose deadlines work, whose Close wakes whoever waits, and whose number
// cannot be mixed up with another file's; the library sets the line's mode on
// a handle of its own, which is closed at once.
func openSerial(s Serial) (*line, error) {
	file, err := os.OpenFile(s.Path, os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EBUSY) { // TIOCEXCL, met by all but root
		return nil, ErrBusy
	}
	if err != nil {
		return nil, err
	}
	l := &line{file: file, wire: s.WireTime, queued: func(fd int) (int, error) { return unix.IoctlGetInt(fd, unix.TIOCOUTQ) }}
	if err := l.control(func(fd int) error { return setUp(fd, s) }); err != nil {
		file.Close()
		return nil, err
	}
	return l, nil
}

// setUp makes the open device this process's own, sets its mode and empties it.
func setUp(fd int, s Serial) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return errors.New("not a serial port")
	}
	// The lock is on the device's node: all names that lead there share it, and
	// it holds against root, which TIOCEXCL does not. The kernel drops it when
	// the holder dies.
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return ErrBusy
	} else if err != nil {
		return fmt.Errorf("lock: %w", err)
	}

	// Through the open file, not through the path: a link may by now lead to
	// another station's device.
	p, err := serial.Open("/proc/self/fd/"+strconv.Itoa(fd), s.mode())
	if err != nil {
		return fmt.Errorf("set %d baud, %d data bits, parity %s, %d stop bits: %w",
			s.Baud, s.DataBits, s.Parity, s.StopBits, err)
	}
	if err := p.Close(); err != nil {
		return fmt.Errorf("close settings handle: %w", err)
	}
	if err := setTermios(fd, s, unix.Major(st.Rdev)); err != nil {
		return err
	}
	fence(fd, unix.Major(st.Rdev)) // after the library's Close, which would release it
	return discardInput(fd)
}

// fence keeps out programs that know no flock, unless they are root's. A
// pseudo-terminal is spared: it outlives a killed holder, and the fence with
// it, so that the next start would find the line busy for ever. A device
// without the call is served all the same.
func fence(fd int, major uint32) {
	if !isPTY(major) {
		_ = unix.IoctlSetInt(fd, unix.TIOCEXCL, 0)
	}
}

// mode returns the settings in the library's form. Its InitialStatusBits stay
// unset: setting them fails on a device without modem lines.
func (s Serial) mode() *serial.Mode {
	m := &serial.Mode{BaudRate: s.Baud, DataBits: s.DataBits}
	switch s.Parity {
	case "even":
		m.Parity = serial.EvenParity
	case "odd":
		m.Parity = serial.OddParity
	}
	if s.StopBits == 2 {
		m.StopBits = serial.TwoStopBits
	}
	return m
}

// discardInput throws away what came before the line was opened. The flush
// alone misses bytes that are still on their way inside the kernel; a read
// waits for those.
func discardInput(fd int) error {
	if err := unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH); err != nil {
		return fmt.Errorf("discard old input: %w", err)
	}
	buf := make([]byte, 4096)
	for range 64 { // a line that never falls silent is the framing's affair
		n, err := unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil:
			return fmt.Errorf("discard old input: %w", err)
		case n == 0:
			return errors.New("discard old input: the device hung up")
		}
	}
	return nil
}

// line is an open serial line.
type line struct {
	file   *os.File
	wire   func(n int) time.Duration
	queued func(fd int) (n int, err error) // bytes the kernel has yet to send
	closed atomic.Bool
}

func (l *line) Read(b []byte) (int, error) {
	n, err := l.file.Read(b)
	return n, l.explain(err)
}

func (l *line) Write(b []byte) (int, error) {
	if l.closed.Load() {
		return 0, fmt.Errorf("write %s: %w", l.file.Name(), os.ErrClosed)
	}
	n, err := l.file.Write(b)
	return n, l.explain(err)
}

func (l *line) SetReadDeadline(t time.Time) error  { return l.file.SetReadDeadline(t) }
func (l *line) SetWriteDeadline(t time.Time) error { return l.file.SetWriteDeadline(t) }

// Close wakes reads and writes at once and then lets what the kernel holds go
// out, for at most drainLimit: the last answer is not cut off. A line that
// stands still (CTS low, XOFF) keeps nobody: what it holds is dropped, else
// the kernel would sit in close for half a minute and, worse, hand a stale
// answer to the next session.
func (l *line) Close() error {
	if l.closed.Swap(true) {
		return fmt.Errorf("close %s: %w", l.file.Name(), os.ErrClosed)
	}
	_ = l.file.SetDeadline(time.Unix(1, 0)) // cannot fail on an open, pollable file
	_ = l.control(func(fd int) error {
		if !drain(func() (int, error) { return l.queued(fd) }, l.wire) {
			_ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCOFLUSH)
		}
		// The fence would outlive us where another program has the device open.
		return unix.IoctlSetInt(fd, unix.TIOCNXCL, 0)
	}) // a device that is gone refuses all of this, and need not do it
	return l.file.Close()
}

// explain turns the past deadline that Close wakes us with into what it means.
func (l *line) explain(err error) error {
	if l.closed.Load() && errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%s: %w", l.file.Name(), os.ErrClosed)
	}
	return err
}

// control runs f on the descriptor, which stays open meanwhile.
func (l *line) control(f func(fd int) error) error {
	conn, err := l.file.SyscallConn()
	if err != nil {
		return err
	}
	if cerr := conn.Control(func(fd uintptr) { err = f(int(fd)) }); cerr != nil {
		return cerr
	}
	return err
}
