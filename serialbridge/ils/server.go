// Package ils keeps one link to the library system for each station: connect,
// TLS, login, keep-alive, one request at a time, and the reads that tell
// whether a checkout took place.
package ils

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"time"

	"sip2gate/serialbridge/sip2"
)

// Config says how the library system is reached. The zero value of all but
// Address is usable.
type Config struct {
	Address    string        // host:port; the name is resolved anew at each connect
	Timeout    time.Duration // bounds each of connect, login and answer; default 10 s
	TLS        *tls.Config   // nil: plain TCP
	Terminator sip2.Terminator
	Resolve    []string // reads that settle a doubt, "63" and "17", in order; empty: none

	// DialContext replaces the network dial in tests.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	Logger      *slog.Logger // nil: discards
}

// Server is one library system: how to reach it, and what all links together
// have learnt of its habits. It is safe for concurrent use.
type Server struct {
	cfg Config
	log *slog.Logger

	mu       sync.Mutex
	trailers bool // it has sent a trailer
	right    bool // a 12 of it had a right trailer
	right8   bool // a 12 of it with bytes above 0x7F had one
	charged  bool // it has said 04 for some item: its 18s mean something
	bx       []byte
	magnetic byte // of its last ok=1 12
	desens   byte
}

// NewServer fills in the defaults of cfg.
func NewServer(cfg Config) *Server {
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.DialContext == nil {
		cfg.DialContext = dialer(cfg.Timeout)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{cfg: cfg, log: cfg.Logger, magnetic: 'U', desens: 'Y'}
}

// Timeout is what bounds each of connect, login and answer.
func (s *Server) Timeout() time.Duration { return s.cfg.Timeout }

// Trailers reports whether this ILS has ever sent a checksum.
func (s *Server) Trailers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trailers
}

// Flags are the magnetic media and desensitize characters of its last 12 with
// ok=1, before any 'U' and 'Y'.
func (s *Server) Flags() (magnetic, desensitize byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.magnetic, s.desens
}

// Positions in BX, the supported messages of a 98 (SIP2 2.00).
const (
	bxPatronInformation = 7
	bxItemInformation   = 10
)

// reads reports which of the reads in Resolve this ILS has not disowned.
func (s *Server) reads(code string, position int) bool {
	configured := false
	for _, r := range s.cfg.Resolve {
		configured = configured || r == code
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return configured && (len(s.bx) <= position || s.bx[position] != 'N')
}

// ReadsPatrons reports whether 63 is to be had of this ILS.
func (s *Server) ReadsPatrons() bool { return s.reads("63", bxPatronInformation) }

// ReadsItems reports whether 17 is to be had of this ILS.
func (s *Server) ReadsItems() bool { return s.reads("17", bxItemInformation) }

// Readable reports whether this ILS can be asked about loans at all. One that
// cannot be reached is readable all the same.
func (s *Server) Readable() bool { return s.ReadsPatrons() || s.ReadsItems() }

// Learn takes in a 98 that this ILS sent in an earlier run.
func (s *Server) Learn(status []byte, delim byte) {
	m := sip2.ParseAnswer(status, delim)
	if m.Code == sip2.CodeACSStatus {
		s.learn(&m)
	}
}

// learn notes the habits that an answer shows.
func (s *Server) learn(m *sip2.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trailers = s.trailers || m.Trailer.Present
	switch m.Code {
	case sip2.CodeACSStatus:
		if bx, ok := m.Field("BX"); ok {
			s.bx = append(s.bx[:0], bytes.TrimSpace(bx)...)
		}
	case sip2.CodeItemInformationResponse:
		if string(m.Fixed("circulation_status")) == "04" {
			s.charged = true
		}
	case sip2.CodeCheckoutResponse:
		if m.Trailer.Present && m.Trailer.Valid {
			s.right = true
			s.right8 = s.right8 || sip2.NonASCII(m.Raw)
		}
		if string(m.Fixed("ok")) == "1" {
			if f := m.Fixed("magnetic_media"); len(f) == 1 {
				s.magnetic = f[0]
			}
			if f := m.Fixed("desensitize"); len(f) == 1 {
				s.desens = f[0]
			}
		}
	}
}

// damaged reports whether a 12 was spoilt on the way: too short for its fixed
// part, or with a wrong or no checksum where this ILS is known to send right
// ones. Frames with bytes above 0x7F are judged only once such a frame was
// right: many peers sum characters, not bytes (Koha, java clients).
func (s *Server) damaged(m *sip2.Message, wantTrailer bool) bool {
	if m.Short() {
		return true
	}
	s.mu.Lock()
	known := s.right
	if sip2.NonASCII(m.Raw) {
		known = s.right8
	}
	s.mu.Unlock()
	switch {
	case !known:
		return false
	case m.Trailer.Present:
		return !m.Trailer.Valid
	}
	return wantTrailer
}

func (s *Server) saysCharged() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.charged
}
