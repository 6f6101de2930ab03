package port

import (
	"errors"
	"fmt"
	"time"
)

// Serial says how to open a serial line. Fields left zero mean 9600 baud, 8
// data bits, no parity, 1 stop bit, no flow control, as kiosks are delivered.
type Serial struct {
	Path     string // the device, best by a name that List calls stable
	Baud     int    // bits per second; any rate that the device can make
	DataBits int    // 5 to 8; SIP2 lines use 7 or 8
	Parity   string // "none", "even" or "odd"
	StopBits int    // 1 or 2
	Flow     string // "none", "rtscts" or "xonxoff"
}

// OpenSerial opens the line for this process alone and sets it up. Bytes found
// waiting are thrown away: they are of another time. The error names the
// device and is ErrBusy if somebody else holds it, fs.ErrNotExist if it is not
// there (an adapter that is not plugged in), fs.ErrPermission if this user may
// not open it; a device that does not take the settings asked for is refused
// with what it did not take. The Conn closed, what it was given to send goes
// out, unless the line stands still.
func OpenSerial(s Serial) (Conn, error) {
	s = s.withDefaults()
	err := s.check()
	if err == nil {
		var c Conn
		if c, err = openSerial(s); err == nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("serial port %s: %w", s.Path, err)
}

// String returns the line in the usual short form: "/dev/ttyUSB0 9600 7E1".
func (s Serial) String() string {
	s = s.withDefaults()
	parity := "?"
	switch s.Parity {
	case "none":
		parity = "N"
	case "even":
		parity = "E"
	case "odd":
		parity = "O"
	}
	text := fmt.Sprintf("%s %d %d%s%d", s.Path, s.Baud, s.DataBits, parity, s.StopBits)
	if s.Flow != "none" {
		text += " " + s.Flow
	}
	return text
}

// WireTime returns the time that n bytes take on the line, each with its start
// bit, data bits, parity bit and stop bits. It is zero for n of zero or less.
func (s Serial) WireTime(n int) time.Duration {
	if n <= 0 {
		return 0
	}
	s = s.withDefaults()
	bits := 1 + s.DataBits + s.StopBits
	if s.Parity != "none" {
		bits++
	}
	return time.Duration(float64(n) * float64(bits) / float64(s.Baud) * float64(time.Second))
}

func (s Serial) withDefaults() Serial {
	if s.Baud == 0 {
		s.Baud = 9600
	}
	if s.DataBits == 0 {
		s.DataBits = 8
	}
	if s.Parity == "" {
		s.Parity = "none"
	}
	if s.StopBits == 0 {
		s.StopBits = 1
	}
	if s.Flow == "" {
		s.Flow = "none"
	}
	return s
}

// check names every setting that no line has. s has its defaults filled in.
func (s Serial) check() error {
	var faults []error
	if s.Path == "" {
		faults = append(faults, errors.New("no device given"))
	}
	if s.Baud < 0 {
		faults = append(faults, fmt.Errorf("baud %d: must be positive", s.Baud))
	}
	if s.DataBits < 5 || s.DataBits > 8 {
		faults = append(faults, fmt.Errorf("data bits %d: must be 5 to 8", s.DataBits))
	}
	if s.StopBits != 1 && s.StopBits != 2 {
		faults = append(faults, fmt.Errorf("stop bits %d: must be 1 or 2", s.StopBits))
	}
	switch s.Parity {
	case "none", "even", "odd":
	default:
		faults = append(faults, fmt.Errorf("parity %q: must be none, even or odd", s.Parity))
	}
	switch s.Flow {
	case "none", "rtscts", "xonxoff":
	default:
		faults = append(faults, fmt.Errorf("flow %q: must be none, rtscts or xonxoff", s.Flow))
	}
	return errors.Join(faults...)
}
