package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"sip2gate/serialbridge/sip2"
)

// Options are the settings of an [ILS]. The zero value is a [Naive] system
// that knows every patron and every item and checks nothing.
type Options struct {
	Persona Persona
	// Clock gives the time for dates and the journal; nil means time.Now.
	// Delays of faults run on the machine's clock.
	Clock func() time.Time
	// Journal gets one JSON object a line, without patrons; nil means none.
	Journal io.Writer
	// Keep is how many journal entries memory holds at least; 0 means 50,000.
	// Totals are kept for ever.
	Keep int

	// Terminator ends the frames sent; empty means the persona's. With "\n"
	// frames received end in LF too, otherwise in CR.
	Terminator string
	// Delimiter ends a field; 0 means '|'.
	Delimiter byte
	// ErrorDetection says when answers have a trailer.
	ErrorDetection ErrorDetection
	// CheckAZ answers 96 to a frame with a wrong checksum, unexecuted.
	CheckAZ bool
	// CheckAY answers 96 to a frame whose AY is not the next after that of the
	// frame before it, as Invenio does.
	CheckAY bool
	// RefuseShort answers 96 to an 11 or 29 without the nb due date field.
	RefuseShort bool
	// RequireStatus leaves 2.00 messages (all but 93, 99, 97, 23, 11, 09, 01)
	// unanswered on a connection that has not sent a 99 with version 2, as
	// Koha and Evergreen do.
	RequireStatus bool
	// NoReads switches 17 and 63 off; BX says so.
	NoReads bool
	// Unknown is what unknown and switched off codes get.
	Unknown Reaction

	// Institution is AO; empty means MAIN.
	Institution string
	// LoanPeriod is the length of a loan and of a renewal; 0 means 21 days.
	LoanPeriod time.Duration
	// RenewalLimit is how often one loan can be renewed; 0 means 5, less means
	// that no renewals are allowed, and the 98 says so.
	RenewalLimit int
	// Patrons and Items by barcode. Others are made up on first use unless
	// KnownOnly is set.
	Patrons   map[string]Patron
	Items     map[string]Item
	KnownOnly bool
	// Accounts are the passwords (CO) by user (CN); empty means that any login
	// does and none is needed.
	Accounts map[string]string
}

// ILS is a library system simulator on a TCP port. All methods may be called
// at any time from any goroutine, but not from inside a function given to
// [ILS.WaitFor].
type ILS struct {
	opts   Options
	habits traits
	done   chan struct{} // closed by Close
	served sync.WaitGroup

	mu        sync.Mutex
	changed   *sync.Cond // journal, listener, blocks
	journal   *journal
	library   *library
	faults    []Fault
	script    func(conn int, request sip2.Message) ([]byte, bool)
	listener  *net.TCPListener // nil while the port is closed
	address   string           // of the first Listen, with its port
	noAccept  bool
	blackHole bool
	conns     map[*conn]struct{}
	closed    bool
}

// New makes a simulator that does not listen yet. It panics on a persona that
// does not exist.
func New(opts Options) *ILS {
	if opts.Persona == "" {
		opts.Persona = Naive
	}
	habits, ok := personas[opts.Persona]
	if !ok {
		panic("sim: no persona " + string(opts.Persona))
	}
	setDefault(&opts.Terminator, habits.terminator)
	setDefault(&opts.Delimiter, '|')
	setDefault(&opts.Institution, "MAIN")
	setDefault(&opts.LoanPeriod, 21*24*time.Hour)
	setDefault(&opts.RenewalLimit, 5)
	setDefault(&opts.Keep, 50_000)
	setDefault(&opts.Unknown, habits.unknown)
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	l := &ILS{opts: opts, habits: habits, done: make(chan struct{}), conns: map[*conn]struct{}{}}
	l.changed = sync.NewCond(&l.mu)
	l.journal = newJournal(opts.Journal, opts.Clock, opts.Keep)
	l.library = newLibrary(&l.opts, habits, l.note)
	return l
}

func setDefault[T comparable](to *T, value T) {
	if *to == *new(T) {
		*to = value
	}
}

// Start makes a simulator on a free port of 127.0.0.1 and serves it until
// Close.
func Start(opts Options) (*ILS, error) {
	l := New(opts)
	if err := l.Listen("127.0.0.1:0"); err != nil {
		return nil, err
	}
	l.served.Go(func() { l.accept() }) // Close waits for it
	return l, nil
}

// Listen opens the port, or opens it again after [ILS.StopListening]; Serve
// goes on there. Connections are accepted once Serve runs.
func (l *ILS) Listen(address string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("listen on %s: %w", address, net.ErrClosed)
	}
	if l.listener != nil {
		return fmt.Errorf("listen on %s: already listening on %s", address, l.address)
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return err // net says what, where and why
	}
	l.listener = ln.(*net.TCPListener)
	l.address = ln.Addr().String()
	l.changed.Broadcast()
	return nil
}

// StopListening closes the port: new connections are refused, those there are
// go on. [ILS.Listen] or [ILS.ClearFaults] opens it again.
func (l *ILS) StopListening() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener == nil {
		return nil
	}
	err := l.listener.Close()
	l.listener = nil
	l.changed.Broadcast()
	return err
}

// Addr is the host:port that the simulator listens on, or listened on last.
func (l *ILS) Addr() string { return look(l, func(s Snapshot) string { return s.ils.address }) }

// Serve accepts connections until ctx ends or Close is called; then it closes
// all and returns nil.
func (l *ILS) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { l.shut() })
	defer stop()
	err := l.accept()
	return errors.Join(err, l.Close())
}

// Close ends the port, all connections and Serve, and waits for what they
// were doing.
func (l *ILS) Close() error {
	err := l.shut()
	l.served.Wait()
	return err
}

func (l *ILS) shut() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	close(l.done)
	for c := range l.conns {
		c.tcp.Close()
	}
	l.changed.Broadcast()
	if l.listener == nil {
		return nil
	}
	return l.listener.Close()
}

// HangUp ends all connections: in order, or with a reset.
func (l *ILS) HangUp(reset bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.cut(!reset)
	}
}

// Script lets answer see every request before the ILS does. What it handles
// is not carried out and meets no fault: the ILS writes the bytes it returns,
// with the terminator unless they end in CR or LF, or nothing. answer may wait
// and may call the ILS. nil ends the script.
func (l *ILS) Script(answer func(conn int, request sip2.Message) ([]byte, bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.script = answer
}

// note books an entry and wakes those who wait for it. The caller holds the
// lock.
func (l *ILS) note(e Entry) {
	l.journal.add(e)
	l.changed.Broadcast()
}

// accept serves connections until the ILS is closed.
func (l *ILS) accept() error {
	for {
		ln := l.acceptable()
		if ln == nil {
			return nil
		}
		tcp, err := ln.AcceptTCP()
		switch {
		case err == nil:
			l.admit(tcp)
		case errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded):
			// The port was closed or blocked: acceptable knows.
		default:
			return fmt.Errorf("accept a connection to the ILS simulator: %w", err)
		}
	}
}

// acceptable waits for a port to accept on; nil once the ILS is closed.
func (l *ILS) acceptable() *net.TCPListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && (l.listener == nil || l.noAccept) {
		l.changed.Wait()
	}
	if l.closed {
		return nil
	}
	l.listener.SetDeadline(time.Time{})
	return l.listener
}

// admit serves a connection. One that came at the moment when accepting was
// blocked waits here.
func (l *ILS) admit(tcp *net.TCPConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.noAccept && !l.closed {
		l.changed.Wait()
	}
	if l.closed {
		tcp.Close()
		return
	}
	c := &conn{ils: l, tcp: tcp, number: l.journal.conns + 1}
	l.conns[c] = struct{}{}
	l.note(Entry{Event: EventConnect, Conn: c.number})
	l.served.Go(c.serve) // Close waits for it
}

// block starts a fault of the line: whoever sits in Accept or Read is thrown
// out by a deadline in the past and waits for unblock. The caller holds the
// lock.
func (l *ILS) block(k Kind) {
	past := time.Unix(1, 0)
	if k == NoAccept {
		l.noAccept = true
		if l.listener != nil {
			l.listener.SetDeadline(past)
		}
		return
	}
	l.blackHole = true
	for c := range l.conns {
		c.tcp.SetReadDeadline(past)
	}
}

func (l *ILS) unblock() {
	l.noAccept, l.blackHole = false, false
	l.changed.Broadcast()
}
