// Package port is the wire to a self-check kiosk: a serial line, a connection
// to a terminal server, or a listening socket, all behind one type with
// net.Conn's deadline rules. It carries bytes and knows nothing of SIP2.
//
// Serial lines are served on Linux only; elsewhere OpenSerial and List return
// errors.ErrUnsupported, and the rest works.
package port

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Conn is a line to a kiosk. The deadline rules are net.Conn's: a deadline is
// an absolute time, it ends reads and writes in progress with an error that is
// os.ErrDeadlineExceeded, it stays until it is set anew, and the zero time
// means none. A write cut short by its deadline says how many bytes the kernel
// took. Close wakes blocked reads and writes; they and later ones fail with
// os.ErrClosed or net.ErrClosed.
//
// One goroutine may read while another writes and a third closes or sets
// deadlines. Conn keeps no reference to the bytes after Read or Write returns.
type Conn interface {
	io.ReadWriteCloser
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// ErrBusy is in the error of OpenSerial when another program, or another
// station of this one, holds the device. The error names the device.
var ErrBusy = errors.New("in use by another program or station")

// Gone reports whether err, from a Conn's Read or Write, means that the line is
// of no more use and must be opened anew: end of file, a hang-up (USB adapter
// pulled), an input/output error, a reset, a peer that no longer answers, or
// the Conn closed at this end. A deadline is not such an error, nor is nil, nor
// the end of a context.
//
// A peer found dead by the kernel's keep-alive reports a time-out of its own
// (ETIMEDOUT, which net.Error calls Timeout): Gone is true for it.
func Gone(err error) bool {
	switch {
	case err == nil,
		errors.Is(err, os.ErrDeadlineExceeded),
		errors.Is(err, context.Canceled),
		errors.Is(err, context.DeadlineExceeded):
		return false
	}
	// Whatever else a read or write fails with will not mend itself; taking it
	// for harmless would make a reader spin.
	return true
}

// SameDevice reports whether two paths name one device: symbolic links are
// resolved and device numbers compared, and nothing is opened, so that a line
// in use is not disturbed. Of a device that is not there only the names can be
// compared.
func SameDevice(a, b string) bool {
	if resolve(a) == resolve(b) {
		return true
	}
	fa, err := os.Stat(a)
	if err != nil {
		return false
	}
	fb, err := os.Stat(b)
	if err != nil {
		return false
	}
	return os.SameFile(fa, fb) || sameNumber(fa, fb)
}

// resolve returns what path leads to, or the cleaned path where it leads
// nowhere at present.
func resolve(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		path = p
	}
	if p, err := filepath.Abs(path); err == nil {
		path = p
	}
	return filepath.Clean(path)
}
