package sim_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sip2gate/serialbridge/sim"
)

func TestEveryPersonaLendsOnce(t *testing.T) {
	if n := len(sim.Personas()); n != 7 {
		t.Errorf("%d personas", n)
	}
	for _, p := range sim.Personas() {
		got, err := sim.ParsePersona(strings.ToUpper(string(p)))
		if err != nil || got != p {
			t.Errorf("parsed %q: %q, %v", p, got, err)
		}
		ils := start(t, known(p))
		head, _ := checkout(t, kiosk(t, ils.Addr()), patron, item, sim.CheckoutOptions{})
		equal(t, string(p), head, "121N")
	}
	_, err := sim.ParsePersona("alma")
	if err == nil || !strings.Contains(err.Error(), "rero or sierra") {
		t.Errorf("an unknown persona: %v", err)
	}
}

// Two days lie between the two checkouts: no race.
func TestSecondCheckoutByPersona(t *testing.T) {
	for _, c := range []struct {
		persona       sim.Persona
		second, third string // the answer to the same patron, to another
		renewals      int
		holder        string
	}{
		{sim.Evergreen, "121Y", "120N", 1, patron},
		{sim.EvergreenMediator, "120N", "120N", 0, patron},
		{sim.Sierra, "121Y", "121N", 1, other},
		{sim.Rero, "120N", "120N", 0, patron},
	} {
		t.Run(string(c.persona), func(t *testing.T) {
			opts := known(c.persona)
			var later atomic.Int64
			opts.Clock = func() time.Time { return at().Add(time.Duration(later.Load())) }
			ils := start(t, opts)
			k := kiosk(t, ils.Addr())
			checkout(t, k, patron, item, sim.CheckoutOptions{})
			later.Add(int64(48 * time.Hour))
			head, m := checkout(t, k, patron, item, sim.CheckoutOptions{})
			equal(t, "second", head, c.second)
			if field(m, "AF") == "" {
				t.Error("the screen says nothing about the second checkout")
			}
			equal(t, "renewals", ils.Renewals(item), c.renewals)
			head, _ = checkout(t, k, other, item, sim.CheckoutOptions{})
			equal(t, "another patron", head, c.third)
			holder, _, _ := ils.ActiveLoan(item)
			equal(t, "holder", holder, c.holder)
			equal(t, "open loans", ils.OpenLoans(item), 1)
		})
	}
}

func TestEvergreenRenewsOnlyByPolicy(t *testing.T) {
	const mayNot = "11NN20261130    101500                  AOMAIN|AA21234000000011|AB31234000000022|AC|AD4711|BON|BIN|"
	for _, c := range []struct {
		name          string
		limit         int
		second        string // sent
		want, message string
		status        string
		renewals      int
	}{
		{"both allow it", 0, f1, "121Y", "renewing", "98YYYY", 1},
		{"the station's does not", 0, mayNot, "120Y", "not permitted", "98YYYY", 0},
		{"its own does not", -1, f1, "120Y", "not permitted", "98YYYN", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := known(sim.Evergreen)
			opts.RenewalLimit = c.limit
			ils := start(t, opts)
			k := kiosk(t, ils.Addr())
			equal(t, "a first 11 needs no renewal policy", exchange(t, k, mayNot)[:4], "121N")
			got := exchange(t, k, c.second)
			equal(t, "second", got[:4], c.want)
			if !strings.Contains(got, c.message) {
				t.Errorf("%q does not say %q", got, c.message)
			}
			equal(t, "98", exchange(t, k, stat)[:6], c.status)
			equal(t, "renewals", ils.Renewals(item), c.renewals)
			equal(t, "loans", ils.Loans(item), 1)
		})
	}
}

func TestReroLendsTwiceWithinASecond(t *testing.T) {
	opts := known(sim.Rero)
	var later atomic.Int64
	opts.Clock = func() time.Time { return at().Add(time.Duration(later.Load())) }
	ils := start(t, opts)
	k := kiosk(t, ils.Addr())
	for i, c := range []struct {
		later time.Duration
		want  string
		open  int
	}{
		{0, "121N", 1},
		{999 * time.Millisecond, "121N", 2},
		{time.Second, "120N", 2}, // after the newest loan
	} {
		later.Add(int64(c.later))
		head, _ := checkout(t, k, patron, item, sim.CheckoutOptions{})
		equal(t, fmt.Sprint("checkout ", i+1), head, c.want)
		equal(t, "open loans", ils.OpenLoans(item), c.open)
	}
	head, _ := checkout(t, k, other, item, sim.CheckoutOptions{})
	equal(t, "another patron", head, "120N")
}

func TestUnknownCodesByPersona(t *testing.T) {
	for p, hangsUp := range map[sim.Persona]bool{
		sim.Evergreen: true, sim.EvergreenMediator: true, sim.Rero: true, sim.Sierra: false,
	} {
		ils := start(t, known(p))
		k := kiosk(t, ils.Addr())
		if err := k.Send(k.Frame([]byte("ZZhello"))); err != nil {
			t.Fatal(err)
		}
		if hangsUp {
			_ = ended(t, k)
		} else {
			silent(t, k)
		}
	}
}
