package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Handler does what a request asks for. What it returns is encoded as the
// answer's data; an *Error goes out as it is, any other error as its text.
type Handler func(ctx context.Context, r Request) (any, error)

// Server answers requests until it is closed.
type Server struct {
	path    string
	ln      *net.UnixListener
	handler Handler
	ctx     context.Context // ends the handlers
	cancel  context.CancelFunc
	slots   chan struct{} // one for each connection
	wg      sync.WaitGroup
}

// Listen makes the socket in the state folder dir, in place of one that a
// killed run has left, and starts to answer. Whoever calls it holds the
// store's lock: it does not ask whether another gate listens.
func Listen(dir string, h Handler) (*Server, error) {
	path := filepath.Join(dir, socketName)
	if fi, err := os.Lstat(path); err == nil && fi.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("listen for commands: there is something else at %s", path)
	}
	ln, err := bind(dir, path)
	if err != nil {
		return nil, fmt.Errorf("listen for commands: %w", err)
	}
	s := &Server{path: path, ln: ln, handler: h, slots: make(chan struct{}, maxConnections)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.wg.Go(s.accept)
	return s, nil
}

// bind makes the socket in a folder that nobody else can enter and moves it to
// its place when only its owner can use it.
func bind(dir, path string) (_ *net.UnixListener, err error) {
	private, err := os.MkdirTemp(dir, ".control-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.Remove(private)) }()
	fresh := filepath.Join(private, "s")
	short, done, err := reach(fresh)
	if err != nil {
		return nil, err
	}
	defer done()
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, err
	}
	ln.SetUnlinkOnClose(false) // by now it has another name
	if err = os.Chmod(fresh, 0o600); err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return nil, errors.Join(err, ln.Close(), os.Remove(fresh))
	}
	return ln, nil
}

// Close ends the listening, waits for what is being answered, which is told to
// stop, and removes the socket.
func (s *Server) Close() error {
	err := s.ln.Close()
	s.cancel()
	s.wg.Wait()
	if rmErr := os.Remove(s.path); !errors.Is(rmErr, fs.ErrNotExist) {
		err = errors.Join(err, rmErr)
	}
	return err
}

func (s *Server) accept() {
	for {
		conn, err := s.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, say
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(time.Second):
			}
			continue
		}
		select {
		case s.slots <- struct{}{}:
			s.wg.Go(func() {
				defer func() { <-s.slots }()
				s.serve(conn)
			})
		default:
			s.answer(conn, nil, &Error{Text: "the gate is answering other commands", Hint: "try again in a moment"})
			conn.Close()
		}
	}
}

func (s *Server) serve(conn net.Conn) {
	defer conn.Close()
	stop := context.AfterFunc(s.ctx, func() { conn.SetReadDeadline(time.Now()) })
	defer stop()
	if conn.SetReadDeadline(time.Now().Add(talkTime)) != nil || s.ctx.Err() != nil {
		return
	}
	line, err := readLine(conn, maxRequest)
	if err != nil {
		if errors.Is(err, errLong) {
			s.answer(conn, nil, &Error{Text: "the request is too long"})
		}
		return
	}
	var r Request
	if err := json.Unmarshal(line, &r); err != nil {
		s.answer(conn, nil, &Error{Text: "the request cannot be read: " + err.Error()})
		return
	}
	if r.Version != Version {
		s.answer(conn, nil, &Error{
			Text: fmt.Sprintf("the running gate speaks version %d of the control protocol, the command version %d", Version, r.Version),
			Hint: "use the sip2gate that the gate runs, or restart the gate",
		})
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, workTime)
	defer cancel()
	data, err := s.handler(ctx, r)
	s.answer(conn, data, err)
}

// answer writes one line. Nobody is told if it cannot be written: who asked has
// gone.
func (s *Server) answer(conn net.Conn, data any, failed error) {
	a := Answer{Version: Version}
	if failed == nil {
		a.Data, failed = json.Marshal(data)
	}
	if failed == nil && len(a.Data) > maxAnswer-1024 {
		a.Data, failed = nil, errors.New("the answer is too long")
	}
	if failed != nil && !errors.As(failed, &a.Error) {
		a.Error = &Error{Text: failed.Error()}
	}
	if conn.SetWriteDeadline(time.Now().Add(talkTime)) == nil {
		_ = json.NewEncoder(conn).Encode(a)
	}
}
