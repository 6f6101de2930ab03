// Package control lets commands talk to a running gate, over a Unix socket in
// its state folder that only the gate's own user can reach: one JSON request
// on a line, one JSON answer on a line, and the connection is closed.
package control

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// Version is that of the requests and answers. The two sides are one
	// binary; it differs only while that is being replaced.
	Version = 1

	socketName = "control.sock"

	maxRequest     = 4 << 10
	maxAnswer      = 4 << 20
	maxConnections = 4
	talkTime       = 5 * time.Second  // for the request, and again for the answer
	workTime       = 60 * time.Second // for what is asked
)

// Request asks a running gate for something.
type Request struct {
	Version int    `json:"v"`
	Command string `json:"command"`
	Name    string `json:"name,omitempty"` // of a case: its number, or the item's
	Lent    bool   `json:"lent,omitempty"`
}

// Answer is what it says. Exactly one of Data and Error is set.
type Answer struct {
	Version int             `json:"v"`
	Data    json.RawMessage `json:"data,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// Error is an answer that says no, in words for people: what is the matter,
// and what to do next.
type Error struct {
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}

func (e *Error) Error() string { return e.Text }

// ErrNotRunning: there is no gate that listens in this folder.
var ErrNotRunning = errors.New("the gate is not running")

// Call asks the gate whose state folder is dir, and decodes its answer into
// data. Errors are ErrNotRunning, an *Error that the gate has answered, and
// what went wrong on the way.
func Call(dir string, r Request, data any) error {
	path, done, err := reach(filepath.Join(dir, socketName))
	if err != nil {
		return err
	}
	defer done()
	conn, err := net.DialTimeout("unix", path, talkTime)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: nothing listens at %s", ErrNotRunning, filepath.Join(dir, socketName))
	case err != nil:
		return fmt.Errorf("call the gate: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(workTime + 2*talkTime)); err != nil {
		return fmt.Errorf("call the gate: %w", err)
	}
	r.Version = Version
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return fmt.Errorf("ask the gate: %w", err)
	}
	line, err := readLine(conn, maxAnswer)
	if err != nil {
		return fmt.Errorf("read the gate's answer: %w", err)
	}
	var a Answer
	if err := json.Unmarshal(line, &a); err != nil {
		return fmt.Errorf("read the gate's answer: %w", err)
	}
	switch {
	case a.Error != nil:
		return a.Error
	case a.Version != Version:
		return fmt.Errorf("the running gate speaks version %d of the control protocol, this command version %d", a.Version, Version)
	}
	if err := json.Unmarshal(a.Data, data); err != nil {
		return fmt.Errorf("read the gate's answer: %w", err)
	}
	return nil
}

var errLong = errors.New("the line is too long")

// readLine reads up to the end of a line of at most most bytes.
func readLine(r io.Reader, most int) ([]byte, error) {
	b := bufio.NewReader(io.LimitReader(r, int64(most)))
	line, err := b.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		if len(line) == most {
			return nil, errLong
		}
		return nil, io.ErrUnexpectedEOF
	}
	return line, err
}

// sunPath is the longest path of a socket on the systems that there are.
const sunPath = 100

// reach gives a path by which the socket can be bound or dialled although its
// own may be too long for that. Call done after.
func reach(path string) (short string, done func(), err error) {
	if len(path) <= sunPath {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("%w: there is no folder %s", ErrNotRunning, filepath.Dir(path))
	}
	if err != nil {
		return "", nil, fmt.Errorf("reach the gate's socket: %w", err)
	}
	short = fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	if _, err := os.Stat(filepath.Dir(short)); err != nil {
		return "", nil, errors.Join(fmt.Errorf("the path %s is too long for a socket: choose a shorter state_dir", path), dir.Close())
	}
	return short, func() { dir.Close() }, nil
}
