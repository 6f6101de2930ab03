package sim_test

import (
	"context"
	"strings"
	"testing"

	"sip2gate/serialbridge/sim"
	"sip2gate/serialbridge/sip2"
)

func TestLoginByPersona(t *testing.T) {
	accounts := map[string]string{"kiosk1": "s3cret"}
	for _, p := range []sim.Persona{sim.Naive, sim.Koha, sim.Folio} {
		t.Run(string(p), func(t *testing.T) {
			ils := start(t, sim.Options{Persona: p, Accounts: accounts, Terminator: "\r"})
			k := kiosk(t, ils.Addr())
			m, err := k.Login(within(t), "kiosk1", "wrong", "MAIN")
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "wrong password", string(m.Raw[:3]), "940")
			switch p {
			case sim.Naive:
				equal(t, "before the login", exchange(t, k, stat), "96AZFEF6")
			default:
				if err := k.Send([]byte(f1)); err != nil {
					t.Fatal(err)
				}
			}
			m, err = k.Login(within(t), "kiosk1", "s3cret", "MAIN")
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "right password, and nothing before it", string(m.Raw[:3]), "941")
			equal(t, "after the login", exchange(t, k, f1)[:3], "121")
			equal(t, "loans", ils.Loans(item), 1)
		})
	}
	ils := start(t, sim.Options{Persona: sim.Koha, Accounts: accounts})
	k := kiosk(t, ils.Addr())
	if err := k.Send([]byte(f1)); err != nil {
		t.Fatal(err)
	}
	ended(t, k)
	equal(t, "loans of a stranger", ils.Loans(item), 0)
}

func TestVersion(t *testing.T) {
	ils := start(t, sim.Options{RequireStatus: true})
	k := kiosk(t, ils.Addr())
	if err := k.Send([]byte(ii)); err != nil {
		t.Fatal(err)
	}
	equal(t, "version 1 needs no 99", exchange(t, k, f1)[:2], "12")
	silent(t, k)
	equal(t, "after the 99", exchange(t, k, ii)[:2], "18")

	koha := start(t, sim.Options{Persona: sim.Koha})
	k = kiosk(t, koha.Addr())
	equal(t, "before", exchange(t, k, ii)[:2], "18")
	equal(t, "99 of version 1", exchange(t, k, "9900801.00")[:2], "98")
	if err := k.Send([]byte(ii)); err != nil {
		t.Fatal(err)
	}
	equal(t, "no 18 any more", exchange(t, k, f1)[:2], "12")
}

func TestUnknownCode(t *testing.T) {
	const unknown = "XS00hello|AY9AZFAF7"
	silence := start(t, sim.Options{})
	k := kiosk(t, silence.Addr())
	if err := k.Send([]byte(unknown)); err != nil {
		t.Fatal(err)
	}
	silent(t, k)
	equal(t, "received", silence.Received("XS"), 1)

	koha := start(t, sim.Options{Persona: sim.Koha})
	equal(t, "Koha", exchange(t, kiosk(t, koha.Addr()), unknown), "96AZFEF6")

	folio := start(t, sim.Options{Persona: sim.Folio})
	k = kiosk(t, folio.Addr())
	if err := k.Send([]byte(unknown)); err != nil {
		t.Fatal(err)
	}
	ended(t, k)

	told := start(t, sim.Options{Persona: sim.Folio, Unknown: sim.Resend})
	equal(t, "as told", exchange(t, kiosk(t, told.Addr()), unknown), "96AZFEF6")
}

func TestReadsSwitchedOff(t *testing.T) {
	ils := start(t, sim.Options{Persona: sim.Koha, NoReads: true})
	k := kiosk(t, ils.Addr())
	m, err := k.Status(within(t))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "BX", field(m, "BX"), "YYYYYYYNYYNNYYYY")
	equal(t, "17", exchange(t, k, ii), "96AZFEF6")
	equal(t, "63", exchange(t, k, pi), "96AZFEF6")
	equal(t, "11", exchange(t, k, f1)[:3], "121")
}

func TestTerminators(t *testing.T) {
	for _, c := range []struct {
		opts sim.Options
		send string
		want string
	}{
		{sim.Options{Persona: sim.Naive}, "\r", "\r"},
		{sim.Options{Persona: sim.Koha}, "\r", "\r\n"},
		{sim.Options{Persona: sim.Koha, Terminator: "\r"}, "\r\n", "\r"},
		{sim.Options{Terminator: "\n"}, "\n", "\n"},
	} {
		ils := start(t, c.opts)
		conn := dial(t, ils.Addr())
		// Two requests: what ends the first answer is whole before the second.
		if _, err := conn.Write([]byte(stat + c.send)); err != nil {
			t.Fatal(err)
		}
		if err := ils.WaitFor(within(t), func(s sim.Snapshot) bool { return s.Answered("98") == 1 }); err != nil {
			t.Fatal(err)
		}
		if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		got := readAll(t, conn)
		if !strings.HasPrefix(got, "98") || strings.TrimRight(got, "\r\n")+c.want != got {
			t.Errorf("%+v: %q does not end in %q alone", c.opts.Persona, got, c.want)
		}
	}
}

func TestBlankLineEndsAKohaSession(t *testing.T) {
	koha := start(t, sim.Options{Persona: sim.Koha})
	k := kiosk(t, koha.Addr())
	equal(t, "CR LF is not blank", exchange(t, k, stat+"\r\n")[:2], "98")
	equal(t, "LF before a frame is not blank", exchange(t, k, "\n"+stat)[:2], "98")
	if err := k.Send([]byte("\r")); err != nil {
		t.Fatal(err)
	}
	ended(t, k)

	naive := start(t, sim.Options{})
	k = kiosk(t, naive.Addr())
	equal(t, "others go on", exchange(t, k, "\r\n\r\n"+stat)[:2], "98")
	blanks := 0
	for _, e := range naive.Journal() {
		if e.Event == sim.EventBlank {
			blanks++
		}
	}
	equal(t, "blank lines in the journal", blanks, 2)
}

func TestLastAnswerAgain(t *testing.T) {
	for _, c := range []struct {
		persona sim.Persona
		seq     byte
	}{{sim.Naive, '1'}, {sim.Koha, '0'}, {sim.Folio, '1'}} {
		ils := start(t, sim.Options{Persona: c.persona})
		k := kiosk(t, ils.Addr())
		equal(t, "nothing to repeat", exchange(t, k, "97AZFEF5"), "96AZFEF6")
		first := sip2.Parse([]byte(exchange(t, k, f1)), '|')
		m, err := k.Resend(within(t))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "body", string(sip2.Body(m.Raw, m.Trailer)), string(sip2.Body(first.Raw, first.Trailer)))
		equal(t, "AY", m.Trailer.Seq, c.seq)
		equal(t, "checksum", m.Trailer.Valid, true)
		equal(t, "loans", ils.Loans(item), 1)
	}
}

func TestFolioRepeatsItsAnswerToTheSameFrame(t *testing.T) {
	ils := start(t, sim.Options{Persona: sim.Folio, ErrorDetection: sim.On})
	k := kiosk(t, ils.Addr())
	first := exchange(t, k, f1)
	equal(t, "same AY and AZ", exchange(t, k, f1), first)
	equal(t, "on a new connection", exchange(t, kiosk(t, ils.Addr()), f1)[:3], "120")
}

func TestOverlongFrameEndsTheConnection(t *testing.T) {
	ils := start(t, sim.Options{})
	conn := dial(t, ils.Addr())
	wrote := make(chan struct{})
	go func() { // ends when the connection does
		defer close(wrote)
		for i := 0; i < 100; i++ {
			if _, err := conn.Write([]byte(strings.Repeat("x", 1<<10))); err != nil {
				return
			}
		}
	}()
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	if err := ils.WaitFor(ctx, func(s sim.Snapshot) bool { return s.Connections() == 1 && s.OpenConnections() == 0 }); err != nil {
		t.Fatal(err)
	}
	<-wrote
}
