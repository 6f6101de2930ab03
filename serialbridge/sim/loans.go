package sim

import (
	"slices"
	"strconv"
	"time"
)

// Patron is a reader that an [ILS] knows.
type Patron struct {
	Name    string
	PIN     string // empty: any PIN, or none, will do
	Blocked bool
}

// Item is a copy that an [ILS] knows.
type Item struct {
	Title     string
	Fee       string // amount to be acknowledged (BO=Y) at Checkout, as 1.50
	NotLoaned bool   // the ILS refuses to lend it
}

// loan is an open loan.
type loan struct {
	number   int
	patron   string
	item     string
	begun    time.Time
	due      time.Time
	renewals int
}

// outcome is what became of a request that changes a loan.
type outcome struct {
	ok      bool
	renewal bool // the patron had the item already
	due     time.Time
	message string
	fee     string // a fee that has to be acknowledged first
}

// order is a Checkout or a Renew.
type order struct {
	conn         int
	code         string
	patron, item string
	due          time.Time // set by the station for what it lent off line, else zero
	feeAccepted  bool
	cancel       bool
	noBlock      bool // lent off line: nothing may be refused any more
	mayRenew     bool // SC renewal policy Y
}

// library is what the ILS knows of patrons, items and loans. It is guarded by
// the lock of its ILS.
type library struct {
	opts     *Options
	habits   traits
	note     func(Entry)
	patrons  map[string]*Patron
	items    map[string]*Item
	byItem   map[string][]*loan // open loans, oldest first
	byPatron map[string][]*loan
	last     int // number of the newest loan
}

func newLibrary(opts *Options, habits traits, note func(Entry)) *library {
	b := &library{
		opts: opts, habits: habits, note: note,
		patrons: map[string]*Patron{}, items: map[string]*Item{},
		byItem: map[string][]*loan{}, byPatron: map[string][]*loan{},
	}
	for id, p := range opts.Patrons {
		b.patrons[id] = &p
	}
	for id, it := range opts.Items {
		b.items[id] = &it
	}
	return b
}

// patron finds a patron, making up an unknown one unless only known ones are
// served; nil then.
func (b *library) patron(id string) *Patron {
	p := b.patrons[id]
	if p == nil && id != "" && !b.opts.KnownOnly {
		p = &Patron{Name: "Reader " + strconv.Itoa(len(b.patrons)+1)}
		b.patrons[id] = p
	}
	return p
}

// item is for items what patron is for patrons.
func (b *library) item(id string) *Item {
	it := b.items[id]
	if it == nil && id != "" && !b.opts.KnownOnly {
		it = &Item{Title: "Title of " + id}
		b.items[id] = it
	}
	return it
}

// barred says why a patron is not served, or nothing. An absent PIN is nil.
func (b *library) barred(id string, pin *string) string {
	p := b.patron(id)
	switch {
	case p == nil:
		return "Unknown patron"
	case p.Blocked:
		return "Patron is blocked"
	case p.PIN != "" && (pin == nil || *pin != p.PIN):
		return "Invalid PIN"
	}
	return ""
}

// checkout carries out an 11 of a patron who is not barred.
func (b *library) checkout(o order) outcome {
	own := b.loanOf(o.item, o.patron)
	if o.cancel && b.habits.cancels {
		return b.cancel(o, own)
	}
	it := b.item(o.item)
	switch {
	case o.noBlock:
	case it == nil || it.NotLoaned:
		return b.refuse(o, "Item cannot be lent")
	case it.Fee != "" && !o.feeAccepted:
		out := b.refuse(o, "A fee of "+it.Fee+" applies")
		out.fee = it.Fee
		return out
	case own != nil && b.habits.again == refuse && b.opts.Clock().Sub(own.begun) >= b.habits.races:
		return b.refuse(o, b.habits.lent)
	case own != nil && b.habits.again == renewByPolicy && (!o.mayRenew || b.opts.RenewalLimit < 0):
		out := b.refuse(o, "Renewals are not permitted")
		out.renewal = true
		return out
	case own != nil && (b.habits.again == renew || b.habits.again == renewByPolicy):
		out := b.renew(o)
		out.message = b.habits.lent
		if !out.ok {
			out.message = "No renewals left"
		}
		return out
	case own == nil && len(b.byItem[o.item]) > 0 && !b.habits.takesOver:
		return b.refuse(o, "Item is checked out to another patron")
	}
	for _, l := range slices.Clone(b.byItem[o.item]) {
		if l.patron != o.patron {
			b.end(l)
		}
	}
	if it != nil && it.Fee != "" {
		b.note(Entry{Event: EventFee, Conn: o.conn, Code: o.code, Item: o.item, Patron: o.patron, Amount: it.Fee})
	}
	due := o.due
	if due.IsZero() {
		due = b.dueDate(b.opts.Clock())
	}
	return outcome{ok: true, due: b.lend(o.conn, o.code, o.item, o.patron, due).due}
}

func (b *library) cancel(o order, own *loan) outcome {
	if own == nil {
		return b.refuse(o, "There is no loan to cancel")
	}
	b.end(own)
	b.note(Entry{Event: EventCancel, Conn: o.conn, Code: o.code, Item: o.item, Patron: o.patron, Loan: own.number})
	return outcome{ok: true, due: own.due}
}

// renew carries out a 29, or an 11 where the persona renews.
func (b *library) renew(o order) outcome {
	own := b.loanOf(o.item, o.patron)
	switch {
	case own == nil:
		return b.refuse(o, "Item is not checked out to this patron")
	case own.renewals >= b.opts.RenewalLimit:
		out := b.refuse(o, "No renewals left")
		out.renewal = true
		return out
	}
	own.renewals++
	own.due = b.dueDate(own.due)
	b.note(Entry{Event: EventRenewal, Conn: o.conn, Code: o.code, Item: o.item, Patron: o.patron, Loan: own.number, Due: own.due})
	return outcome{ok: true, renewal: true, due: own.due}
}

func (b *library) refuse(o order, why string) outcome {
	b.note(Entry{Event: EventRefusal, Conn: o.conn, Code: o.code, Item: o.item, Patron: o.patron, Why: why})
	return outcome{message: why}
}

// lend opens a loan. code is empty if it was not opened over SIP2.
func (b *library) lend(conn int, code, item, patron string, due time.Time) *loan {
	b.last++
	l := &loan{number: b.last, patron: patron, item: item, begun: b.opts.Clock(), due: due}
	b.byItem[item] = append(b.byItem[item], l)
	b.byPatron[patron] = append(b.byPatron[patron], l)
	b.note(Entry{Event: EventLoan, Conn: conn, Code: code, Item: item, Patron: patron, Loan: l.number, Due: due})
	return l
}

// checkin ends all loans of an item and says whether there were any, and whose
// the newest was.
func (b *library) checkin(conn int, code, item string) (patron string, lent bool) {
	for _, l := range slices.Clone(b.byItem[item]) {
		b.end(l)
		patron, lent = l.patron, true
		b.note(Entry{Event: EventCheckin, Conn: conn, Code: code, Item: item, Patron: patron, Loan: l.number})
	}
	if !lent {
		b.note(Entry{Event: EventCheckin, Conn: conn, Code: code, Item: item})
	}
	return patron, lent
}

// end takes a loan out of the books.
func (b *library) end(l *loan) {
	drop := func(in map[string][]*loan, key string) {
		in[key] = slices.DeleteFunc(in[key], func(x *loan) bool { return x == l })
		if len(in[key]) == 0 {
			delete(in, key)
		}
	}
	drop(b.byItem, l.item)
	drop(b.byPatron, l.patron)
}

// loanOf is the newest open loan of the item to the patron, or nil.
func (b *library) loanOf(item, patron string) *loan {
	for _, l := range slices.Backward(b.byItem[item]) {
		if l.patron == patron {
			return l
		}
	}
	return nil
}

// dueDate is the end of the day one loan period after t.
func (b *library) dueDate(t time.Time) time.Time {
	t = t.Add(b.opts.LoanPeriod)
	return time.Date(t.Year(), t.Month(), t.Day(), 23, 59, 0, 0, t.Location())
}
