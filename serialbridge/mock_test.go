package serialbridge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"sip2gate/serialbridge/sip2"
)

// mock is an ILS with a journal. What its script does not handle it answers
// truthfully from its loans, with the bytes of the cases' frames.
type mock struct {
	t *testing.T

	mu       sync.Mutex
	frames   []received
	loans    map[string]string // item → patron
	made     int               // loans ever opened
	renewed  int
	returned int
	conns    []net.Conn
	serving  sync.WaitGroup
	wires    []bytes.Buffer // what each of them has brought
	script   func(q *request) bool
	connect  func(ctx context.Context) error // nil: at once
	wrap     func(net.Conn) net.Conn         // what the gate gets; nil: a bare pipe
}

type received struct {
	conn int
	at   time.Time
	raw  string // without terminator
}

// request is one frame that the ILS has got.
type request struct {
	m    *mock
	conn net.Conn
	n    int // of the connection, from 1
	nth  int // of its code, from 1
	msg  sip2.Message
}

func newMock(t *testing.T) *mock { return &mock{t: t, loans: make(map[string]string)} }

// on sets the script: it returns true for what it has handled.
func (m *mock) on(script func(q *request) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script = script
}

// connecting sets what happens to a connect; nil: it succeeds.
func (m *mock) connecting(f func(ctx context.Context) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connect = f
}

// refuse is a port that nobody listens on.
func refuse(context.Context) error { return errors.New("connection refused") }

// blackHole is a network that drops everything.
func blackHole(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (m *mock) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	m.mu.Lock()
	connect := m.connect
	m.mu.Unlock()
	if connect != nil {
		if err := connect(ctx); err != nil {
			return nil, err
		}
	}
	here, there := net.Pipe()
	m.mu.Lock()
	m.conns = append(m.conns, there)
	m.wires = append(m.wires, bytes.Buffer{})
	n := len(m.conns)
	m.mu.Unlock()
	m.serving.Go(func() { m.serve(there, n) })
	if m.wrap != nil {
		return m.wrap(here), nil
	}
	return here, nil
}

// hangUp ends all connections.
func (m *mock) hangUp() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.conns {
		c.Close()
	}
}

func (m *mock) serve(c net.Conn, n int) {
	defer c.Close()
	var scan sip2.Scanner
	buf := make([]byte, 4096)
	for {
		k, err := c.Read(buf)
		if err != nil {
			return
		}
		m.mu.Lock()
		m.wires[n-1].Write(buf[:k])
		m.mu.Unlock()
		scan.Write(buf[:k])
		for {
			frame, ok := scan.Next()
			if !ok {
				break
			}
			raw := bytes.Clone(frame)
			m.mu.Lock()
			m.frames = append(m.frames, received{n, time.Now(), string(raw)})
			script := m.script
			q := &request{m: m, conn: c, n: n, msg: sip2.Parse(raw, '|')}
			for _, f := range m.frames {
				if f.raw[:2] == string(raw[:2]) {
					q.nth++
				}
			}
			m.mu.Unlock()
			if script == nil || !script(q) {
				q.truthful()
			}
		}
	}
}

// wire is every byte that a connection, counted from 1, has brought.
func (m *mock) wire(n int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wires[n-1].String()
}

// reply answers with a frame, named or literal, that carries the request's AY
// and a right AZ; without a trailer if the request has none.
func (q *request) reply(frame string) { q.raw(q.stamped(frame)) }

// stamped is what reply sends.
func (q *request) stamped(frame string) string {
	f := strings.TrimRight(string(frameOf(q.m.t, frame)), "\r\n")
	body := sip2.Body([]byte(f), sip2.ReadTrailer([]byte(f)))
	if q.msg.Trailer.Present {
		body = sip2.AppendTrailer(body, q.msg.Trailer.HasSeq, q.msg.Trailer.Seq)
	}
	return string(body) + "\r"
}

// raw answers with bytes as they are.
func (q *request) raw(b string) {
	_, _ = q.conn.Write([]byte(b)) // a gate that has hung up gets nothing
}

// close ends the connection.
func (q *request) close() { q.conn.Close() }

func (q *request) is(code string) bool { return q.msg.Code.String() == code }

func (q *request) field(id string) string {
	v, _ := q.msg.Field(id)
	return strings.TrimSpace(string(v))
}

// lend opens the loan that an 11 asks for, or renews it.
func (q *request) lend() {
	q.m.mu.Lock()
	defer q.m.mu.Unlock()
	item, patron := q.field("AB"), q.field("AA")
	if q.m.loans[item] == patron {
		q.m.renewed++
		return
	}
	q.m.loans[item] = patron
	q.m.made++
}

// takeBack ends a loan.
func (m *mock) takeBack(item string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.loans, item)
	m.returned++
}

// truthful is what an ILS in good order answers.
func (q *request) truthful() {
	m := q.m
	switch q.msg.Code {
	case sip2.CodeLogin:
		if q.field("CO") == "wrong" {
			q.reply("R-LOGIN-N")
			return
		}
		q.reply("R-LOGIN-Y")
	case sip2.CodeSCStatus:
		q.reply("R-STAT-Y")
	case sip2.CodeCheckout:
		q.lend()
		q.reply(q.loan())
	case sip2.CodeCheckin:
		m.takeBack(q.field("AB"))
		q.reply(strings.ReplaceAll(string(frameOf(m.t, "R-CI")), item1, q.field("AB")))
	case sip2.CodeItemInformation:
		m.mu.Lock()
		_, lent := m.loans[q.field("AB")]
		m.mu.Unlock()
		name := "R-II-IN"
		if lent {
			name = "R-II-LOAN"
		}
		q.reply(strings.ReplaceAll(string(frameOf(m.t, name)), item1, q.field("AB")))
	case sip2.CodePatronInformation:
		q.reply(q.patron())
	case sip2.CodeEndSession:
		q.reply(strings.ReplaceAll(string(frameOf(m.t, "R-END")), patron1, q.field("AA")))
	case sip2.CodeFeePaid:
		q.reply("R-FEE-OK")
	case sip2.CodeRenew:
		q.reply("30" + q.loan()[2:])
	default:
		q.reply("XS00world|AY1AZ0000")
	}
}

const (
	item1   = "31234000000022"
	patron1 = "21234000000011"
)

// loan is R1 with the request's identifiers.
func (q *request) loan() string {
	r := strings.ReplaceAll(string(frameOf(q.m.t, "R1")), item1, q.field("AB"))
	return strings.ReplaceAll(r, patron1, q.field("AA"))
}

func (q *request) patron() string {
	q.m.mu.Lock()
	defer q.m.mu.Unlock()
	var items []string
	for item, patron := range q.m.loans {
		if patron == q.field("AA") {
			items = append(items, item)
		}
	}
	f := fmt.Sprintf("64              00120261130    10152300000000%04d000000000000AOMAIN|AA%s|AEReader One|BLY|", len(items), q.field("AA"))
	for _, item := range items {
		f += "AU" + item + "|"
	}
	return f
}

// sent are the frames with a code that the ILS has got, in order.
func (m *mock) sent(code string) []received {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []received
	for _, f := range m.frames {
		if strings.HasPrefix(f.raw, code) {
			out = append(out, f)
		}
	}
	return out
}

// checkouts counts the 11s for an item.
func (m *mock) checkouts(item string) int {
	n := 0
	for _, f := range m.sent("11") {
		if strings.Contains(f.raw, "AB"+item) {
			n++
		}
	}
	return n
}

// want checks the journal: 11s received for the item, loans and renewals made
// in all.
func (m *mock) want(item string, elevens, made, renewed int) {
	m.t.Helper()
	got := m.checkouts(item)
	m.mu.Lock()
	defer m.mu.Unlock()
	if got != elevens || m.made != made || m.renewed != renewed {
		m.t.Errorf("the ILS got %d 11s for %s, made %d loans and %d renewals; want %d, %d, %d",
			got, item, m.made, m.renewed, elevens, made, renewed)
	}
}

// connections is how many the ILS has had.
func (m *mock) connections() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.conns)
}
