package sim

import (
	"strconv"
	"strings"
)

// handlers make the body of the answer to each request. They run under the
// lock of the ILS.
var handlers = map[string]func(*conn, request) []byte{
	"93": (*conn).login,
	"99": (*conn).scStatus,
	"23": (*conn).patronStatus,
	"63": (*conn).patronInformation,
	"11": (*conn).checkout,
	"09": (*conn).checkin,
	"29": (*conn).renew,
	"65": (*conn).renewAll,
	"15": (*conn).hold,
	"17": (*conn).itemInformation,
	"19": (*conn).itemStatus,
	"35": (*conn).endSession,
	"37": (*conn).feePaid,
	"01": (*conn).blockPatron,
	"25": (*conn).enablePatron,
}

func (c *conn) now() string { return c.ils.opts.Clock().Format(dateForm) }

// language is that of the request, or 000, unknown.
func language(r request) string {
	if l := r.fixed("language"); l != "" {
		return l
	}
	return "000"
}

// institution is AO as the request has it, or the ILS's own.
func (c *conn) institution(r request) string {
	if ao := r.field("AO"); ao != "" {
		return ao
	}
	return c.ils.opts.Institution
}

func (c *conn) login(r request) []byte {
	accounts := c.ils.opts.Accounts
	password, known := accounts[r.field("CN")]
	if len(accounts) > 0 && (!known || password != r.field("CO")) {
		return []byte("940")
	}
	c.loggedIn = true
	return []byte("941")
}

func (c *conn) scStatus(r request) []byte {
	version := r.fixed("protocol_version")
	c.version2 = strings.HasPrefix(version, "2.")
	c.version1 = c.ils.opts.Persona == Koha && !c.version2
	return c.status()
}

// status is a 98. It reads settings only.
func (c *conn) status() []byte {
	mayRenew := yn(c.ils.opts.RenewalLimit >= 0)
	return c.message("98YYY%sNN100003%s2.00", mayRenew, c.now()).
		with("AO", c.ils.opts.Institution).with("AM", "Main Library").with("BX", c.supported()).b
}

// standing is the patron status and the fields BL and CQ that go with it.
func (c *conn) standing(r request) (status, name, valid, pinValid, why string) {
	p := c.ils.library.patron(r.field("AA"))
	why = c.ils.library.barred(r.field("AA"), r.optional("AD"))
	if p == nil {
		return "YYYY          ", "", "N", "", why
	}
	pin := r.optional("AD")
	if pin == nil && p.PIN != "" && !p.Blocked {
		why = "" // a read without PIN is answered all the same
	}
	if pin != nil {
		pinValid = yn(p.PIN == "" || *pin == p.PIN)
	}
	if p.Blocked {
		return "YYYY          ", p.Name, "Y", pinValid, why
	}
	return strings.Repeat(" ", 14), p.Name, "Y", pinValid, why
}

func (c *conn) patronStatus(r request) []byte { return c.patronAnswer("24", r) }

// patronAnswer is a 24 or a 26. Koha has another order of fields.
func (c *conn) patronAnswer(code string, r request) []byte {
	status, name, valid, pinValid, why := c.standing(r)
	m := c.message("%s%s%s%s", code, status, language(r), c.now())
	if c.ils.opts.Persona == Koha {
		return m.with("AE", name).with("AA", r.field("AA")).with("BL", valid).unlessEmpty("CQ", pinValid).
			unlessEmpty("AF", why).with("AO", c.institution(r)).b
	}
	return m.with("AO", c.institution(r)).with("AA", r.field("AA")).with("AE", name).
		with("BL", valid).unlessEmpty("CQ", pinValid).unlessEmpty("AF", why).b
}

func (c *conn) patronInformation(r request) []byte {
	status, name, valid, pinValid, why := c.standing(r)
	var loans []*loan
	if valid == "Y" && pinValid != "N" {
		loans = c.ils.library.byPatron[r.field("AA")]
	}
	overdue := 0
	for _, l := range loans {
		if l.due.Before(c.ils.opts.Clock()) {
			overdue++
		}
	}
	m := c.message("64%s%s%s0000%04d%04d000000000000", status, language(r), c.now(), overdue, len(loans)).
		with("AO", c.institution(r)).with("AA", r.field("AA")).with("AE", name).
		with("BL", valid).unlessEmpty("CQ", pinValid)
	if summary := r.fixed("summary"); len(summary) > 2 && summary[2] == 'Y' {
		for i, l := range loans {
			if wanted(i+1, r) {
				m.with("AU", l.item)
			}
		}
	}
	return m.unlessEmpty("AF", why).b
}

// wanted says whether the nth entry of a list, from 1, is asked for by BP and
// BQ.
func wanted(n int, r request) bool {
	from, err := strconv.Atoi(r.field("BP"))
	if err == nil && n < from {
		return false
	}
	to, err := strconv.Atoi(r.field("BQ"))
	return err != nil || n <= to
}

// order reads an 11 or 29.
func (c *conn) order(r request) order {
	o := order{
		conn: c.number, code: r.code, patron: r.field("AA"), item: r.field("AB"),
		feeAccepted: r.field("BO") == "Y", cancel: r.field("BI") == "Y", noBlock: r.fixed("no_block") == "Y",
		mayRenew: r.fixed("sc_renewal_policy") == "Y",
	}
	if o.noBlock {
		o.due = r.date("nb_due_date", c.ils.opts.Clock().Location())
	}
	return o
}

func (c *conn) checkout(r request) []byte {
	o := c.order(r)
	if why := c.ils.library.barred(o.patron, r.optional("AD")); why != "" {
		return c.loanAnswer("12", r, c.ils.library.refuse(o, why))
	}
	if o.item == "" {
		return c.loanAnswer("12", r, c.ils.library.refuse(o, "Unknown item"))
	}
	return c.loanAnswer("12", r, c.ils.library.checkout(o))
}

func (c *conn) renew(r request) []byte {
	o := c.order(r)
	if why := c.ils.library.barred(o.patron, r.optional("AD")); why != "" {
		return c.loanAnswer("30", r, c.ils.library.refuse(o, why))
	}
	return c.loanAnswer("30", r, c.ils.library.renew(o))
}

// loanAnswer is a 12 or a 30.
func (c *conn) loanAnswer(code string, r request, out outcome) []byte {
	head := code + c.ils.habits.failed[2:]
	due := ""
	switch {
	case out.ok:
		head, due = code+"1"+yn(out.renewal)+"NY", out.due.Format(dateForm)
	case out.renewal:
		head = code + "0YUN"
	}
	if !out.ok && c.ils.opts.Persona == Folio {
		due = c.now() // edge-sip2 puts the present time into AH of a refusal
	}
	title := ""
	if it := c.ils.library.item(r.field("AB")); it != nil {
		title = it.Title
	}
	m := c.message("%s%s", head, c.now())
	last := func() {}
	if c.ils.opts.Persona == Koha && code == "30" {
		last = func() { m.with("AO", c.institution(r)) }
	} else {
		m.with("AO", c.institution(r))
	}
	m.with("AA", r.field("AA")).with("AB", r.field("AB")).with("AJ", title).with("AH", due)
	if out.fee != "" {
		m.with("BT", "06").with("BH", "EUR").with("BV", out.fee)
	}
	m.unlessEmpty("AF", out.message)
	last()
	return m.b
}

func (c *conn) checkin(r request) []byte {
	item := r.field("AB")
	it := c.ils.library.item(item)
	patron, lent := c.ils.library.checkin(c.number, r.code, item)
	title, why := "", ""
	if it != nil {
		title = it.Title
	}
	ok := it != nil && (lent || c.ils.habits.returnsAll)
	if !ok {
		why = "Item not checked out"
	}
	if c.ils.opts.Persona != Koha {
		patron = ""
	}
	return c.message("10%s%sNN%s", digit(ok), yn(ok), c.now()).
		with("AO", c.institution(r)).with("AB", item).with("AQ", c.ils.opts.Institution).with("AJ", title).
		unlessEmpty("AA", patron).unlessEmpty("AF", why).b
}

func (c *conn) renewAll(r request) []byte {
	lib := c.ils.library
	patron := r.field("AA")
	why := lib.barred(patron, r.optional("AD"))
	var renewed, unrenewed []string
	if why == "" {
		for _, l := range lib.byPatron[patron] {
			if lib.renew(order{conn: c.number, code: r.code, patron: patron, item: l.item}).ok {
				renewed = append(renewed, l.item)
			} else {
				unrenewed = append(unrenewed, l.item)
			}
		}
	}
	m := c.message("66%s%04d%04d%s", digit(why == ""), len(renewed), len(unrenewed), c.now()).with("AO", c.institution(r))
	for _, item := range renewed {
		m.with("BM", item)
	}
	for _, item := range unrenewed {
		m.with("BN", item)
	}
	return m.unlessEmpty("AF", why).b
}

// hold grants every hold of a patron in good standing; holds are not kept.
func (c *conn) hold(r request) []byte {
	why := c.ils.library.barred(r.field("AA"), r.optional("AD"))
	return c.message("16%sN%s", digit(why == ""), c.now()).
		with("AO", c.institution(r)).with("AA", r.field("AA")).with("AB", r.field("AB")).unlessEmpty("AF", why).b
}

func (c *conn) itemInformation(r request) []byte {
	item := r.field("AB")
	it := c.ils.library.item(item)
	if it == nil {
		return c.message("18010001%s", c.now()).with("AB", item).with("AJ", "").with("AF", "Unknown item").b
	}
	if open := c.ils.library.byItem[item]; len(open) > 0 {
		return c.message("18040001%s", c.now()).with("CF", "0").
			with("AH", open[len(open)-1].due.Format(dateForm)).with("AB", item).with("AJ", it.Title).b
	}
	return c.message("18030001%s", c.now()).with("CF", "0").with("AB", item).with("AJ", it.Title).b
}

func (c *conn) itemStatus(r request) []byte {
	return c.message("201%s", c.now()).with("AB", r.field("AB")).b
}

func (c *conn) endSession(r request) []byte {
	return c.message("36Y%s", c.now()).with("AO", c.institution(r)).with("AA", r.field("AA")).b
}

// feePaid books every payment, the same twice too: no ILS known looks at BK.
func (c *conn) feePaid(r request) []byte {
	why := c.ils.library.barred(r.field("AA"), r.optional("AD"))
	if why == "" {
		c.ils.note(Entry{Event: EventFee, Conn: c.number, Code: r.code, Patron: r.field("AA"), Amount: r.field("BV")})
	}
	return c.message("38%s%s", yn(why == ""), c.now()).with("AO", c.institution(r)).with("AA", r.field("AA")).
		unlessEmpty("BK", r.field("BK")).unlessEmpty("AF", why).b
}

func (c *conn) blockPatron(r request) []byte {
	if p := c.ils.library.patron(r.field("AA")); p != nil {
		p.Blocked = true
	}
	return c.patronAnswer("24", r)
}

func (c *conn) enablePatron(r request) []byte {
	if p := c.ils.library.patron(r.field("AA")); p != nil {
		p.Blocked = false
	}
	return c.patronAnswer("26", r)
}

func yn(b bool) string {
	if b {
		return "Y"
	}
	return "N"
}

func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
