package port

import (
	"strings"
	"testing"

	"go.bug.st/serial"
	"golang.org/x/sys/unix"
)

// A pseudo-terminal keeps eight bits without parity whatever it is told, so
// the settings are examined as values.
func TestTermios(t *testing.T) {
	const cmask = unix.CSIZE | unix.PARENB | unix.PARODD | unix.CMSPAR | unix.CSTOPB | unix.CRTSCTS
	const imask = unix.INPCK | unix.IXON | unix.IXOFF | unix.IXANY
	for _, c := range []struct {
		line         Serial
		cflag, iflag uint32
		mode         serial.Mode
	}{
		{Serial{}, unix.CS8, 0,
			serial.Mode{BaudRate: 9600, DataBits: 8}},
		{Serial{Baud: 19200, DataBits: 7, Parity: "even"}, unix.CS7 | unix.PARENB, unix.INPCK,
			serial.Mode{BaudRate: 19200, DataBits: 7, Parity: serial.EvenParity}},
		{Serial{DataBits: 7, Parity: "odd", StopBits: 2}, unix.CS7 | unix.PARENB | unix.PARODD | unix.CSTOPB, unix.INPCK,
			serial.Mode{BaudRate: 9600, DataBits: 7, Parity: serial.OddParity, StopBits: serial.TwoStopBits}},
		{Serial{Flow: "rtscts"}, unix.CS8 | unix.CRTSCTS, 0,
			serial.Mode{BaudRate: 9600, DataBits: 8}},
		{Serial{Baud: 12345, Flow: "xonxoff"}, unix.CS8, unix.IXON | unix.IXOFF,
			serial.Mode{BaudRate: 12345, DataBits: 8}},
		{Serial{DataBits: 5}, unix.CS5, 0, serial.Mode{BaudRate: 9600, DataBits: 5}},
		{Serial{DataBits: 6}, unix.CS6, 0, serial.Mode{BaudRate: 9600, DataBits: 6}},
	} {
		line := c.line.withDefaults()
		if err := line.check(); err == nil {
			t.Errorf("%v: a line without a device passes", line)
		}
		// From all bits clear and from all bits set: nothing of an earlier
		// program's settings may remain, nor may anything else be touched.
		for _, before := range []uint32{0, ^uint32(0)} {
			got := line.termios(unix.Termios{Cflag: before, Iflag: before, Oflag: before, Lflag: before})
			if got.Cflag&cmask != c.cflag {
				t.Errorf("%v: c_cflag = %#o, want %#o", line, got.Cflag&cmask, c.cflag)
			}
			if got.Iflag&imask != c.iflag {
				t.Errorf("%v: c_iflag = %#o, want %#o", line, got.Iflag&imask, c.iflag)
			}
			if got.Cflag&(unix.CREAD|unix.CLOCAL) != unix.CREAD|unix.CLOCAL {
				t.Errorf("%v: receiver off, or carrier awaited", line)
			}
			if got.Oflag != before || got.Lflag != before || got.Iflag&^imask != before&^imask {
				t.Errorf("%v: settings touched that are not the line's", line)
			}
		}
		if got := *line.mode(); got != c.mode {
			t.Errorf("%v: mode = %+v, want %+v", line, got, c.mode)
		}
	}
}

func TestRefused(t *testing.T) {
	want := Serial{DataBits: 7, Parity: "even", Flow: "rtscts"}.withDefaults().termios(unix.Termios{})
	if err := refused(want, want); err != nil {
		t.Errorf("a device that takes all of it is refused: %v", err)
	}
	got := want
	got.Cflag |= unix.CS8 | unix.CSTOPB
	got.Cflag &^= unix.PARENB | unix.CRTSCTS
	got.Iflag |= unix.IXON
	err := refused(want, got)
	if err == nil {
		t.Fatal("a device that stays at 8N2 is taken for 7E1")
	}
	for _, what := range []string{"data bits", "parity", "stop bits", "RTS/CTS", "XON/XOFF"} {
		if !strings.Contains(err.Error(), what) {
			t.Errorf("error %q does not name %s", err, what)
		}
	}
	got = want
	got.Ospeed, got.Cflag = 9615, got.Cflag|unix.HUPCL
	if err := refused(want, got); err != nil {
		t.Errorf("a device is refused for what is not the framing: %v", err)
	}
}
