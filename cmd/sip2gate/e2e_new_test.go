package main

import (
	"bytes"
	"testing"

	"sip2gate/serialbridge/sim"
	"sip2gate/serialbridge/sip2"
)

// These are the checkouts that look like a repeat and are none.

// scene is a gate before an ILS with a patron and an item on loan to him.
type scene struct {
	ils    *sim.ILS
	gate   *gateProcess
	kiosk  *testKiosk
	stored []byte // the answer to base
	addr   string
}

const (
	item1 = "31234000000022"
	item2 = "31234000000105"
)

// people are the patrons and items of these tests, with all that must not
// show.
func people(p sim.Persona) sim.Options {
	return sim.Options{
		Persona: p,
		Patrons: map[string]sim.Patron{
			reader1: {Name: name1, PIN: pin1},
			reader2: {Name: name2, PIN: pin2},
		},
		Items: map[string]sim.Item{item1: {Title: title1}, item2: {Title: title1}},
	}
}

// base is the checkout whose answer is stored.
func base(n int) sim.CheckoutOptions {
	return sim.CheckoutOptions{PIN: pin1, Date: someDate(n)}
}

// lendOne brings the scene about: item1 is on loan to reader1.
func lendOne(t *testing.T, p sim.Persona) *scene {
	t.Helper()
	s := &scene{ils: startILS(t, people(p)), addr: freePort(t)}
	s.gate = startGate(t, setup{ils: s.ils.Addr(), stations: []string{listen(s.addr)}})
	s.kiosk = connect(t, s.addr)
	m := s.kiosk.borrow(reader1, item1, base(0))
	if !lent(m) {
		t.Fatalf("the first checkout: %q", m.Raw)
	}
	s.stored = m.Raw
	return s
}

// stored reports whether an answer is the stored one but for its AY and AZ.
func (s *scene) isStored(m sip2.Message) bool {
	return bytes.Equal(sip2.Body(m.Raw, m.Trailer), sip2.Body(s.stored, sip2.ReadAnswerTrailer(s.stored)))
}

func TestChangedRequestIsNotAnsweredFromMemory(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		for _, tt := range []struct {
			name         string
			patron, item string
			options      sim.CheckoutOptions
			conflict     bool  // the gate refuses it, and the ILS does not see it
			item1, item2 count // at the ILS in the end, where it does
		}{
			{name: "PIN", patron: reader1, item: item1, options: sim.CheckoutOptions{PIN: pin2, Date: someDate(0)}, conflict: true},
			{name: "no PIN", patron: reader1, item: item1, options: sim.CheckoutOptions{Date: someDate(0)}, conflict: true},
			{name: "BO", patron: reader1, item: item1, options: sim.CheckoutOptions{PIN: pin1, FeeAccepted: true, Date: someDate(0)}, conflict: true},
			{name: "patron", patron: reader2, item: item1, options: sim.CheckoutOptions{PIN: pin2, Date: someDate(0)}},
			{name: "item", patron: reader1, item: item2, options: sim.CheckoutOptions{PIN: pin1, Date: someDate(0)}},
		} {
			t.Run(string(persona)+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				s := lendOne(t, persona)
				m := s.kiosk.borrow(tt.patron, tt.item, tt.options)
				if s.isStored(m) || field(m, "AA") != tt.patron || field(m, "AB") != tt.item {
					t.Errorf("answered with the stored 12, or for another: %q", m.Raw)
				}
				switch {
				case tt.conflict:
					if !refused(m) {
						t.Errorf("not refused: %q", m.Raw)
					}
					s.gate.event("checkout_conflict", "item", item1)
					wantCount(t, s.ils, item1, oneLoan)
				case tt.item == item2:
					if !lent(m) {
						t.Errorf("the other item: %q", m.Raw)
					}
					wantCount(t, s.ils, item1, oneLoan)
					wantCount(t, s.ils, item2, oneLoan)
				default:
					// The ILS decides: the naive one ends the loan before.
					want := count{checkouts: 2, loans: 1, open: 1}
					if persona == sim.Naive {
						want.loans = 2
					}
					if lent(m) != (persona == sim.Naive) {
						t.Errorf("not the ILS's own answer: %q", m.Raw)
					}
					wantCount(t, s.ils, item1, want)
				}
			})
		}
	}
}

// twoLoans is what a real second checkout leads to.
var twoLoans = count{checkouts: 2, loans: 2, open: 1}

// TestCheckinMakesTheNextCheckoutNew: the machine's own repeat, and another.
func TestCheckinMakesTheNextCheckoutNew(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		for name, date := range map[string]int{"same date": 0, "new date": 30} {
			t.Run(string(persona)+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := lendOne(t, persona)
				ctx, cancel := s.kiosk.within()
				defer cancel()
				if m, err := s.kiosk.Checkin(ctx, item1); err != nil || string(m.Fixed("ok")) != "1" {
					t.Fatalf("checkin: %q, %v", m.Raw, err)
				}
				if m := s.kiosk.borrow(reader1, item1, base(date)); !lent(m) || string(m.Fixed("renewal_ok")) == "Y" {
					t.Errorf("the second loan: %q", m.Raw)
				}
				wantCount(t, s.ils, item1, twoLoans)
			})
		}
	}
}

// TestCheckinAtTheDesk: the gate does not see it. When the patron scans again
// a read tells.
func TestCheckinAtTheDesk(t *testing.T) {
	t.Parallel()
	for _, persona := range everyPersona {
		t.Run(string(persona), func(t *testing.T) {
			t.Parallel()
			s := lendOne(t, persona)
			if !s.ils.DeskCheckin(item1) {
				t.Fatal("there was no loan")
			}
			reads := s.ils.Received("63")
			if m := s.kiosk.borrow(reader1, item1, base(40)); !lent(m) || string(m.Fixed("renewal_ok")) == "Y" {
				t.Errorf("the second loan: %q", m.Raw)
			}
			if s.ils.Received("63") == reads {
				t.Error("nothing was read")
			}
			s.gate.event("checkout_ended", "item", item1)
			wantCount(t, s.ils, item1, twoLoans)
		})
	}
}
