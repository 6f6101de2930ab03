package port

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// setTermios sets what the library leaves out, the flow control, and reads back
// whether the device has taken the rest: a driver reports success for a
// setting that its chip does not have, and shows so only here.
func setTermios(fd int, s Serial, major uint32) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return fmt.Errorf("get line settings: %w", err)
	}
	want := s.termios(*t)
	// The speed needs no care: TCSETS leaves the one set by the library.
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &want); err != nil {
		return fmt.Errorf("set flow control %s: %w", s.Flow, err)
	}
	got, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return fmt.Errorf("read line settings back: %w", err)
	}
	if isPTY(major) {
		return nil // it has no line, and keeps eight bits without parity
	}
	return refused(want, *got)
}

// termios returns t with framing, parity and flow control as s asks for. What
// it does not name (raw mode, speed) is left as the library has set it.
func (s Serial) termios(t unix.Termios) unix.Termios {
	t.Cflag &^= unix.CSIZE | unix.PARENB | unix.PARODD | unix.CMSPAR | unix.CSTOPB | unix.CRTSCTS
	t.Iflag &^= unix.INPCK | unix.IXON | unix.IXOFF | unix.IXANY
	t.Cflag |= unix.CREAD | unix.CLOCAL
	t.Cflag |= map[int]uint32{5: unix.CS5, 6: unix.CS6, 7: unix.CS7, 8: unix.CS8}[s.DataBits]
	switch s.Parity {
	case "even":
		t.Cflag |= unix.PARENB
		t.Iflag |= unix.INPCK // a byte of wrong parity reads as NUL
	case "odd":
		t.Cflag |= unix.PARENB | unix.PARODD
		t.Iflag |= unix.INPCK
	}
	if s.StopBits == 2 {
		t.Cflag |= unix.CSTOPB
	}
	switch s.Flow {
	case "rtscts":
		t.Cflag |= unix.CRTSCTS
	case "xonxoff":
		t.Iflag |= unix.IXON | unix.IXOFF
		t.Cc[unix.VSTART], t.Cc[unix.VSTOP] = 0x11, 0x13 // DC1, DC3
	}
	return t
}

// refused names the settings that the device did not take.
func refused(want, got unix.Termios) error {
	var what []string
	diff := want.Cflag ^ got.Cflag
	for _, f := range []struct {
		bits uint32
		name string
	}{
		{unix.CSIZE, "the number of data bits"},
		{unix.PARENB | unix.PARODD, "the parity"},
		{unix.CSTOPB, "the number of stop bits"},
		{unix.CRTSCTS, "RTS/CTS flow control"},
	} {
		if diff&f.bits != 0 {
			what = append(what, f.name)
		}
	}
	if (want.Iflag^got.Iflag)&(unix.IXON|unix.IXOFF) != 0 {
		what = append(what, "XON/XOFF flow control")
	}
	if what == nil {
		return nil
	}
	return errors.New("the device does not take " + strings.Join(what, ", "))
}

// isPTY tells a pseudo-terminal by its device number (Linux, devices.txt).
func isPTY(major uint32) bool { return major >= 136 && major <= 143 }

// sameNumber reports whether two files are nodes of one character device.
func sameNumber(a, b os.FileInfo) bool {
	sa, ok := a.Sys().(*syscall.Stat_t)
	sb, ok2 := b.Sys().(*syscall.Stat_t)
	return ok && ok2 && a.Mode()&b.Mode()&os.ModeCharDevice != 0 && sa.Rdev == sb.Rdev
}
