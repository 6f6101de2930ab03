package model

import "fmt"

// ils is what a library system does with a checkout of an item that is on
// loan, and whether it answers reads.
type ils struct {
	name    string
	again   bool // to the same patron: ok=1, a renewal or a second loan
	takes   bool // to another: ok=1, and the other loan ends
	cancels bool // BI=Y ends the loan; else it is a plain checkout
}

var (
	naive  = ils{name: "naive", again: true, takes: true, cancels: true}
	koha   = ils{name: "koha", again: true}
	folio  = ils{name: "folio"}
	sierra = ils{name: "sierra", again: true, takes: true}
)

// budget is how often something may happen in a run.
type budget struct {
	Scan, Checkin, Cancel, Desk uint8 // of the people
	Leave, HangUp               uint8 // the kiosk gives up an 11, unseen or seen
	LeaveIn                     uint8 // it gives up a 09, unseen
	Lost                        uint8 // answers on the station's line
	Cut, Reset                  uint8 // of the WAN
	Drop                        uint8 // requests that the ILS never carries out
	Crash, Amnesia              uint8
	Unasked                     uint8 // reads about a doubt for nobody
}

// world is all but the appliance. It is a value: copied, compared, hashed.
type world struct {
	Kiosk  [2]kiosk
	Link   [2]order // on its way on the link of each station
	Late   [3]order // whose link is gone, and that the ILS may still get or carry out
	Holder patron   // to whom the item is on loan
	Desk   bool     // it was checked in there, and has not been lent since
	Blind  bool     // then an ok=1 was given all the same, where the ILS could not be read
	Hand   patron   // who has the book
	Told   [2]bool  // the patron's last answer was a no
	Wish   [2]uint8 // the patron's present wish to have the book lent; 0: none
	Had    [2]uint8 // 1 + ticks since an ok=1 was given for it; 0: never
	Done   [8]uint8 // how often an 11 of a wish was carried out
	Next   uint8
	Down   bool  // the WAN
	Walk   uint8 // ticks since anybody was at a kiosk
	Left   budget
}

// kiosk is the truth at a station.
type kiosk struct {
	Kind    kind // what it waits for
	Patron  patron
	Wish    uint8
	Age     uint8
	Repeats uint8 // left
	Answers uint8 // since its last transmission
	Held    bool  // the item was lent to the patron at some time of this wait
	Excused bool  // an answer was lost, or the gate was killed: silence is no fault of the gate
	Rest    bool  // it has just given up: the next request takes a while
	Asked   bool  // it has sent an 11 since it was switched on
}

// order is a request or a read on its way.
type order struct {
	Kind   kind
	Patron patron
	Wish   uint8
	At     place
	Age    uint8 // in ticks, at this place
}

type place uint8

const (
	net   place = iota
	atILS       // arrived, not carried out
	done        // carried out
	not         // refused
)

// action is something that can happen, and what becomes of the world at once.
// If in is not none the appliance is told, and what it does then happens too.
type action struct {
	what string
	w    world
	in   input
	bad  string // the promise that is broken
}

func (w *world) lent() {
	for k := range w.Kiosk {
		if q := &w.Kiosk[k]; q.Kind == checkout && q.Patron == w.Holder {
			q.Held = true
		}
	}
}

// over ends a patron's wish: he has given the book back, or lost it. Who waits
// at a kiosk right then wants it lent anew.
func (w *world) over(p patron) {
	w.Wish[p-1], w.Had[p-1] = 0, 0
	for k := range w.Kiosk {
		if q := &w.Kiosk[k]; q.Kind == checkout && q.Patron == p {
			w.Done[q.Wish] = 0
		}
	}
}

func (w *world) returned() {
	w.Holder, w.Hand = 0, 0
	w.over(1)
	w.over(2)
}

// actions are all that can happen in a state, time last.
func (s *scenario) actions(w world, m *menu) []action {
	var as []action
	add := func(next world, format string, args ...any) *action {
		as = append(as, action{what: fmt.Sprintf(format, args...), w: next})
		return &as[len(as)-1]
	}
	tell := func(next world, in input, format string, args ...any) *action {
		a := add(next, format, args...)
		a.in = in
		return a
	}
	due := false
	for k := range s.kiosks {
		due = s.people(w, uint8(k), tell) || due
	}
	if p := w.Hand; p != 0 && w.Told[p-1] && s.patrons == 2 && w.Kiosk[0].Kind == nothing && w.Kiosk[1].Kind == nothing {
		next := w
		next.Hand = 0
		add(next, "%v leaves the book lying", p)
	}
	if w.Left.Desk > 0 && w.Walk >= 2 && w.Kiosk[0].Kind == nothing && w.Kiosk[1].Kind == nothing {
		next := w
		next.Left.Desk--
		next.Walk = 0
		next.returned()
		next.Desk = true
		add(next, "staff check the book in at the desk, not through the gate")
	}
	if s.gate(w, m, tell) {
		due = true
		if s.urgent && len(m.run) > 0 {
			return as[len(as)-len(m.run):]
		}
	}
	s.library(w, add, tell)
	s.wan(w, m, add, tell)
	if w.Left.Crash > 0 {
		s.crash(w, m, tell)
	}
	if !due {
		tell(w.later(), input{Op: ticking}, "a tick")
	}
	return as
}

type (
	adder  func(world, string, ...any) *action
	teller func(world, input, string, ...any) *action
)

// people is what patrons and kiosks do at station k.
func (s *scenario) people(w world, k uint8, tell teller) (due bool) {
	q := w.Kiosk[k]
	other := w.Kiosk[1-k]
	if q.Kind == nothing && other.Kind == nothing && !q.Rest { // the book is at one kiosk
		for p := patron(1); p <= s.patrons && w.Left.Scan > 0; p++ {
			if w.Hand != 0 && w.Hand != p {
				continue
			}
			next := w
			next.Left.Scan--
			next.Hand = p
			// He wants something new after a checkin, after another's loan, or a
			// window after he was told yes.
			if next.Wish[p-1] == 0 || next.Had[p-1] > window {
				next.Wish[p-1], next.Had[p-1] = next.Next, 0
				next.Next++
			}
			next.ask(k, kiosk{Kind: checkout, Patron: p, Wish: next.Wish[p-1], Repeats: retries, Asked: true})
			tell(next, next.frame(k, s.sameDate && w.Kiosk[k].Asked), "%v scans the book at K%d", p, k+1)
		}
		if w.Left.Checkin > 0 {
			next := w
			next.Left.Checkin--
			next.ask(k, kiosk{Kind: checkin, Asked: q.Asked})
			tell(next, next.frame(k, false), "the book is checked in at K%d, through the gate", k+1)
		}
		if w.Left.Cancel > 0 && w.Holder != 0 {
			next := w
			next.Left.Cancel--
			next.ask(k, kiosk{Kind: cancel, Patron: w.Holder, Asked: q.Asked})
			tell(next, next.frame(k, false), "K%d cancels %v's loan", k+1, w.Holder)
		}
	}
	if q.Kind == nothing {
		return false
	}
	gone := w
	gone.Kiosk[k] = kiosk{Asked: q.Asked, Rest: true}
	gone.Walk = 0
	if q.Kind == checkout {
		gone.Told[q.Patron-1] = true
	}
	if q.Age >= timeout {
		due = true
		silence := ""
		if q.Answers == 0 && !q.Excused {
			silence = "promise 3: no answer within the kiosk's timeout"
		}
		if q.Repeats > 0 {
			next := w
			q.Repeats--
			q.Age, q.Answers, q.Held, q.Excused = 0, 0, false, false
			next.ask(k, q)
			tell(next, next.frame(k, !s.newDate), "K%d repeats its %v", k+1, q.Kind).bad = silence
		} else {
			tell(gone, input{}, "K%d gives up", k+1).bad = silence
		}
	}
	if w.Left.Leave > 0 && q.Kind == checkout {
		gone := gone
		gone.Left.Leave--
		tell(gone, input{}, "K%d is cancelled; the line shows nothing of it", k+1)
	}
	if w.Left.LeaveIn > 0 && q.Kind != checkout {
		gone := gone
		gone.Left.LeaveIn--
		tell(gone, input{}, "K%d gives up its %v; the line shows nothing of it", k+1, q.Kind)
	}
	if w.Left.HangUp > 0 && q.Kind == checkout {
		gone.Left.HangUp--
		tell(gone, input{Op: hangUp, Station: k}, "K%d hangs up", k+1)
	}
	return due
}

func (w *world) ask(k uint8, q kiosk) {
	w.Kiosk[k] = q
	w.Walk = 0
	w.lent()
}

func (w *world) frame(k uint8, sameDate bool) input {
	q := w.Kiosk[k]
	return input{Op: frame, Station: k, Kind: q.Kind, Patron: q.Patron, Wish: q.Wish, SameDate: sameDate && q.Kind == checkout}
}

// gate is what is due inside the appliance.
func (s *scenario) gate(w world, m *menu, tell teller) (due bool) {
	for k := range uint8(s.kiosks) {
		if m.expire[k] {
			due = true
			tell(w, input{Op: expire, Station: k}, "the wait at K%d is over", k+1)
		}
		if m.overdue[k] {
			due = true
			tell(w, input{Op: fail, Station: k}, "no answer in time: the gate aborts the link of K%d", k+1)
		}
	}
	for p := patron(1); p <= 2; p++ {
		if m.doubt[p-1] && !w.Down && w.Left.Unasked > 0 {
			k, next := m.free, w
			next.Left.Unasked--
			tell(next, input{Op: settling, Station: k, Patron: p, Kind: read}, "the gate reads about %v's doubt, unasked", p)
		}
	}
	for _, i := range m.run {
		due = true
		tell(w, input{Op: step, Station: i, OK: !w.Down}, "the gate goes on: %s", m.doing[i])
	}
	return due
}

// later is the world a tick older.
func (w world) later() world {
	for k := range w.Kiosk {
		q := &w.Kiosk[k]
		q.Rest = false
		if q.Kind != nothing {
			q.Age++
		}
	}
	for i := range w.Link {
		if r := &w.Link[i]; r.At == atILS && r.Age < settle {
			r.Age++
		}
	}
	for i := range w.Late {
		if r := &w.Late[i]; r.Kind != nothing {
			r.Age++
			// The kernel goes on for the ILS timeout, the ILS for settle.
			if r.At == net && r.Age >= ilsTimeout || r.At == atILS && r.Age >= settle {
				*r = order{}
			}
		}
	}
	w.sortLate()
	for i := range w.Had {
		if w.Had[i] > 0 && w.Had[i] <= window {
			w.Had[i]++
		}
	}
	if w.Left.Desk > 0 {
		w.Walk = min(w.Walk+1, 2)
	}
	return w
}
