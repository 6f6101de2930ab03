package sim

import "strings"

// These are the rules of a connection: what is answered without asking the
// library, and what every answer has in common.

// version1 are the messages that SIP2 had in its first version, and the login.
var version1 = map[string]bool{"93": true, "99": true, "97": true, "23": true, "11": true, "09": true, "01": true}

// execute carries a request out and returns its answer.
func (c *conn) execute(r request) answer {
	l := c.ils
	l.mu.Lock()
	defer l.mu.Unlock()
	a := c.decide(r)
	c.last = a
	return a
}

// decide is execute under the lock.
func (c *conn) decide(r request) answer {
	o, h, t := &c.ils.opts, &c.ils.habits, r.msg.Trailer
	before := c.trailer
	c.trailer = string(r.msg.Raw[t.Start:])
	switch {
	case o.CheckAZ && t.Present && !t.Valid:
		return c.resend(r)
	case o.Persona == Folio && o.ErrorDetection == On && !t.Present:
		return c.resend(r)
	case !c.inOrder(r):
		return c.resend(r)
	case h.repeats && o.ErrorDetection == On && t.HasSeq && c.trailer == before && c.last.body != nil:
		return c.last
	case r.code == "97":
		return c.again(r)
	case r.msg.MissingDueDate() && o.RefuseShort:
		return c.resend(r)
	}
	first := !c.first
	c.first = true
	if len(o.Accounts) > 0 && !c.loggedIn && r.code != "93" {
		return c.strange(r, first)
	}
	if (o.RequireStatus && !c.version2 || c.version1) && !version1[r.code] {
		return answer{}
	}
	handle := handlers[r.code]
	if handle == nil || !c.supports(r.code) {
		return c.unknown(r)
	}
	return c.answer(r, handle(c, r))
}

// strange is what a station gets that has not logged in.
func (c *conn) strange(r request, first bool) answer {
	switch {
	case c.ils.habits.loginFirst && first:
		return answer{hangUp: true}
	case c.ils.opts.Persona == Naive:
		return c.resend(r)
	}
	return answer{}
}

// inOrder checks AY where that is asked for.
func (c *conn) inOrder(r request) bool {
	if !c.ils.opts.CheckAY || !r.msg.Trailer.HasSeq {
		return true
	}
	seq := int(r.msg.Trailer.Seq - '0')
	if c.lastSeq >= 0 && seq != (c.lastSeq+1)%10 {
		return false
	}
	c.lastSeq = seq
	return true
}

// bits are the places of the request codes in BX.
var bits = map[string]int{
	"23": 0, "11": 1, "09": 2, "01": 3, "99": 4, "97": 5, "93": 6, "63": 7,
	"35": 8, "37": 9, "17": 10, "19": 11, "25": 12, "15": 13, "29": 14, "65": 15,
}

// supported is BX.
func (c *conn) supported() string {
	b := []byte(c.ils.habits.supported)
	if c.ils.opts.NoReads {
		b[bits["63"]], b[bits["17"]] = 'N', 'N'
	}
	return string(b)
}

func (c *conn) supports(code string) bool {
	bit, ok := bits[code]
	return ok && c.supported()[bit] == 'Y'
}

// unknown is the persona's reaction to a code that it does not serve.
func (c *conn) unknown(r request) answer {
	switch c.ils.opts.Unknown {
	case Resend:
		return c.resend(r)
	case HangUp:
		return answer{hangUp: true}
	}
	return answer{}
}

// answer gives a body the trailer and the terminator that are due.
func (c *conn) answer(r request, body []byte) answer {
	o, t := &c.ils.opts, r.msg.Trailer
	a := answer{body: body, seq: '0', terminator: o.Terminator}
	switch o.ErrorDetection {
	case Mirror:
		a.bare = !t.HasSeq || !t.Present
	case Off:
		a.bare = true
	}
	if t.HasSeq {
		a.seq = t.Seq
	}
	return a
}

// resend is 96, which never has an AY.
func (c *conn) resend(r request) answer {
	a := c.answer(r, []byte("96"))
	a.noSeq = true
	a.bare = a.bare && !(r.msg.Trailer.Present && c.ils.opts.ErrorDetection == Mirror)
	if c.ils.habits.resendAY0 {
		a.terminator = "\r"
	}
	return a
}

// again answers 97: the last answer once more, or 96 if there is none.
func (c *conn) again(r request) answer {
	a := c.last
	if len(a.body) == 0 {
		return c.resend(r)
	}
	if c.ils.habits.resendAY0 {
		a.terminator = "\r"
		a.noSeq = false
		a.seq = '0'
		a.bare = a.bare && !r.msg.Trailer.Present
		if strings.HasPrefix(string(a.body), "96") {
			return c.resend(r)
		}
	}
	return a
}
