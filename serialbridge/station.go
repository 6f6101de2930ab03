package serialbridge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"sip2gate/serialbridge/backoff"
	"sip2gate/serialbridge/ils"
	"sip2gate/serialbridge/port"
)

// standsAfter is how long a line must have been open to count as working though
// nothing has come over it.
const standsAfter = 30 * time.Second

// drainTime bounds how long a link may take to end when a station has gone or
// the gate stops: an answer owed by the ILS is waited for, and what had to go
// before its request.
func (st *station) drainTime() time.Duration { return 3*st.b.srv.Timeout() + 5*time.Second }

// station is one configured station: its port, opened for ever, and what all
// its connections share.
type station struct {
	b   *Bridge
	cfg Station
	log *slog.Logger
	mem *memory

	pulse  pulse       // wakes settleDoubts
	outage atomic.Bool // an ILS link was lost, and no kiosk has had an answer since

	tried     chan struct{} // closed when the port was opened or failed to, once
	triedOnce sync.Once

	mu       sync.Mutex
	open     bool
	why      string
	lost     bool       // it was open until why came about
	woken    time.Time  // when the settling loop was told last that the ILS is back
	sessions []*session // of a listening station
	traces   map[string][]*history
	line     *peer          // of a serial or dial station: outlives its connections
	conns    sync.WaitGroup // of a listening station: its kiosks' connections
}

func newStation(b *Bridge, cfg Station) *station {
	if cfg.Timeout == 0 {
		cfg.Timeout = 15 * time.Second
	}
	if cfg.Delimiter == 0 {
		cfg.Delimiter = '|'
	}
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = 32
	}
	st := &station{
		b: b, cfg: cfg, log: b.log.With("station", cfg.Name),
		tried: make(chan struct{}), traces: make(map[string][]*history),
		why:   "not opened yet",
		pulse: make(pulse, 1),
	}
	st.mem = newMemory(st)
	if cfg.Listen == nil {
		st.line = newPeer(st, st.mem.login, st.mem.status)
		// A line has one kiosk: what its trailers were, they are.
		st.line.checks.right.Store(st.mem.detects)
	}
	return st
}

func (st *station) state() StationState {
	st.mu.Lock()
	defer st.mu.Unlock()
	s := StationState{Name: st.cfg.Name, Open: st.open, Why: st.why}
	if st.line != nil {
		s.LinkBad = st.line.link.Failed()
	}
	for _, se := range st.sessions {
		s.LinkBad = s.LinkBad || se.peer.link.Failed()
	}
	return s
}

// set notes whether the port is open, with an event when that changes.
func (st *station) set(open bool, err error) {
	st.mu.Lock()
	was, why, lost := st.open, st.why, st.lost
	st.open, st.why, st.lost = open, "", was && !open
	if err != nil {
		st.why = err.Error()
	}
	changed := was != open || why != st.why
	st.mu.Unlock()
	if lost && errors.Is(err, fs.ErrNotExist) {
		changed = false // that the device is not there is why the line was lost
	}
	st.triedOnce.Do(func() { close(st.tried) })
	switch {
	case open && !was:
		st.log.Info("station_up")
	case !open && changed:
		st.log.Warn("station_down", "error", err.Error())
	}
}

func (st *station) run(ctx context.Context) {
	if st.cfg.Listen != nil {
		st.serveListener(ctx)
		return
	}
	defer func() {
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), st.drainTime())
		defer cancel()
		st.line.close(drain)
	}()
	var retry backoff.Timer
	for ctx.Err() == nil {
		conn, err := st.cfg.Open(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			st.set(false, err)
			if retry.Wait(ctx) != nil {
				return
			}
			continue
		}
		st.set(true, nil)
		s := newSession(st, st.line, conn, "")
		begun := time.Now()
		err = s.run(ctx)
		if s.spoke.Load() || time.Since(begun) > standsAfter {
			retry.Reset() // else it may be a terminal server that is in use
		}
		if ctx.Err() == nil {
			st.set(false, fmt.Errorf("the line is gone: %w", err))
			if retry.Wait(ctx) != nil { // a line that opens and ends at once
				return
			}
		}
	}
}

// serveListener opens the port for ever. Connections that stand outlive a
// listener that fails; it returns when all have ended.
func (st *station) serveListener(ctx context.Context) {
	defer st.conns.Wait()
	var retry backoff.Timer
	for ctx.Err() == nil {
		l, err := st.cfg.Listen()
		if err == nil {
			retry.Reset()
			st.set(true, nil)
			err = st.accept(ctx, l)
			l.Close()
		}
		if ctx.Err() != nil {
			return
		}
		st.set(false, err)
		if retry.Wait(ctx) != nil {
			return
		}
	}
}

func (st *station) accept(ctx context.Context, l Listener) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		conn, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		p := newPeer(st, nil, nil)
		s := newSession(st, p, conn, hostOf(conn))
		if !st.admit(s) {
			st.log.Warn("connection_refused", "why", "max_connections", "limit", st.cfg.MaxConnections)
			conn.Close()
			continue
		}
		st.conns.Go(func() {
			_ = s.run(ctx) // how a kiosk's connection ends is nobody's fault
			st.remove(s)
			drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), st.drainTime())
			defer cancel()
			p.close(drain)
		})
	}
}

// admit makes room for a new connection: when all places are taken, the oldest
// one that has sent no whole frame goes.
func (st *station) admit(s *session) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.sessions) >= st.cfg.MaxConnections {
		i := 0
		for i < len(st.sessions) && st.sessions[i].spoke.Load() {
			i++
		}
		if i == len(st.sessions) {
			return false
		}
		st.sessions[i].conn.Close()
		st.sessions = append(st.sessions[:i:i], st.sessions[i+1:]...)
	}
	st.sessions = append(st.sessions, s)
	return true
}

func (st *station) remove(s *session) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for i, other := range st.sessions {
		if other == s {
			st.sessions = append(st.sessions[:i:i], st.sessions[i+1:]...)
			return
		}
	}
}

// hostOf is the address without the port: a kiosk that reconnects keeps it.
func hostOf(conn net.Conn) string {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return conn.RemoteAddr().String()
	}
	return host
}

// peer is one kiosk as far as its bytes show: its link to the ILS, what it has
// sent, how it uses trailers. A serial line has one for ever, a listening port
// one for each connection.
type peer struct {
	st      *station
	link    *ils.Link
	checks  checks
	hist    *history
	patient patience
	dates   dates
	workers sync.WaitGroup

	mu            sync.Mutex
	login, status []byte // the 93 that was accepted and the 99 after it
	institution   []byte // AO of its newest request
}

// newPeer is a kiosk that has logged in with these frames before, if any.
func newPeer(st *station, login, status []byte) *peer {
	return st.peer(login, status, ils.Hooks{
		Up:   func() { st.log.Info("ils_up") },
		Down: func(err error) { st.outage.Store(true); st.log.Warn("ils_down", "error", err.Error()) },
	})
}

// answered notes that a kiosk has had an answer of the ILS. After an outage that
// is the time to read about the doubts of every station; that the gate's own
// reads connect is not, or each would call for the next.
func (b *Bridge) answered() {
	for _, st := range b.stations {
		if st.outage.Load() {
			st.recovered()
		}
	}
}

// recovered wakes the settling loop, at most once a minute: an ILS that answers
// kiosks and no reads would be read at each answer.
func (st *station) recovered() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if time.Since(st.woken) < time.Minute {
		return
	}
	st.woken = time.Now()
	st.outage.Store(false)
	st.pulse.beat()
}

// newReader is nobody's: a link for a read of the gate's own.
func newReader(st *station, login, status []byte) *peer {
	return st.peer(login, status, ils.Hooks{})
}

func (st *station) peer(login, status []byte, hooks ils.Hooks) *peer {
	p := &peer{st: st, hist: new(history), login: login, status: status}
	p.checks.mode = st.b.cfg.Checksum
	p.patient = patience{configured: st.cfg.Timeout, shown: st.cfg.Timeout}
	hooks.Login, hooks.Status = p.replay, st.mem.keepStatusAnswer
	p.link = st.b.srv.NewLink(st.cfg.Delimiter, hooks, st.log)
	if p.login != nil {
		p.link.UseDetection(hasTrailer(p.login))
	}
	return p
}

// replay is what logs a new link in: what the kiosk itself logged in with, or
// the account of the configuration.
func (p *peer) replay() (login, status []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.login == nil {
		return p.st.b.configuredLogin(p.st.cfg.Delimiter, p.checks.right.Load()), p.status
	}
	return p.login, p.status
}

// close ends the peer when its workers have read what the ILS still owed.
func (p *peer) close(ctx context.Context) {
	p.workers.Wait()
	p.link.Close(ctx)
}

// gone reports whether err only says that the connection has ended.
func gone(err error) bool {
	return errors.Is(err, net.ErrClosed) || port.Gone(err)
}
