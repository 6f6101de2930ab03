package ils

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"sip2gate/serialbridge/sip2"
)

// Query names the loan that a read is about. The bytes are those of the
// checkout's own fields.
type Query struct {
	Institution, Patron, Item []byte
	Password                  []byte // AD of that very checkout; nil: it had none
	Terminal                  []byte // AC
	Date                      []byte // 18 characters, used where the clock is not known to be right
}

// Result is what a read showed.
type Result uint8

const (
	Unknown Result = iota // nothing is proved
	Charged               // the item is on loan to this patron
	Absent                // it is proved not to be
)

// Reading is a result and what it rests on.
type Reading struct {
	Result Result
	// Date is the ILS's transaction date, Due and Title are AH and AJ of its
	// 18, as far as they came.
	Date, Due, Title []byte
	// Note says in words for the log why nothing is proved; it names no
	// patron, item or title.
	Note string
}

// Read asks the ILS whether the loan stands: 63 for the patron's charged
// items, 17 for the item. ctx bounds it. With details the 17 is asked for the
// due date too, where the 63 alone would do.
func (l *Link) Read(ctx context.Context, q Query, details bool) Reading {
	if !l.srv.Readable() {
		return Reading{Note: "this ILS answers no reads"}
	}
	select {
	case <-l.turn:
	case <-ctx.Done():
		return Reading{Note: "the link was busy"}
	}
	defer func() { l.turn <- struct{}{} }()

	var patron *patronAnswer
	if l.srv.ReadsPatrons() {
		m, note := l.readOne(ctx, q.patronInformation(l.delim), sip2.CodePatronInformationResponse)
		if m == nil && !l.srv.ReadsItems() {
			return Reading{Note: note}
		}
		if m != nil {
			patron = readPatron(m, q)
			if patron.charged && !details {
				return Reading{Result: Charged, Date: patron.date}
			}
		}
	}
	var item *itemAnswer
	var note string
	if l.srv.ReadsItems() {
		var m *sip2.Message
		if m, note = l.readOne(ctx, q.itemInformation(l.delim), sip2.CodeItemInformationResponse); m != nil {
			item = readItem(m, q)
		}
	}
	return l.srv.conclude(patron, item, note)
}

// readOne sends one read within the time that ctx leaves. nil: no answer.
func (l *Link) readOne(ctx context.Context, body []byte, want sip2.Code) (*sip2.Message, string) {
	c, err := l.ensure(ctx, ReplayAll)
	if err != nil {
		return nil, err.Error()
	}
	timeout := l.srv.cfg.Timeout
	if d, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(d))
	}
	if timeout <= 0 || ctx.Err() != nil {
		return nil, "no time was left to ask"
	}
	a, err := l.ask(c, l.own(body), timeout)
	if err != nil {
		return nil, err.Error()
	}
	if a.Msg.Code != want || a.Msg.Short() || a.Msg.Trailer.Present && !a.Msg.Trailer.Valid {
		return nil, "the answer to the read was not one"
	}
	return &a.Msg, ""
}

// conclude weighs the two answers; either may be missing.
func (s *Server) conclude(patron *patronAnswer, item *itemAnswer, note string) Reading {
	var r Reading
	if patron != nil {
		r.Date = patron.date
	}
	if item != nil {
		r.Date = item.date
		if item.onLoan() {
			r.Due, r.Title = item.due, item.title
		}
	}
	switch {
	case patron != nil && patron.charged, item != nil && item.chargedToPatron:
		r.Result = Charged
	case patron != nil && !patron.absent:
		r.Note = patron.note
	case item != nil && item.atOdds() && s.saysCharged():
		r.Note = "the item's status speaks against it"
	case patron != nil:
		r.Result = Absent
	case item != nil && !s.ReadsPatrons() && item.status == "03" && s.saysCharged():
		r.Result = Absent
	case note != "":
		r.Note = note
	default:
		r.Note = "the item's status alone proves nothing"
	}
	return r
}

type patronAnswer struct {
	charged, absent bool
	date            []byte
	note            string
}

// readPatron weighs a 64. That the item is in the list proves the loan.
// Absence proves something only in a whole list of identifiers, about a patron
// whom the ILS knows: a 64 for an unknown patron or a wrong PIN has zero
// counts too (Koha, Evergreen), lists come cut short, or carry titles.
func readPatron(m *sip2.Message, q Query) *patronAnswer {
	p := &patronAnswer{date: m.Fixed("transaction_date")}
	entries, known, sameLength := 0, 0, false
	item := bytes.TrimSpace(q.Item)
	for id, value := range m.Fields() {
		if id.String() != "AU" {
			continue
		}
		value = bytes.TrimSpace(value)
		entries++
		if bytes.Equal(value, item) {
			p.charged = true
		}
		if looksLikeIdentifier(value) {
			known++
			sameLength = sameLength || len(value) == len(item)
		}
	}
	if p.charged {
		return p
	}
	aa, _ := m.Field("AA")
	count, err := strconv.Atoi(string(m.Fixed("charged_items_count")))
	switch {
	case !bytes.Equal(bytes.TrimSpace(aa), bytes.TrimSpace(q.Patron)):
		p.note = "the answer is about another form of the patron's number"
	case refused(m, "BL"), refused(m, "CQ"):
		p.note = "the ILS does not accept the patron or the PIN"
	case err != nil:
		p.note = "the list of charged items has no count"
	case count != entries:
		p.note = "the list of charged items is shorter than its own count"
	case entries > 0 && (known < entries || !sameLength):
		p.note = "the list of charged items has no known identifiers (AU)"
	default:
		p.absent = true
	}
	return p
}

func refused(m *sip2.Message, id string) bool {
	v, ok := m.Field(id)
	return ok && len(v) > 0 && (v[0] == 'N' || v[0] == 'n')
}

// looksLikeIdentifier: a barcode has no blanks and at least one digit; a
// title mostly fails one of these.
func looksLikeIdentifier(v []byte) bool {
	digits := 0
	for _, c := range v {
		if c <= ' ' || c >= 0x7F {
			return false
		}
		if '0' <= c && c <= '9' {
			digits++
		}
	}
	return digits > 0
}

type itemAnswer struct {
	status          string
	chargedToPatron bool
	date            []byte
	due, title      []byte
}

func readItem(m *sip2.Message, q Query) *itemAnswer {
	a := &itemAnswer{
		status: string(m.Fixed("circulation_status")),
		date:   m.Fixed("transaction_date"),
	}
	a.due, _ = m.Field("AH")
	a.title, _ = m.Field("AJ")
	aa, ok := m.Field("AA")
	a.chargedToPatron = ok && a.onLoan() && len(aa) > 0 &&
		bytes.Equal(bytes.TrimSpace(aa), bytes.TrimSpace(q.Patron))
	return a
}

func (a *itemAnswer) onLoan() bool { return a.status == "04" || a.status == "05" }

// atOdds: 04 charged, 05 charged and not recallable, 07 recalled, 11 claimed
// returned, 12 lost: none of them goes with "on loan to nobody".
func (a *itemAnswer) atOdds() bool {
	switch a.status {
	case "04", "05", "07", "11", "12":
		return true
	}
	return false
}

func (q Query) date() []byte {
	if now := time.Now(); now.Year() >= 2026 {
		return []byte(now.Format("20060102    150405"))
	}
	return q.Date
}

// patronInformation is a 63 that asks for the charged items.
func (q Query) patronInformation(delim byte) []byte {
	b := append([]byte("63000"), q.date()...)
	b = append(b, "  Y       "...)
	b = sip2.AppendField(b, "AO", q.Institution, delim)
	b = sip2.AppendField(b, "AA", q.Patron, delim)
	b = sip2.AppendField(b, "AC", q.Terminal, delim)
	if q.Password != nil {
		b = sip2.AppendField(b, "AD", q.Password, delim)
	}
	return b
}

func (q Query) itemInformation(delim byte) []byte {
	b := append([]byte("17"), q.date()...)
	b = sip2.AppendField(b, "AO", q.Institution, delim)
	b = sip2.AppendField(b, "AB", q.Item, delim)
	return sip2.AppendField(b, "AC", q.Terminal, delim)
}
