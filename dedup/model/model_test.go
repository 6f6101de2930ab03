// Package model explores the rules of the gate: one book, two patrons, two
// kiosks, the desk, an ILS and the network between, with everything that can
// go wrong between them, against the promises that the product makes:
//
//  1. an 11 is carried out at most once for each wish of a patron, renewals
//     included;
//  2. ok=1 is said only for an item that is lent to this patron, so nobody
//     walks out with a book that is neither lent nor refused;
//  3. each wait gets one answer, in time, and never another one's.
//
// The gate is the real one, on a store whose power can fail and a clock that
// is moved by hand. Of the bridge there is a small copy that follows it
// function by function. Each run has a budget of events and is explored until
// every interleaving within that budget has been seen, breadth first, so that
// what breaks a promise first is a shortest trace. It is printed step by step.
//
// MODEL_DEPTH=2 explores larger budgets, for minutes; MODEL_DEPTH=3 for longer
// still, with every step of the gate interleaved with everything else.
package model

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// lent: P has been lent the book and told so.
var lent = []string{
	"P scans", "the gate goes on: decides", "the gate goes on: is to send", "the 11 of K1 arrives",
	"the ILS carries out", "the answer to the 11",
}

// unanswered: P's 11 is in doubt; it may still be carried out. He was told no.
var unanswered = []string{
	"P scans", "the gate goes on: decides", "the gate goes on: is to send", "the 11 of K1 arrives",
	"a tick", "a tick", "the wait at K1 is over", "no answer in time", "the gate goes on: decides",
}

// returning: then the book is checked in at K1, which gives up waiting.
var returning = append(slices.Clone(lent),
	"the book is checked in at K1", "the gate goes on: decides", "the gate goes on: is to send", "K1 gives up its 09")

// run is a scenario with the rules that it needs: without any of them alone a
// promise must break.
type run struct {
	scenario
	needs []string
	depth int // the MODEL_DEPTH from which on it is explored to its end
}

var runs = []run{
	{scenario{name: "answers lost", ils: koha, kiosks: 1, patrons: 1, left: budget{Scan: 2, Lost: 1}}, nil, 1},
	{scenario{name: "the desk", ils: koha, kiosks: 1, patrons: 1, left: budget{Scan: 2, Desk: 1}}, []string{verifying}, 1},
	{scenario{name: "a hang-up", ils: koha, kiosks: 1, patrons: 1, left: budget{Scan: 2, HangUp: 1}}, []string{delivered}, 1},
	{scenario{name: "a cut", ils: koha, kiosks: 1, patrons: 1, left: budget{Scan: 2, Cut: 1}}, []string{abort}, 1},
	{scenario{name: "a kill", ils: koha, kiosks: 1, patrons: 1, left: budget{Scan: 2, Crash: 1, Lost: 1}}, []string{startSettle}, 1},
	{scenario{name: "a checkin and a kill", ils: koha, kiosks: 1, patrons: 1, begin: lent, left: budget{Scan: 2, Checkin: 1, Crash: 1}}, []string{markFirst}, 1},
	{scenario{name: "a checkin unanswered", ils: koha, kiosks: 1, patrons: 1, left: budget{Scan: 1, Checkin: 1, Lost: 1}}, []string{holding}, 1},
	{scenario{name: "another patron", ils: sierra, kiosks: 1, patrons: 2, begin: unanswered, left: budget{Scan: 2, Lost: 1}}, []string{othersWait}, 1},
	{scenario{name: "a read overtaken by the desk", ils: koha, kiosks: 1, patrons: 1, begin: unanswered, left: budget{Scan: 2, Desk: 1, Unasked: 1}}, []string{begunAfter}, 1},
	{scenario{name: "amnesia", ils: koha, kiosks: 1, patrons: 1, left: budget{Scan: 1, Crash: 1, Amnesia: 1}}, []string{amnesiaSettle}, 1},
	{scenario{name: "a checkin overtaken", ils: koha, kiosks: 2, patrons: 1, begin: returning, left: budget{Scan: 3, Checkin: 1, LeaveIn: 1}}, []string{tokens}, 2},

	{scenario{name: "folio", ils: folio, kiosks: 1, patrons: 1, left: budget{Scan: 2, Lost: 1, Cut: 1}}, nil, 2},
	{scenario{name: "naive, a cancel", ils: naive, kiosks: 1, patrons: 1, begin: lent, left: budget{Scan: 2, Lost: 1, Cancel: 1}}, nil, 2},
	{scenario{name: "koha, a cancel", ils: koha, kiosks: 1, patrons: 1, begin: lent, left: budget{Scan: 2, Lost: 1, Cancel: 1}}, nil, 2},
	{scenario{name: "a date for each repeat", ils: koha, kiosks: 1, patrons: 1, newDate: true, left: budget{Scan: 2, Lost: 1}}, nil, 2},
	{scenario{name: "one date for ever", ils: koha, kiosks: 1, patrons: 1, sameDate: true, left: budget{Scan: 2, Lost: 1, Cut: 1}}, nil, 2},
	{scenario{name: "a reset, a dropped 11", ils: koha, kiosks: 1, patrons: 1, left: budget{Scan: 2, Lost: 1, Reset: 1, Drop: 1}}, nil, 2},
	{scenario{name: "two kiosks, a hang-up", ils: koha, kiosks: 2, patrons: 1, left: budget{Scan: 2, HangUp: 1}}, nil, 2},
	{scenario{name: "sierra, two patrons", ils: sierra, kiosks: 1, patrons: 2, left: budget{Scan: 2, Lost: 1}}, nil, 2},
	{scenario{name: "amnesia and a cut", ils: koha, kiosks: 1, patrons: 1, left: budget{Scan: 2, Crash: 1, Amnesia: 1, Cut: 1}}, nil, 2},
	{scenario{name: "a checkin, a kill, a lost answer", ils: koha, kiosks: 1, patrons: 1, begin: lent, left: budget{Scan: 2, Checkin: 1, Crash: 1, Lost: 1}}, nil, 3},
	{scenario{name: "two kills", ils: koha, kiosks: 1, patrons: 1, left: budget{Scan: 2, Crash: 2, Lost: 1}}, nil, 3},
}

const most = 3_000_000 // nodes: about 2 GB

func depth() int {
	n, err := strconv.Atoi(os.Getenv("MODEL_DEPTH"))
	if err != nil {
		return 1
	}
	return n
}

func explore(t *testing.T, s scenario) *finding {
	t.Helper()
	begun := time.Now()
	s.urgent = depth() < 3
	e := newExplorer(&s)
	found, all := e.run(most)
	t.Logf("%d nodes, %d states of the gate and bridge, %d steps of them, %d compared, %v",
		len(e.nodes), len(e.states), e.steps, e.compared, time.Since(begun).Round(time.Millisecond))
	if found == nil && !all {
		t.Errorf("not exhausted within %d nodes", most)
	}
	return found
}

func TestPromisesHold(t *testing.T) {
	for _, r := range runs {
		if r.depth > depth() {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			if f := explore(t, r.scenario); f != nil {
				t.Error(f)
			}
		})
	}
}

// Negative controls: each rule is taken away alone.
func TestEachRuleIsNeeded(t *testing.T) {
	for _, r := range runs {
		for _, rule := range r.needs {
			t.Run(rule, func(t *testing.T) {
				s := r.scenario
				s.without = rule
				f := explore(t, s)
				if f == nil {
					t.Fatalf("nothing breaks without it")
				}
				t.Log(f)
			})
		}
	}
}
