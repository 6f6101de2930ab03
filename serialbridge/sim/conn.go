package sim

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// maxFrame is the longest frame that an ILS takes; a connection that sends
// more without a terminator is closed.
const maxFrame = 64 << 10

// conn is one connection to an ILS. One goroutine serves it, a request at a
// time; HangUp and Close may end it from outside.
type conn struct {
	ils    *ILS
	tcp    *net.TCPConn
	number int
	lines  splitter

	loggedIn bool
	first    bool // the first message has been seen
	version2 bool // a 99 with version 2 has been seen
	version1 bool // the last 99 had another version
	lastSeq  int  // AY of the last frame that had one
	trailer  string
	last     answer // for 97
}

// serve reads and answers until the connection ends.
func (c *conn) serve() {
	defer c.close()
	c.lastSeq = -1
	c.lines.lf = c.ils.opts.Terminator == "\n"
	buf := make([]byte, 4096)
	for {
		for line, ok := c.lines.next(); ok; line, ok = c.lines.next() {
			if !c.handle(line) {
				return
			}
		}
		n, err := c.read(buf)
		if err != nil {
			return
		}
		if c.lines.add(buf[:n]); c.lines.waiting() > maxFrame {
			return
		}
	}
}

func (c *conn) close() {
	l := c.ils
	c.tcp.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	l.note(Entry{Event: EventClose, Conn: c.number})
}

// read is Read, but nothing is taken during a black hole. A deadline that
// throws a Read out may lose against bytes that arrive at that moment: those
// are held until it is over, as the kernel would hold them.
func (c *conn) read(buf []byte) (int, error) {
	for c.passable() {
		n, err := c.tcp.Read(buf)
		switch {
		case n > 0:
			if !c.passable() {
				return 0, net.ErrClosed
			}
			return n, nil
		case err == nil || !errors.Is(err, os.ErrDeadlineExceeded):
			return 0, err
		}
	}
	return 0, net.ErrClosed
}

// passable waits for the end of a black hole; false once the ILS is closed.
func (c *conn) passable() bool {
	l := c.ils
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.blackHole && !l.closed {
		l.changed.Wait()
	}
	c.tcp.SetReadDeadline(time.Time{})
	return !l.closed
}

// cut ends the connection, in order (fin) or with a reset.
func (c *conn) cut(fin bool) {
	if !fin {
		c.tcp.SetLinger(0)
	}
	c.tcp.Close()
}

// handle does what is to be done about one line. It says whether the
// connection goes on.
func (c *conn) handle(line []byte) bool {
	l := c.ils
	if len(line) == 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.note(Entry{Event: EventBlank, Conn: c.number})
		return !l.habits.closes
	}
	r := parse(line, l.opts.Delimiter)

	l.mu.Lock()
	l.note(Entry{Event: EventFrame, Conn: c.number, Code: r.code, Seq: r.seq(), Item: r.field("AB"), Patron: r.field("AA"), Raw: line})
	script := l.script
	l.mu.Unlock()
	if script != nil {
		if literal, handled := script(c.number, r.msg); handled {
			return c.write(c.ended(literal))
		}
	}

	l.mu.Lock()
	f := l.takeFault(r.code)
	if f.Kind != "" {
		l.note(Entry{Event: EventFault, Conn: c.number, Code: r.code, Item: r.field("AB"), Why: string(f.Kind)})
	}
	l.mu.Unlock()
	return c.meet(f, r)
}

// meet carries a request out, answers it, and lets the fault have its way
// with both.
func (c *conn) meet(f Fault, r request) bool {
	switch f.Kind {
	case Delay:
		if !c.ils.wait(f) {
			return false
		}
	case Drop:
		return true
	case CutBefore:
		c.cut(f.FIN)
		return false
	}
	var a answer
	if f.Kind.executed() {
		a = c.execute(r)
	} else {
		a = c.instead(f, r)
		c.last = a
	}
	if a.hangUp {
		return false
	}
	switch f.Kind {
	case Lost:
		return true
	case CutAfter:
		c.cut(f.FIN)
		return false
	case Late:
		if !c.ils.wait(f) {
			return false
		}
	}
	return c.send(a, f, r)
}

// send writes an answer as far as the fault lets it.
func (c *conn) send(a answer, f Fault, r request) bool {
	if len(a.body) == 0 {
		return true
	}
	switch f.Kind {
	case OtherAY:
		if a.seq = '4'; r.seq() == "4" {
			a.seq = '5'
		}
	case CRLF:
		a.terminator = "\r\n"
	case OtherItem:
		a.body = renamed(a.body, r.field("AB"), f.Text)
	}
	frame := a.frame()
	switch f.Kind {
	case BadChecksum:
		frame = spoiled(frame)
	case Doubled:
		return c.write(frame, frame)
	case Halved:
		return c.writePart(frame[:len(frame)/2])
	case CutAnswer:
		c.writePart(frame[:len(frame)/2])
		c.cut(f.FIN)
		return false
	}
	return c.write(frame)
}

// instead is the answer to a request that a fault keeps from being carried
// out.
func (c *conn) instead(f Fault, r request) answer {
	switch f.Kind {
	case BareResend:
		return c.resend(r)
	case Status:
		return c.answer(r, c.status())
	}
	text := f.Text
	if text == "" {
		text = "Problems handling the request: the system is busy"
	}
	return answer{body: []byte(text), bare: true, terminator: c.ils.opts.Terminator}
}

// write sends frames whole, in one write, and books them.
func (c *conn) write(frames ...[]byte) bool {
	if len(frames[0]) == 0 {
		return true
	}
	if !c.writePart(bytes.Join(frames, nil)) {
		return false
	}
	c.ils.mu.Lock()
	defer c.ils.mu.Unlock()
	for _, frame := range frames {
		r := parse(bytes.TrimRight(frame, "\r\n"), c.ils.opts.Delimiter)
		c.ils.note(Entry{Event: EventAnswer, Conn: c.number, Code: r.code, Seq: r.seq(), Item: r.field("AB")})
	}
	return true
}

func (c *conn) writePart(b []byte) bool {
	if !c.passable() {
		return false
	}
	_, err := c.tcp.Write(b)
	return err == nil
}

// ended gives a literal answer its terminator.
func (c *conn) ended(literal []byte) []byte {
	if len(literal) == 0 || bytes.HasSuffix(literal, []byte("\r")) || bytes.HasSuffix(literal, []byte("\n")) {
		return literal
	}
	return fmt.Appendf(nil, "%s%s", literal, c.ils.opts.Terminator)
}

// renamed puts another item into an answer.
func renamed(body []byte, item, other string) []byte {
	if other == "" {
		other = "39999000000000"
	}
	return bytes.Replace(body, []byte("AB"+item), []byte("AB"+other), 1)
}

// spoiled changes the last digit of a frame's checksum; a frame without one
// gets a wrong one.
func spoiled(frame []byte) []byte {
	end := len(bytes.TrimRight(frame, "\r\n"))
	if i := end - 6; i >= 0 && string(frame[i:i+2]) == "AZ" {
		out := bytes.Clone(frame)
		if out[end-1]++; out[end-1] == '9'+1 || out[end-1] == 'F'+1 {
			out[end-1] = '0'
		}
		return out
	}
	return fmt.Appendf(nil, "%sAZ0000%s", frame[:end], frame[end:])
}
