package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sip2gate/serialbridge/sim"
	"sip2gate/serialbridge/sip2"
)

// Frames as they stand on real wires, with checksums from another program.
const (
	f1     = "11YN20261130    101500                  AOMAIN|AA21234000000011|AB31234000000022|AC|AD4711|BON|BIN|AY1AZE910"
	f1BIY  = "11YN20261130    101500                  AOMAIN|AA21234000000011|AB31234000000022|AC|AD4711|BON|BIY|AY2AZE904"
	f1BOY  = "11YN20261130    101500                  AOMAIN|AA21234000000011|AB31234000000022|AC|AD4711|BOY|BIN|AY2AZE904"
	f1Bad  = "11YN20261130    101500                  AOMAIN|AA21234000000011|AB31234000000022|AC|AD4711|BON|BIN|AY1AZ0000"
	checkn = "09N20261130    10154020261130    101540APMAIN|AOMAIN|AB31234000000022|AC|BIN|AY3AZED05"
	pi     = "6300120261130    101522  Y       AOMAIN|AA21234000000011|AC|BP1|BQ100|AY5AZEF2D"
	ii     = "1720261130    101520AOMAIN|AB31234000000022|AC|AY4AZF416"
	end    = "3520261130    101700AOMAIN|AA21234000000011|AC|AD4711|AY6AZF24A"
	fee    = "3720261130    1016000100EURBV1.50|AOMAIN|AA21234000000011|AC|AD4711|BKpay-77|AY7AZEBD5"
	stat   = "9900802.00AY2AZFC9F"
	login  = "9300CNkiosk1|COs3cret|CPMAIN|AY0AZF4DA"
	// seed is the frame of the incident: no nb due date, wrong checksum.
	seed = "11YN20260716    110214AOMAIN-BR|AAB1029384756|ABI30012000029894|ACterm7|AY3AZF1C2"
)

func TestAnswersAreWholeFrames(t *testing.T) {
	clock := at()
	opts := known(sim.Koha)
	opts.Terminator = "\r"
	koha := start(t, opts)
	opts = known(sim.Naive)
	opts.Clock = func() time.Time { return clock }
	naive := start(t, opts)
	charged := func(l *sim.ILS) { l.Lend(item, patron, time.Date(2026, 12, 21, 23, 59, 0, 0, time.UTC)) }
	free := func(l *sim.ILS) { l.DeskCheckin(item) }

	for _, c := range []struct {
		name   string
		ils    *sim.ILS
		before func(*sim.ILS)
		send   string
		want   string
	}{
		{"login", naive, nil, login, "941AY0AZFDFD"},
		{"status", koha, nil, stat, "98YYYYNN10000320261130    1015012.00AOMAIN|AMMain Library|BXYYYYYYYYYYYNYYYY|AY2AZE8BD"},
		{"checkout", naive, free, f1, "121NNY20261130    101501AOMAIN|AA21234000000011|AB31234000000022|AJThe Long Rain|AH20261221    235900|AY1AZE683"},
		{"item charged", naive, charged, ii, "1804000120261130    101501CF0|AH20261221    235900|AB31234000000022|AJThe Long Rain|AY4AZEB23"},
		{"item in", naive, free, ii, "1803000120261130    101501CF0|AB31234000000022|AJThe Long Rain|AY4AZEF6C"},
		{"patron with a loan", naive, charged, pi, "64              00120261130    101501000000000001000000000000AOMAIN|AA21234000000011|AEReader One|BLY|AU31234000000022|AY5AZE489"},
		{"patron without", naive, free, pi, "64              00120261130    101501000000000000000000000000AOMAIN|AA21234000000011|AEReader One|BLY|AY5AZE84D"},
		{"checkin", naive, charged, checkn, "101YNN20261130    101501AOMAIN|AB31234000000022|AQMAIN|AJThe Long Rain|AY3AZEC44"},
		{"end of session", naive, nil, end, "36Y20261130    101501AOMAIN|AA21234000000011|AY6AZF4BF"},
		{"fee", naive, nil, fee, "38Y20261130    101501AOMAIN|AA21234000000011|BKpay-77|AY7AZF1CE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.before != nil {
				c.before(c.ils)
			}
			got := exchange(t, kiosk(t, c.ils.Addr()), c.send)
			equal(t, "answer", got, c.want)
			m := sip2.Parse([]byte(got), '|')
			equal(t, "its checksum is right", m.Trailer.Valid, true)
		})
	}
}

func TestSecondCheckout(t *testing.T) {
	for _, c := range []struct {
		persona         sim.Persona
		second, third   string // the answer to the same patron, to another
		loans, renewals int
		open            int
	}{
		{sim.Naive, "121N", "121N", 3, 0, 1},
		{sim.Koha, "121Y", "120N", 1, 1, 1},
		{sim.Folio, "120N", "120N", 1, 0, 1},
	} {
		t.Run(string(c.persona), func(t *testing.T) {
			ils := start(t, known(c.persona))
			k := kiosk(t, ils.Addr())
			head, _ := checkout(t, k, patron, item, sim.CheckoutOptions{})
			equal(t, "first", head, "121N")
			_, due, _ := ils.ActiveLoan(item)
			head, m := checkout(t, k, patron, item, sim.CheckoutOptions{})
			equal(t, "second", head, c.second)
			if c.persona == sim.Naive {
				equal(t, "loans open after the incident", ils.OpenLoans(item), 2)
			}
			_, later, _ := ils.ActiveLoan(item)
			equal(t, "due date moved", later.After(due), c.persona == sim.Koha)
			if c.persona != sim.Naive && field(m, "AF") == "" {
				t.Error("the screen says nothing about the second checkout")
			}
			head, _ = checkout(t, k, other, item, sim.CheckoutOptions{})
			equal(t, "another patron", head, c.third)
			equal(t, "loans", ils.Loans(item), c.loans)
			equal(t, "renewals", ils.Renewals(item), c.renewals)
			equal(t, "open loans", ils.OpenLoans(item), c.open)
			equal(t, "11 received", ils.Checkouts(item), 3)
			equal(t, "11 received in all", ils.Received("11"), 3)
			holder, _, ok := ils.ActiveLoan(item)
			want := patron
			if c.persona == sim.Naive {
				want = other
			}
			equal(t, "holder", fmt.Sprint(holder, ok), fmt.Sprint(want, true))
		})
	}
}

func TestRenewalLimit(t *testing.T) {
	opts := known(sim.Koha)
	opts.RenewalLimit = 1
	ils := start(t, opts)
	k := kiosk(t, ils.Addr())
	for _, want := range []string{"121N", "121Y", "120Y"} {
		head, _ := checkout(t, k, patron, item, sim.CheckoutOptions{})
		equal(t, "answer", head, want)
	}
	m, err := k.Renew(within(t), patron, item)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "29 over the limit", string(m.Raw[:4]), "300Y")
	m, err = k.RenewAll(within(t), patron)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "65 over the limit", string(m.Raw[:11]), "66100000001")
	equal(t, "not renewed", field(m, "BN"), item)
	equal(t, "renewals", ils.Renewals(item), 1)
}

func TestSeedFrameMakesALoan(t *testing.T) {
	ils := start(t, sim.Options{})
	k := kiosk(t, ils.Addr())
	for i := range 2 {
		if got := exchange(t, k, seed); !strings.HasPrefix(got, "121N") {
			t.Fatalf("transmission %d: %q", i+1, got)
		}
	}
	equal(t, "loans of the incident", ils.OpenLoans("I30012000029894"), 2)
	equal(t, "frame as it came", string(ils.Frames()[0]), seed)

	for name, opts := range map[string]sim.Options{"checked": {CheckAZ: true}, "whole frames only": {RefuseShort: true}} {
		ils := start(t, opts)
		got := exchange(t, kiosk(t, ils.Addr()), seed)
		equal(t, name, got, "96AZFEF6")
		equal(t, name+": loans", ils.Loans("I30012000029894"), 0)
	}
}

func TestChecksum(t *testing.T) {
	for _, p := range []sim.Persona{sim.Naive, sim.Koha, sim.Folio} {
		opts := known(p)
		opts.CheckAZ = true
		ils := start(t, opts)
		k := kiosk(t, ils.Addr())
		equal(t, "wrong", exchange(t, k, f1Bad), "96AZFEF6")
		equal(t, "loans", ils.Loans(item), 0)
		equal(t, "right", exchange(t, k, f1)[:4], "121N")
	}
}

func TestSequenceGapIsRefused(t *testing.T) {
	ils := start(t, sim.Options{CheckAY: true})
	k := kiosk(t, ils.Addr())
	equal(t, "first", exchange(t, k, f1)[:4], "121N")
	equal(t, "the same again", exchange(t, k, f1), "96AZFEF6")
	equal(t, "the next", exchange(t, k, stat)[:2], "98")
}

func TestTrailerOfAnswers(t *testing.T) {
	const plain = "9900802.00"
	for _, c := range []struct {
		persona    sim.Persona
		detection  sim.ErrorDetection
		send       string
		wantSuffix string
	}{
		{sim.Naive, sim.Mirror, stat, "AY2"},
		{sim.Naive, sim.Mirror, plain, ""},
		{sim.Koha, sim.Mirror, plain, ""},
		{sim.Folio, sim.Off, stat, ""},
		{sim.Folio, sim.On, stat, "AY2"},
		{sim.Folio, sim.On, plain, "96"},
	} {
		ils := start(t, sim.Options{Persona: c.persona, ErrorDetection: c.detection})
		m := sip2.Parse([]byte(exchange(t, kiosk(t, ils.Addr()), c.send)), '|')
		what := fmt.Sprint(c.persona, " to ", c.send)
		switch c.wantSuffix {
		case "":
			equal(t, what+": trailer", m.Trailer.Present, false)
			equal(t, what, m.Code, sip2.CodeACSStatus)
		case "96":
			equal(t, what, string(m.Raw), "96AZFEF6")
		default:
			equal(t, what, string(m.Raw[m.Trailer.Start:m.Trailer.Start+3]), c.wantSuffix)
			equal(t, what+": checksum", m.Trailer.Valid, true)
		}
	}
}

func TestCancelUndoesALoan(t *testing.T) {
	ils := start(t, known(sim.Naive))
	k := kiosk(t, ils.Addr())
	equal(t, "checkout", exchange(t, k, f1)[:3], "121")
	equal(t, "cancel", exchange(t, k, f1BIY)[:3], "121")
	equal(t, "open loans", ils.OpenLoans(item), 0)
	equal(t, "cancel without loan", exchange(t, k, f1BIY)[:3], "120")

	koha := start(t, known(sim.Koha))
	k = kiosk(t, koha.Addr())
	exchange(t, k, f1)
	equal(t, "Koha ignores BI", exchange(t, k, f1BIY)[:4], "121Y")
}

func TestFeeMustBeAcknowledged(t *testing.T) {
	opts := known(sim.Naive)
	opts.Items = map[string]sim.Item{item: {Title: "The Long Rain", Fee: "1.50"}}
	ils := start(t, opts)
	k := kiosk(t, ils.Addr())
	equal(t, "N", exchange(t, k, f1), "120NUN20261130    101501AOMAIN|AA21234000000011|AB31234000000022|AJThe Long Rain|AH|BT06|BHEUR|BV1.50|AFA fee of 1.50 applies|AY1AZDD0E")
	equal(t, "fees", ils.FeesPaid(), 0)
	equal(t, "Y", exchange(t, k, f1BOY)[:3], "121")
	equal(t, "fees", ils.FeesPaid(), 1)
	exchange(t, k, fee)
	exchange(t, k, fee)
	equal(t, "a payment sent twice is booked twice", ils.FeesPaid(), 3)
}

func TestPINAndBlocks(t *testing.T) {
	opts := known(sim.Naive)
	opts.Patrons = map[string]sim.Patron{patron: {Name: "Reader One", PIN: "4711"}}
	opts.KnownOnly = true
	ils := start(t, opts)
	k := kiosk(t, ils.Addr())
	try := func(what, patron, pin, want string) sip2.Message {
		t.Helper()
		head, m := checkout(t, k, patron, item, sim.CheckoutOptions{PIN: pin})
		equal(t, what, head[:3], want)
		return m
	}
	equal(t, "why", field(try("wrong PIN", patron, "4712", "120"), "AF"), "Invalid PIN")
	try("no PIN", patron, "", "120")
	try("unknown patron", other, "4711", "120")
	try("right PIN", patron, "4711", "121")

	m, err := k.PatronInformation(within(t), patron, "4712")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "63 with a wrong PIN", field(m, "CQ")+field(m, "AU"), "N")
	equal(t, "63 without AD lists", strings.Contains(exchange(t, k, pi), "|AU"+item+"|"), true)
	m, err = k.PatronInformation(within(t), other, "")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "63 of an unknown patron", field(m, "BL"), "N")

	block := string(k.Frame([]byte("01N20261130    101501AOMAIN|ALlost|AA" + patron + "|AC|")))
	equal(t, "block", exchange(t, k, block)[:6], "24YYYY")
	equal(t, "why", field(try("blocked", patron, "4711", "120"), "AF"), "Patron is blocked")
	enable := string(k.Frame([]byte("2520261130    101501AOMAIN|AA" + patron + "|AC|AD4711|")))
	equal(t, "enable", exchange(t, k, enable)[:6], "26    ")
	m, err = k.PatronStatus(within(t), patron, "4711")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "status", string(m.Raw[:6])+field(m, "BL")+field(m, "CQ"), "24    YY")
}

func TestOfflineLoanKeepsItsDueDate(t *testing.T) {
	opts := known(sim.Folio)
	opts.Items = map[string]sim.Item{item: {NotLoaned: true}}
	ils := start(t, opts)
	k := kiosk(t, ils.Addr())
	head, _ := checkout(t, k, patron, item, sim.CheckoutOptions{})
	equal(t, "on line", head, "120N")
	due := time.Date(2026, 12, 5, 12, 0, 0, 0, time.UTC)
	head, _ = checkout(t, k, patron, item, sim.CheckoutOptions{NoBlock: true, Due: due})
	equal(t, "lent off line", head, "121N")
	_, got, _ := ils.ActiveLoan(item)
	equal(t, "due", got, due)
}

func TestListIsCutToTheRangeAskedFor(t *testing.T) {
	ils := start(t, sim.Options{})
	for i := range 101 {
		ils.Lend(fmt.Sprint("item", i), patron, time.Time{})
	}
	m := sip2.Parse([]byte(exchange(t, kiosk(t, ils.Addr()), pi)), '|')
	equal(t, "count", string(m.Fixed("charged_items_count")), "0101")
	equal(t, "listed", m.Count("AU"), 100)
}

func TestBytesOfAnyCharsetPass(t *testing.T) {
	const title = "\xC4rger \xFCber B\xFCcher"
	opts := known(sim.Naive)
	opts.Items = map[string]sim.Item{item: {Title: title + "|\r"}}
	ils := start(t, opts)
	m := sip2.Parse([]byte(exchange(t, kiosk(t, ils.Addr()), f1)), '|')
	equal(t, "title", field(m, "AJ"), title)
	equal(t, "checksum", m.Trailer.Valid, true)

	k := kiosk(t, ils.Addr())
	head, m := checkout(t, k, " "+other+" ", "\x1b\xA07 ", sim.CheckoutOptions{})
	equal(t, "item with odd bytes", head+field(m, "AB"), "121N\xA07")
	holder, _, _ := ils.ActiveLoan("\xA07")
	equal(t, "holder", holder, other)
}

func TestOtherMessages(t *testing.T) {
	ils := start(t, known(sim.Naive))
	k := kiosk(t, ils.Addr())
	for send, want := range map[string]string{
		"15+20261130    101501AOMAIN|AA" + patron + "|AB" + item + "|":       "161N",
		"1920261130    101501AOMAIN|AB" + item + "|CHx|":                     "201",
		"29NN20261130    101501                  AOMAIN|AAx|AB" + item + "|": "300N",
	} {
		got := exchange(t, k, string(k.Frame([]byte(send))))
		equal(t, send[:2], got[:len(want)], want)
	}
	equal(t, "checkin of what was not lent", exchange(t, k, checkn)[:3], "101")
	koha := start(t, known(sim.Koha))
	equal(t, "at Koha", exchange(t, kiosk(t, koha.Addr()), checkn)[:3], "100")
}
