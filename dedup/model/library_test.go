package model

import (
	"cmp"
	"fmt"
	"slices"
)

// library is what happens between the gate's links and the ILS's books.
func (s *scenario) library(w world, add adder, tell teller) {
	for k := range w.Link {
		r := w.Link[k]
		who := fmt.Sprintf("the %v of K%d", r.Kind, k+1)
		switch {
		case r.Kind == nothing || w.Down && r.At != atILS:
		case r.At == net && r.Kind == read:
			next := w
			next.Link[k].At, next.Link[k].Age = not, 0
			if w.Holder == r.Patron {
				next.Link[k].At = done
			}
			add(next, "the ILS is read for K%d: the book is on loan to %v", k+1, w.Holder)
		case r.At == net:
			next := w
			next.Link[k].At, next.Link[k].Age = atILS, 0
			add(next, "%s arrives at the ILS", who)
		case r.At == atILS && r.Age < settle:
			next := w
			bad, what := s.carryOut(&next, &next.Link[k])
			add(next, "%s", what).bad = bad
			if w.Left.Drop > 0 {
				next := w
				next.Left.Drop--
				next.Link[k].Age = settle
				add(next, "the ILS drops %s", who)
			}
		case r.At == done || r.At == not:
			next := w
			next.Link[k] = order{}
			tell(next, input{Op: answer, Station: uint8(k), Kind: r.Kind, OK: r.At == done},
				"the answer to %s comes: %s", who, map[bool]string{true: "yes", false: "no"}[r.At == done])
		}
	}
	for i := range w.Late {
		r := w.Late[i]
		switch {
		case r.Kind == nothing || w.Down && r.At == net:
		case r.At == net:
			next := w
			next.Late[i].At, next.Late[i].Age = atILS, 0
			next.sortLate()
			add(next, "an %v that the kernel went on sending arrives at the ILS", r.Kind)
		default:
			next := w
			bad, what := s.carryOut(&next, &next.Late[i])
			next.Late[i] = order{}
			next.sortLate()
			add(next, "%s, late", what).bad = bad
		}
	}
}

// carryOut is the ILS at work.
func (s *scenario) carryOut(w *world, r *order) (bad, what string) {
	r.At, r.Age = done, 0
	switch {
	case r.Kind == checkin, r.Kind == cancel && s.ils.cancels && w.Holder == r.Patron:
		hand := w.Hand
		w.returned()
		if r.Kind == cancel {
			w.Hand = hand
		}
		return "", fmt.Sprintf("the ILS carries out the %v: on loan to nobody", r.Kind)
	case r.Kind == cancel && s.ils.cancels,
		w.Holder == r.Patron && !s.ils.again,
		w.Holder != 0 && w.Holder != r.Patron && !s.ils.takes:
		r.At = not
		return "", fmt.Sprintf("the ILS refuses %v's %v: on loan to %v", r.Patron, r.Kind, w.Holder)
	}
	what = fmt.Sprintf("the ILS carries out %v's %v", r.Patron, r.Kind)
	if w.Holder == r.Patron {
		what += " AGAIN"
	} else if w.Holder != 0 {
		w.over(w.Holder)
	}
	w.Holder, w.Desk, w.Blind = r.Patron, false, false
	w.lent()
	if r.Kind == checkout {
		w.Done[r.Wish]++
		if w.Done[r.Wish] > 1 {
			bad = "promise 1: a second 11 was carried out for one wish"
		}
	}
	return bad, what
}

func (w *world) sortLate() {
	slices.SortFunc(w.Late[:], func(a, b order) int {
		return cmp.Or(cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.Patron, b.Patron), cmp.Compare(a.Wish, b.Wish),
			cmp.Compare(a.At, b.At), cmp.Compare(a.Age, b.Age))
	})
}

// aborted is what becomes of what was on its way when a link ends. killed: the
// kernel goes on sending.
func (w *world) aborted(k uint8, killed bool) {
	r := w.Link[k]
	w.Link[k] = order{}
	if r.Kind == nothing || r.Kind == read || r.At == done || r.At == not || r.At == net && !killed {
		return
	}
	if r.At == net {
		r.Age = 0
	}
	for i := range w.Late {
		if w.Late[i].Kind == nothing {
			w.Late[i] = r
			w.sortLate()
			return
		}
	}
	panic("more late requests than the world has room for")
}

// wan is what can happen to it.
func (s *scenario) wan(w world, m *menu, add adder, tell teller) {
	if w.Down {
		next := w
		next.Down = false
		add(next, "the WAN is back")
		return
	}
	if w.Left.Cut > 0 {
		next := w
		next.Left.Cut--
		next.Down = true
		add(next, "the WAN is gone")
	}
	for k := range uint8(s.kiosks) {
		if w.Left.Reset > 0 && m.busy[k] {
			next := w
			next.Left.Reset--
			tell(next, input{Op: fail, Station: k}, "the network resets the link of K%d", k+1)
		}
	}
}

func (s *scenario) crash(w world, m *menu, tell teller) {
	next := w
	next.Left.Crash--
	for k := range next.Kiosk {
		next.aborted(uint8(k), true)
		next.Kiosk[k].Excused = next.Kiosk[k].Kind != nothing
	}
	for i := range m.states {
		lost := m.states - 1 - i
		next := next
		if !m.marked[i] {
			// A limit of the rules: a checkin that was out when the gate was killed
			// is remembered by the marks that it made, and here were none.
			next.noChanges()
		}
		tell(next, input{Op: kill, Station: i}, "the gate is killed and starts again, %d writes lost", lost)
	}
	if next.Left.Amnesia > 0 {
		next.Left.Amnesia--
		next.noChanges()
		tell(next, input{Op: amnesia}, "the gate is killed, and its store is gone")
	}
}

func (w *world) noChanges() {
	for i := range w.Late {
		if w.Late[i].Kind == checkin || w.Late[i].Kind == cancel {
			w.Late[i] = order{}
		}
	}
	w.sortLate()
}

// apply is what an effect of the appliance does to the world. lost: the answer
// does not reach the kiosk.
func (s *scenario) apply(w *world, e effect, lost bool) (what, bad string) {
	switch e.What {
	case sends:
		if w.Link[e.Station].Kind != nothing {
			panic("a link is used twice")
		}
		w.Link[e.Station] = order{Kind: e.Kind, Patron: e.Patron, Wish: e.Wish}
		return fmt.Sprintf("%v sent", e.Kind), ""
	case aborts:
		w.aborted(e.Station, s.without == abort)
		return "link aborted", ""
	}
	q := &w.Kiosk[e.Station]
	w.Blind = w.Blind || e.Blind && w.Desk
	yes := map[bool]string{true: "ok=1", false: "ok=0"}[e.OK]
	what = fmt.Sprintf("K%d is answered %s (%s)", e.Station+1, yes, e.Why)
	if e.OK && e.Kind == checkout && w.Wish[e.Patron-1] == e.Wish {
		w.Had[e.Patron-1] = 1
	}
	switch {
	case q.Kind == nothing:
		return what + ", where nobody waits", ""
	case q.Kind != e.Kind || q.Patron != e.Patron:
		return what, "promise 3: the answer to another request"
	}
	q.Answers++
	if q.Answers > 1 {
		return what, "promise 3: two answers to one wait"
	}
	if lost {
		q.Excused = true
		return what + ", LOST on the line", ""
	}
	if e.Kind == checkout {
		// Not promised: a checkin at the desk where the ILS cannot be read.
		if e.OK && !q.Held && !w.Blind {
			return what, "promise 2: ok=1 for an item that was not lent to this patron"
		}
		w.Told[e.Patron-1] = !e.OK
		if e.OK {
			w.Hand = e.Patron
		}
	}
	*q = kiosk{Asked: q.Asked}
	w.Walk = 0
	return what, ""
}
