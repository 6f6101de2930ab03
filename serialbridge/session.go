package serialbridge

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"sip2gate/serialbridge/port"
	"sip2gate/serialbridge/sip2"
)

const (
	// halfFrameAge: half a frame followed by so long a silence is dropped, or
	// it would swallow the retransmission.
	halfFrameAge = 5 * time.Second
	// firstFrameAge: a connection that has sent no whole frame by then is
	// closed.
	firstFrameAge = time.Minute
	// maxQueue bounds the requests that wait behind the outstanding one.
	maxQueue = 8
	// answerSize stands for the answer's length when its time on the line is
	// set aside; only lists are longer.
	answerSize = 512
	// writeTime is how long the line may take none of an answer's bytes.
	writeTime = 10 * time.Second
)

// session is one connection of a kiosk. Its loop alone owns the port's writing
// side and all fields below; a reader and one worker for each wait talk to it
// through channels, and run returns when the reader has ended.
type session struct {
	st   *station
	peer *peer
	conn port.Conn
	addr string // of a kiosk on a listening port, without the port number

	in    chan inbound
	done  chan *wait
	over  chan struct{} // closed when the loop has ended
	spoke atomic.Bool   // a whole frame has come

	crlf        atomic.Bool
	outstanding *wait
	queue       []*wait
	lastFrame   []byte // written last, without terminator
	lastAnswers bool   // it answered the newest request
	closing     bool
}

type inbound struct {
	frame []byte
	at    time.Time
	batch uint64 // frames of one read share it
}

func newSession(st *station, p *peer, conn port.Conn, addr string) *session {
	return &session{
		st: st, peer: p, conn: conn, addr: addr,
		in: make(chan inbound), done: make(chan *wait), over: make(chan struct{}),
	}
}

// run serves the connection until it ends or ctx does, and returns why. When
// ctx ends, the outstanding wait still gets its answer, and no more is read.
// Workers may be owed an answer by the ILS then: the peer's close waits for
// those.
func (s *session) run(ctx context.Context) error {
	var reader sync.WaitGroup
	var readErr error
	reader.Go(func() { readErr = s.read(); close(s.in) })
	defer reader.Wait()
	defer s.conn.Close()
	defer close(s.over)
	defer s.endAll()

	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	heart := s.st.b.hearts.start("station " + s.st.cfg.Name)
	defer heart.stop()
	frames, stop := s.in, ctx.Done()
	for {
		heart.beat()
		next := heartbeat
		if s.outstanding != nil {
			next = min(next, time.Until(s.outstanding.until()))
		}
		timer.Reset(next)
		select {
		case in, ok := <-frames:
			if !ok {
				return readErr
			}
			s.frame(in)
		case <-stop:
			frames, stop = nil, nil
			for _, w := range s.queue {
				w.end()
			}
			s.queue = nil
		case w := <-s.done:
			s.finished(w)
		case <-timer.C:
			if w := s.outstanding; w != nil && time.Until(w.until()) <= 0 {
				s.finish(w, result{refuse: true, why: w.why()})
			}
		}
		switch {
		case s.closing:
			return errClosedForWAN
		case stop == nil && s.outstanding == nil:
			return ctx.Err()
		}
	}
}

var errClosedForWAN = errors.New("closed because the ILS cannot be reached (wan_down = close)")

func (s *session) endAll() {
	for _, w := range append(s.queue, s.outstanding) {
		if w != nil {
			w.end()
		}
	}
}

// read turns bytes into frames until the line is gone.
func (s *session) read() error {
	scan := sip2.NewScanner(s.st.cfg.Terminator)
	buf := make([]byte, 4096)
	begun := time.Now()
	telnet := false
	for batch := uint64(1); ; batch++ {
		var deadline time.Time
		switch {
		case scan.Partial() && (s.spoke.Load() || s.addr == ""):
			deadline = time.Now().Add(halfFrameAge)
		case s.addr != "" && !s.spoke.Load():
			deadline = begun.Add(firstFrameAge)
			if scan.Partial() && time.Until(deadline) > halfFrameAge {
				deadline = time.Now().Add(halfFrameAge)
			}
		}
		if err := s.conn.SetReadDeadline(deadline); err != nil {
			return err
		}
		n, err := s.conn.Read(buf)
		now := time.Now()
		scan.Write(buf[:n])
		for {
			frame, ok := scan.Next()
			if !ok {
				break
			}
			s.spoke.Store(true)
			s.crlf.Store(scan.CRLF())
			select {
			case s.in <- inbound{bytes.Clone(frame), now, batch}:
			case <-s.over:
				return nil
			}
		}
		if notice := scan.Notice(); notice.TooLong > 0 || notice.Skipped > 0 || notice.Telnet {
			s.report(notice, &telnet)
		}
		switch {
		case err == nil:
		case !errors.Is(err, os.ErrDeadlineExceeded) || gone(err):
			return err
		case s.addr != "" && !s.spoke.Load() && time.Since(begun) >= firstFrameAge:
			return errors.New("no whole frame came within a minute")
		case scan.Partial():
			s.st.log.Warn("half_frame_dropped", "length", scan.Drop())
		}
	}
}

func (s *session) report(n sip2.Notice, telnet *bool) {
	if n.TooLong > 0 {
		s.st.log.Warn("frame_too_long", "limit", sip2.MaxFrame)
	}
	if n.Telnet && !*telnet {
		*telnet = true
		s.st.log.Warn("telnet_bytes", "hint", "the kiosk is set to telnet: set it to plain sockets (raw TCP)")
	} else if n.Skipped > 0 {
		s.st.log.Debug("noise_skipped", "length", n.Skipped)
	}
}

// start gives a wait to a worker. The worker ends with the exchange, not with
// the session: an answer owed by the ILS is read and stored all the same.
func (s *session) start(w *wait) {
	s.outstanding = w
	s.peer.workers.Go(func() {
		w.result = w.serve()
		select {
		case s.done <- w:
		case <-s.over:
		}
	})
}

// finished takes a worker's result, unless the wait is over already.
func (s *session) finished(w *wait) {
	if w == s.outstanding {
		s.finish(w, w.result)
	}
}

// finish answers the outstanding wait, once, and goes on to the next.
func (s *session) finish(w *wait, r result) {
	w.end()
	s.outstanding = nil
	s.deliver(w, r)
	if len(s.queue) > 0 && !s.closing {
		next := s.queue[0]
		s.queue = s.queue[1:]
		s.start(next)
	}
}

// deliver writes the one answer of a wait.
func (s *session) deliver(w *wait, r result) {
	if r.unheard {
		return
	}
	frame := r.frame
	if frame == nil {
		frame = s.refuse(w, r)
	} else {
		frame = fit(frame, w.newest, r.replay, s.st.b.srv.Trailers())
	}
	if frame == nil {
		return
	}
	if s.write(frame) && r.record != nil {
		s.st.b.gate.Delivered(context.Background(), *r.record)
	}
}

// write sends one frame with the terminator that the kiosk uses itself, in one
// write. A line that takes nothing ends the session, and no other station's.
func (s *session) write(frame []byte) bool {
	buf := make([]byte, 0, len(frame)+2)
	buf = append(buf, frame...)
	switch t := s.st.cfg.Terminator; {
	case t == sip2.TerminatorLF:
		buf = append(buf, '\n')
	case t == sip2.TerminatorCRLF, t == sip2.TerminatorAuto && s.crlf.Load():
		buf = append(buf, '\r', '\n')
	default:
		buf = append(buf, '\r')
	}
	s.lastFrame, s.lastAnswers = frame, true
	limit := writeTime + s.wireTime(len(buf))
	err := s.conn.SetWriteDeadline(time.Now().Add(limit))
	if err == nil {
		_, err = s.conn.Write(buf)
	}
	if err != nil {
		s.st.log.Debug("answer_not_written", "error", err.Error())
		if l, ok := s.conn.(interface{ SetLinger(int) error }); ok {
			_ = l.SetLinger(0) // what the kernel still holds of it must not come late
		}
		s.conn.Close() // the reader ends, and with it the session
		return false
	}
	return true
}

func (s *session) wireTime(n int) time.Duration {
	if s.st.cfg.WireTime == nil {
		return 0
	}
	return s.st.cfg.WireTime(n)
}

// deadlineFor is when a transmission that came at a given time must have its
// answer: the kiosk's patience, less a second and the answer's time on the line.
func (s *session) deadlineFor(at time.Time) time.Time {
	return at.Add(s.peer.patient.shown - time.Second - s.wireTime(answerSize))
}
