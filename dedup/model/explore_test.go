package model

import (
	"fmt"
	"slices"
	"strings"

	"sip2gate/dedup"
	"sip2gate/dedup/memory"
)

// scenario is a run: who takes part, which ILS, what may happen how often.
type scenario struct {
	name     string
	ils      ils
	kiosks   int
	patrons  patron
	newDate  bool // a kiosk renews the transaction date at each repeat
	sameDate bool // a kiosk sends the same date always
	urgent   bool // what the gate can do by itself it does before anything else happens
	without  string
	begin    []string // how it begins: each is the beginning of an action's words
	left     budget
}

// menu is what can be done with an appliance.
type menu struct {
	run     []uint8 // workers that can go on
	doing   []string
	expire  [2]bool // the wait's time is up
	overdue [2]bool // the exchange's time is up
	busy    [2]bool
	doubt   [2]bool // there is a doubt to be read about, and nobody does
	free    uint8   // a link that is free
	states  uint8   // what a crash may leave on the disk
	marked  []bool  // for each of them: there is a marked record
}

func (a *appliance) menu() *menu {
	m := &menu{states: uint8(len(a.disk.since)), free: 0xff}
	for _, left := range a.disk.since {
		m.marked = append(m.marked, slices.ContainsFunc(left, func(e memory.Entry) bool { return e.Record.Marked }))
	}
	now := a.clock.Now()
	unasked := false
	for i, w := range a.workers {
		m.doing = append(m.doing, w.doing())
		if a.due(w) {
			m.run = append(m.run, uint8(i))
		}
		unasked = unasked || w.Kind == read
	}
	for k := range a.session {
		s := &a.session[k]
		m.expire[k] = s.Wait != nil && now >= s.Wait.Deadline
		m.busy[k] = s.Busy != nil
		m.overdue[k] = s.Busy != nil && now >= s.Until
		if s.Busy == nil { // K2's rather than K1's, where a worker may want it
			m.free = uint8(k)
		}
	}
	if !unasked && m.free != 0xff {
		for r := range a.disk.All() {
			if r.State == dedup.Doubtful && r.Request != nil {
				m.doubt[holderOf(&r)-1] = true
			}
		}
	}
	return m
}

func (w *worker) doing() string {
	what := [...]string{
		"decides about", "looks again at", "is to send", "waits for the answer to", "is to read for",
		"reads for", "has joined",
	}[w.Stage]
	return fmt.Sprintf("%s %v's %v of K%d", what, w.Patron, w.Kind, w.Station+1)
}

// state is the appliance in one of the states that it can be in. It is known
// by how it was reached first, and is reached again in the same way.
type state struct {
	from  int32
	in    input
	menu  *menu
	next  map[input]reaction
	first input      // in next
	live  *appliance // for who goes on from here first; nil when used up
}

type reaction struct {
	to  int32
	out []effect
}

// explorer walks through all states of the world and the appliance, breadth
// first: the first trace that breaks a promise is a shortest one.
//
// A gate cannot be copied. So each step of it is taken once from each of its
// states, by taking again the steps that led there, and what came of it is
// kept: many worlds meet the same appliance.
type explorer struct {
	s      *scenario
	states []state
	words  map[string]int32
	nodes  []node
	seen   map[spot]struct{}
	lives  int

	steps, meetings, compared int
}

// spot is where a run can be; node is one that has been reached.
type spot struct {
	w world
	a int32
}

type node struct {
	spot
	from int32
	what string
}

func newExplorer(s *scenario) *explorer {
	e := &explorer{s: s, words: map[string]int32{}, seen: map[spot]struct{}{}}
	first := e.file(newAppliance(s.without), -1, input{})
	e.visit(spot{w: world{Next: 1, Walk: 2, Left: s.left}, a: first}, -1, "")
	for _, want := range s.begin {
		e.follow(want)
	}
	return e
}

// follow takes the one action whose words begin so, when it comes out first.
func (e *explorer) follow(want string) {
	last := int32(len(e.nodes) - 1)
	n := e.nodes[last]
	for _, act := range e.s.actions(n.w, e.states[n.a].menu) {
		if strings.HasPrefix(act.what, want) {
			if e.take(last, act) == nil && len(e.nodes) > int(last)+1 {
				for _, n := range e.nodes[last+2:] {
					delete(e.seen, n.spot)
				}
				e.nodes = e.nodes[:last+2]
				return
			}
		}
	}
	panic("a run cannot begin with: " + want)
}

// mostLive bounds the memory: an appliance takes some 10 KB.
const mostLive = 20_000

// file finds the state that a is in, or makes it known.
func (e *explorer) file(a *appliance, from int32, in input) int32 {
	w := word(a)
	if id, ok := e.words[w]; ok {
		e.compare(a, id)
		return id
	}
	id := int32(len(e.states))
	e.words[w] = id
	st := state{from: from, in: in, menu: a.menu(), next: map[input]reaction{}}
	if e.lives < mostLive {
		st.live = a
		e.lives++
	}
	e.states = append(e.states, st)
	return id
}

// oftenEnough: every so many meetings of two ways to one state are compared.
const oftenEnough = 3

// compare makes sure that what is taken for one state is one: a, which came
// another way, must do what the other one did with the first input after it.
func (e *explorer) compare(a *appliance, id int32) {
	st := &e.states[id]
	if e.meetings++; e.meetings%oftenEnough != 0 || st.first.Op == none {
		return
	}
	r := st.next[st.first]
	before := fmt.Sprint(e.path(id))
	out := a.do(st.first)
	if id, ok := e.words[word(a)]; !ok || id != r.to || !slices.Equal(out, r.out) {
		panic(fmt.Sprintf("two states with the same words differ: after %v, %v does %v here and %v there; then\n%q\n%q",
			before, st.first, out, r.out, word(a), word(e.appliance(r.to))))
	}
	e.compared++
}

// react is what the appliance in state id does with an input.
func (e *explorer) react(id int32, in input) reaction {
	if r, ok := e.states[id].next[in]; ok {
		return r
	}
	a := e.appliance(id)
	e.steps++
	r := reaction{out: a.do(in)}
	r.to = e.file(a, id, in)
	st := &e.states[id]
	st.next[in] = r
	if st.first.Op == none {
		st.first = in
	}
	return r
}

// appliance is one in the given state, for the caller alone.
func (e *explorer) appliance(id int32) *appliance {
	if a := e.states[id].live; a != nil {
		e.states[id].live = nil
		e.lives--
		return a
	}
	a := newAppliance(e.s.without)
	for _, in := range e.path(id) {
		a.do(in)
	}
	return a
}

// path is what led to a state first.
func (e *explorer) path(id int32) []input {
	var path []input
	for i := id; e.states[i].from >= 0; i = e.states[i].from {
		path = append(path, e.states[i].in)
	}
	slices.Reverse(path)
	return path
}

// finding is a promise that was broken, and how.
type finding struct {
	bad   string
	trace []string
}

// run explores until nothing is left, a promise is broken, or more than most
// nodes are known.
func (e *explorer) run(most int) (found *finding, exhausted bool) {
	for i := len(e.nodes) - 1; i < len(e.nodes); i++ {
		if len(e.nodes) > most {
			return nil, false
		}
		n := e.nodes[i]
		for _, act := range e.s.actions(n.w, e.states[n.a].menu) {
			if f := e.take(int32(i), act); f != nil {
				return f, false
			}
		}
	}
	return nil, true
}

// take does an action, once for each way in which it can come out.
func (e *explorer) take(from int32, act action) *finding {
	n := e.nodes[from].spot
	if act.bad != "" {
		return e.found(from, act.what, act.bad)
	}
	if act.in.Op == none {
		e.visit(spot{act.w, n.a}, from, act.what)
		return nil
	}
	r := e.react(n.a, act.in)
	for _, lost := range []bool{false, true} {
		w, what, any := act.w, act.what, false
		if lost && w.Left.Lost == 0 {
			break
		}
		for _, eff := range r.out {
			// At a kiosk where nobody waits nothing can be lost.
			gone := lost && eff.What == answers && w.Kiosk[eff.Station].Kind != nothing
			any = any || gone
			words, bad := e.s.apply(&w, eff, gone)
			what += "; " + words
			if bad != "" {
				return e.found(from, what, bad)
			}
		}
		if lost && !any {
			break
		}
		if lost {
			w.Left.Lost--
		}
		e.visit(spot{w, r.to}, from, what)
	}
	return nil
}

func (e *explorer) visit(p spot, from int32, what string) {
	if _, ok := e.seen[p]; ok {
		return
	}
	e.seen[p] = struct{}{}
	e.nodes = append(e.nodes, node{spot: p, from: from, what: what})
}

func (e *explorer) found(from int32, what, bad string) *finding {
	f := &finding{bad: bad, trace: []string{what + "   <== " + bad}}
	for i := from; e.nodes[i].from >= 0; i = e.nodes[i].from {
		f.trace = append(f.trace, e.nodes[i].what)
	}
	slices.Reverse(f.trace)
	return f
}

func (f *finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", f.bad)
	for i, line := range f.trace {
		fmt.Fprintf(&b, "  %2d %s\n", i+1, line)
	}
	return b.String()
}
