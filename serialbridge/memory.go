package serialbridge

import (
	"bytes"
	"context"
	"sync"

	"sip2gate/dedup"
	"sip2gate/serialbridge/sip2"
)

// memory is what a station keeps over restarts: the login that the ILS last
// accepted from it, the 99 after it, and the last 98. The store seals it.
type memory struct {
	st *station

	mu           sync.Mutex
	login        []byte // the newest accepted 93
	status       []byte // the newest 99 that was answered
	statusAnswer []byte // the newest 98
	accepted     [][]byte
	detects      bool // of a line: its kiosk has sent a right trailer
}

// acceptedLogins bounds how many different logins of one listening port are
// kept.
const acceptedLogins = 16

func newMemory(st *station) *memory {
	m := &memory{st: st}
	m.login = m.load("login")
	m.status = m.load("status")
	m.statusAnswer = m.load("status-answer")
	m.detects = m.load("detects") != nil
	for _, frame := range bytes.Split(m.load("accepted"), []byte{'\r'}) {
		if len(frame) > 0 {
			m.accepted = append(m.accepted, frame)
		}
	}
	if m.statusAnswer != nil {
		st.b.srv.Learn(m.statusAnswer, st.cfg.Delimiter)
	}
	return m
}

func (m *memory) name(what string) string { return "station/" + m.st.cfg.Name + "/" + what }

func (m *memory) load(what string) []byte {
	v, _ := m.st.b.gate.Store().Value(m.name(what))
	return v
}

func (m *memory) save(what string, value []byte) {
	err := m.st.b.gate.Store().Put(context.Background(), m.name(what), value, dedup.Lazy)
	if err != nil {
		m.st.log.Warn("not_remembered", "what", what, "error", err.Error())
	}
}

// keepLogin notes a 93 that the ILS has accepted.
func (m *memory) keepLogin(frame []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !bytes.Equal(m.login, frame) {
		m.login = bytes.Clone(frame)
		m.save("login", m.login)
	}
	if m.knows(frame) {
		return
	}
	m.accepted = append(m.accepted, bytes.Clone(frame))
	most := acceptedLogins
	if m.st.cfg.Listen == nil {
		most = 1 // one kiosk, one login: the last
	}
	if len(m.accepted) > most {
		m.accepted = m.accepted[1:]
	}
	m.save("accepted", bytes.Join(m.accepted, []byte{'\r'}))
}

// forgetLogin notes that the ILS has refused a 93 that it once accepted.
func (m *memory) forgetLogin(frame []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	body := sip2.Body(frame, sip2.ReadTrailer(frame))
	kept := m.accepted[:0:0]
	for _, a := range m.accepted {
		if !bytes.Equal(sip2.Body(a, sip2.ReadTrailer(a)), body) {
			kept = append(kept, a)
		}
	}
	if len(kept) != len(m.accepted) {
		m.accepted = kept
		m.save("accepted", bytes.Join(m.accepted, []byte{'\r'}))
	}
}

// keepDetects notes that the kiosk of a line has sent a right trailer.
func (m *memory) keepDetects() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.detects && m.st.cfg.Listen == nil {
		m.detects = true
		m.save("detects", []byte{1})
	}
}

// Accepted reports whether the ILS last accepted this very 93 from this
// station; AY and AZ do not count.
func (m *memory) Accepted(frame []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.knows(frame)
}

func (m *memory) knows(frame []byte) bool {
	body := sip2.Body(frame, sip2.ReadTrailer(frame))
	for _, a := range m.accepted {
		if bytes.Equal(sip2.Body(a, sip2.ReadTrailer(a)), body) {
			return true
		}
	}
	return false
}

// keepStatus notes a 99 that the ILS has answered, and the 98.
func (m *memory) keepStatus(frame, answer []byte) {
	m.mu.Lock()
	if !bytes.Equal(m.status, frame) {
		m.status = bytes.Clone(frame)
		m.save("status", m.status)
	}
	m.mu.Unlock()
	m.keepStatusAnswer(answer)
}

// keepStatusAnswer notes a 98. Its clock does not count: a poll every minute
// must not write every minute.
func (m *memory) keepStatusAnswer(answer []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	same := sameStatus(m.statusAnswer, answer, m.st.cfg.Delimiter)
	m.statusAnswer = bytes.Clone(answer)
	if !same {
		m.save("status-answer", m.statusAnswer)
	}
}

func sameStatus(a, b []byte, delim byte) bool {
	ma, mb := sip2.ParseAnswer(a, delim), sip2.ParseAnswer(b, delim)
	if ma.Code != mb.Code {
		return false
	}
	const date, after = 14, 14 + 18 // after code, six flags, timeout, retries
	ba, bb := sip2.Body(a, ma.Trailer), sip2.Body(b, mb.Trailer)
	return len(ba) == len(bb) && len(ba) > after &&
		bytes.Equal(ba[:date], bb[:date]) && bytes.Equal(ba[after:], bb[after:])
}

// status98 is the last 98 that this ILS sent this station; nil: none yet.
func (m *memory) status98() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.statusAnswer
}

// newest is the login for the gate's own reads.
func (m *memory) newest() (login, status []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.login, m.status
}

// configuredLogin is a 93 with the account of the configuration, nil if there
// is none. UID and PWD algorithm 0: plain text (SIP2 2.00).
func (b *Bridge) configuredLogin(delim byte, trailer bool) []byte {
	l := b.cfg.Login
	if l.User == "" {
		return nil
	}
	frame := []byte("9300")
	frame = sip2.AppendField(frame, "CN", []byte(l.User), delim)
	frame = sip2.AppendField(frame, "CO", []byte(l.Password), delim)
	if l.Location != "" {
		frame = sip2.AppendField(frame, "CP", []byte(l.Location), delim)
	}
	if trailer {
		frame = sip2.AppendTrailer(frame, true, '0')
	}
	return frame
}

func hasTrailer(frame []byte) bool { return sip2.ReadTrailer(frame).Present }
