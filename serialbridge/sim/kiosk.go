package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"sip2gate/serialbridge/sip2"
)

// Line is what a [Kiosk] speaks over: a net.Conn, or an open terminal.
type Line interface {
	io.ReadWriter
	SetReadDeadline(time.Time) error
}

// KioskOptions are the settings of a [Kiosk]. The zero value is a station of
// institution MAIN without error detection that waits as long as its context
// lets it and never repeats by itself.
type KioskOptions struct {
	// Institution is AO; empty means MAIN.
	Institution string
	// ErrorDetection puts AY and AZ at the end of every frame.
	ErrorDetection bool
	// Sequence is the first AY used, 0 to 9.
	Sequence int
	// Terminator ends the frames sent; empty means CR.
	Terminator string
	// Delimiter ends a field; 0 means '|'.
	Delimiter byte
	// Clock gives the transaction dates; nil means time.Now.
	Clock func() time.Time
	// Short leaves the nb due date out of Checkout and Renew.
	Short bool
	// Timeout is how long Exchange waits for an answer before it sends the
	// same bytes again, Retries times at most; 0 means as long as the context.
	Timeout time.Duration
	Retries int
}

// ErrNoAnswer says that all transmissions of a frame went unanswered.
var ErrNoAnswer = errors.New("no answer")

// Kiosk is a virtual self-check station. One goroutine may send while another
// reads; otherwise it is used by one at a time.
type Kiosk struct {
	line  Line
	opts  KioskOptions
	lines splitter
	buf   []byte
	seq   int
	last  []byte // the last frame sent, with its terminator
}

// NewKiosk makes a kiosk on a line that the caller opened and will close.
func NewKiosk(line Line, opts KioskOptions) *Kiosk {
	setDefault(&opts.Institution, "MAIN")
	setDefault(&opts.Terminator, "\r")
	setDefault(&opts.Delimiter, '|')
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	return &Kiosk{line: line, opts: opts, buf: make([]byte, 4096), seq: opts.Sequence, lines: splitter{lf: opts.Terminator == "\n"}}
}

// Send writes a frame in one write, with the terminator unless it ends in CR
// or LF.
func (k *Kiosk) Send(frame []byte) error {
	k.last = append([]byte(nil), frame...)
	if n := len(frame); n == 0 || frame[n-1] != '\r' && frame[n-1] != '\n' {
		k.last = append(k.last, k.opts.Terminator...)
	}
	return k.Repeat()
}

// Repeat sends the last frame again, the same bytes.
func (k *Kiosk) Repeat() error {
	if _, err := k.line.Write(k.last); err != nil {
		return fmt.Errorf("kiosk: send: %w", err)
	}
	return nil
}

// Read returns the next frame, without terminator and the bytes below 0x21
// before it; blank lines are skipped. It ends with ctx, keeping what it has of
// a frame for the next Read.
func (k *Kiosk) Read(ctx context.Context) ([]byte, error) {
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		k.line.SetReadDeadline(time.Unix(1, 0))
		close(fired)
	})
	defer func() {
		if !stop() {
			<-fired // or it would hit the next Read
		}
		k.line.SetReadDeadline(time.Time{})
	}()
	for {
		for frame, ok := k.lines.next(); ok; frame, ok = k.lines.next() {
			if len(frame) > 0 {
				return frame, nil
			}
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("kiosk: read: %w", context.Cause(ctx))
		}
		n, err := k.line.Read(k.buf)
		k.lines.add(k.buf[:n])
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && n == 0 {
			return nil, fmt.Errorf("kiosk: read: %w", err)
		}
	}
}

// Exchange sends a frame and returns the first answer, repeating the frame as
// the options say. The error is [ErrNoAnswer] when all was in vain.
func (k *Kiosk) Exchange(ctx context.Context, frame []byte) ([]byte, error) {
	if err := k.Send(frame); err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		answer, err := k.await(ctx)
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return answer, err
		}
		if try >= k.opts.Retries {
			return nil, fmt.Errorf("kiosk: %w after %d transmissions", ErrNoAnswer, try+1)
		}
		if err := k.Repeat(); err != nil {
			return nil, err
		}
	}
}

func (k *Kiosk) await(ctx context.Context) ([]byte, error) {
	if k.opts.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, k.opts.Timeout)
		defer cancel()
	}
	return k.Read(ctx)
}

// ask is Exchange with the answer parsed; the frame gets its trailer here.
func (k *Kiosk) ask(ctx context.Context, body []byte) (sip2.Message, error) {
	answer, err := k.Exchange(ctx, k.Frame(body))
	if err != nil {
		return sip2.Message{}, err
	}
	return sip2.ParseAnswer(answer, k.opts.Delimiter), nil
}

// Frame gives a message the next AY and its AZ, if the kiosk uses them. A 97
// never has an AY.
func (k *Kiosk) Frame(body []byte) []byte {
	if !k.opts.ErrorDetection {
		return body
	}
	body = slices.Clip(body) // the caller's bytes stay his
	if string(body) == "97" {
		return sip2.AppendTrailer(body, false, 0)
	}
	body = sip2.AppendTrailer(body, true, byte('0'+k.seq%10))
	k.seq = (k.seq + 1) % 10
	return body
}
