package serialbridge

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"sip2gate/serialbridge/ils"
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

// session is one connection of a kiosk. Its reader, which is run, the workers
// that serve its waits, and the timer of the deadline take turns: each holds mu
// while it touches what is below it or writes to the port. Hand-overs between
// goroutines would cost a passing frame more than all else.
type session struct {
	st   *station
	peer *peer
	conn port.Conn
	addr string // of a kiosk on a listening port, without the port number
	log  *slog.Logger

	spoke atomic.Bool // a whole frame has come

	mu          sync.Mutex
	crlf        bool // the kiosk ends its frames in CR LF
	outstanding *wait
	queue       []*wait
	deadline    *time.Timer // of the outstanding wait
	lastFrame   []byte      // written last, without terminator
	lastAnswers bool        // it answered the newest request
	stopping    error       // no more is read: why
}

type inbound struct {
	frame []byte
	at    time.Time
	batch uint64 // frames of one read share it
}

func newSession(st *station, p *peer, conn port.Conn, addr string) *session {
	log := st.log
	if addr != "" { // one of several on the port
		log = log.With("kiosk", addr)
	}
	return &session{st: st, peer: p, conn: conn, addr: addr, log: log}
}

// run serves the connection until it ends or ctx does, and returns why. When
// ctx ends, the outstanding wait still gets its answer, and no more is read.
// Workers may be owed an answer by the ILS then: the peer's close waits for
// those.
func (s *session) run(ctx context.Context) error {
	s.deadline = time.AfterFunc(time.Hour, s.expire) // until a wait sets it
	stop := context.AfterFunc(ctx, func() { s.stop(context.Cause(ctx)) })
	defer stop()
	err := s.read()
	s.conn.Close()

	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline.Stop()
	for _, w := range append(s.queue, s.outstanding) {
		if w != nil {
			w.end()
		}
	}
	s.queue, s.outstanding = nil, nil
	if s.stopping != nil {
		return s.stopping
	}
	s.stopping = err
	return err
}

var errClosedForWAN = errors.New("closed because the ILS cannot be reached (wan_down = close)")

// stop takes no more frames, and closes the line when what is outstanding has
// been answered.
func (s *session) stop(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping != nil {
		return
	}
	s.stopping = why
	for _, w := range s.queue {
		w.end()
	}
	s.queue = nil
	if s.outstanding == nil {
		s.conn.Close()
	}
}

// expire answers the outstanding wait when its time is up.
func (s *session) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.outstanding
	switch {
	case w == nil:
	case time.Until(w.until()) > 0: // a newer transmission has moved it
		s.deadline.Reset(time.Until(w.until()))
	default:
		s.finish(w, result{why: w.why()})
	}
}

// read turns bytes into frames until the line is gone.
func (s *session) read() error {
	scan := sip2.NewScanner(s.st.cfg.Terminator)
	buf := make([]byte, 4096)
	begun := time.Now()
	heard := begun // when the newest byte came
	telnet := false
	heart := s.st.b.hearts.start("station " + s.st.cfg.Name)
	defer heart.stop()
	for batch := uint64(1); ; batch++ {
		heart.beat()
		wake := time.Now().Add(heartbeat)
		if scan.Partial() {
			wake = earlier(wake, heard.Add(halfFrameAge))
		}
		if s.addr != "" && !s.spoke.Load() {
			wake = earlier(wake, begun.Add(firstFrameAge))
		}
		if err := s.conn.SetReadDeadline(wake); err != nil {
			return err
		}
		n, err := s.conn.Read(buf)
		now := time.Now()
		if n > 0 {
			heard = now
			scan.Write(buf[:n])
		}
		for {
			frame, ok := scan.Next()
			if !ok {
				break
			}
			s.spoke.Store(true)
			s.mu.Lock()
			s.crlf = scan.CRLF()
			if s.stopping == nil {
				s.frame(inbound{bytes.Clone(frame), now, batch})
			}
			s.mu.Unlock()
		}
		if notice := scan.Notice(); notice.TooLong > 0 || notice.Skipped > 0 || notice.Telnet {
			s.report(notice, &telnet)
		}
		switch {
		case err != nil && (!errors.Is(err, os.ErrDeadlineExceeded) || gone(err)):
			return err
		case s.addr != "" && !s.spoke.Load() && now.Sub(begun) >= firstFrameAge:
			return errors.New("no whole frame came within a minute")
		case scan.Partial() && now.Sub(heard) >= halfFrameAge:
			s.log.Warn("half_frame_dropped", "length", scan.Drop())
		}
	}
}

func (s *session) report(n sip2.Notice, telnet *bool) {
	if n.TooLong > 0 {
		s.log.Warn("frame_too_long", "limit", sip2.MaxFrame)
	}
	if n.Telnet && !*telnet {
		*telnet = true
		s.log.Warn("telnet_bytes", "hint", "the kiosk is set to telnet: set it to plain sockets (raw TCP)")
	} else if n.Skipped > 0 {
		s.log.Debug("noise_skipped", "length", n.Skipped)
	}
}

// start sends a request on its way. One that needs no decision goes straight
// to the link if that is free; others get a worker. Either ends with the
// exchange, not with the session: an answer owed by the ILS is read and stored
// all the same.
func (s *session) start(w *wait) {
	s.outstanding = w
	s.deadline.Reset(time.Until(w.until()))
	s.peer.workers.Add(1)
	if s.try(w) {
		return
	}
	go func() { // peer.close waits for it
		defer s.peer.workers.Done()
		s.take(w, w.serve())
	}()
}

// tryLimit is what a link's send buffer surely takes without waiting.
const tryLimit = 2048

func (s *session) try(w *wait) bool {
	if w.kind == checkout || w.kind == change || len(w.frame) > tryLimit {
		return false
	}
	return s.peer.link.Try(ils.Request{Frame: w.frame, Ready: w.ready, Replay: w.replays()}, func(a ils.Answer, err error) {
		defer s.peer.workers.Done()
		s.take(w, w.passed(&a, err))
	})
}

// take takes in what a wait has come to, unless it is over already.
func (s *session) take(w *wait, r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w == s.outstanding {
		s.finish(w, r)
	}
}

// finish answers the outstanding wait, once, and goes on to the next.
func (s *session) finish(w *wait, r result) {
	w.end()
	s.outstanding = nil
	s.deliver(w, r)
	switch {
	case s.stopping != nil:
		s.conn.Close()
	case len(s.queue) > 0:
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
	case t == sip2.TerminatorCRLF, t == sip2.TerminatorAuto && s.crlf:
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
		s.log.Debug("answer_not_written", "error", err.Error())
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
