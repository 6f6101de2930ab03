// Package pty makes pseudo-terminals that stand in for serial lines, in tests
// and in the demo: the gate opens one end by name as if it were a UART, a
// virtual kiosk holds the other.
//
// A pseudo-terminal has no line: it takes any speed and any framing and stays
// at eight bits without parity, and its bytes arrive at once. It is made on
// Linux only; elsewhere every function returns errors.ErrUnsupported.
package pty

import (
	"fmt"
	"os"
)

// Pair is one pseudo-terminal, already in raw mode.
type Pair struct {
	// Master is the kiosk's end. Deadlines work on it. While the gate has not
	// yet opened its end, reads wait; once the gate has closed it, reads fail
	// with EIO until it is opened again.
	Master *os.File
	// Path names the gate's end, such as /dev/pts/3.
	Path string
}

// Open makes a pseudo-terminal. Close it when done.
func Open() (*Pair, error) {
	p, err := open()
	if err != nil {
		return nil, fmt.Errorf("pseudo-terminal: %w", err)
	}
	return p, nil
}

// Close hangs up: the gate's end reads end of file, and its name is gone. This
// is what pulling an adapter out of its socket looks like.
func (p *Pair) Close() error { return p.Master.Close() }

// Adapter is a USB adapter that can be pulled and plugged in again: its stable
// name stays while the device behind it changes, as with the links that udev
// keeps under /dev/serial. It belongs to one goroutine.
type Adapter struct {
	// Link is the stable name to give to the gate.
	Link string

	pair *Pair
}

// Plug makes a new device, points Link at it, and returns it. An adapter that
// is plugged in already is pulled first.
func (a *Adapter) Plug() (*Pair, error) {
	if err := a.Pull(); err != nil {
		return nil, err
	}
	p, err := Open()
	if err != nil {
		return nil, err
	}
	if err := os.Symlink(p.Path, a.Link); err != nil {
		p.Close()
		return nil, fmt.Errorf("plug adapter: %w", err)
	}
	a.pair = p
	return p, nil
}

// Pull removes Link and hangs up the device. Pulling twice does nothing.
func (a *Adapter) Pull() error {
	if a.pair == nil {
		return nil
	}
	p := a.pair
	a.pair = nil
	err := os.Remove(a.Link)
	if cerr := p.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("pull adapter: %w", err)
	}
	return nil
}
