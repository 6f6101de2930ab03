package sim_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sip2gate/serialbridge/sim"
	"sip2gate/serialbridge/sip2"
)

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("after %q: %v", b, err)
	}
	return string(b)
}

// faulty is a naive ILS with one fault of Checkouts.
func faulty(t *testing.T, f sim.Fault) *sim.ILS {
	t.Helper()
	ils := start(t, known(sim.Naive))
	if f.Code == "" {
		f.Code = "11"
	}
	if err := ils.Fault(f); err != nil {
		t.Fatal(err)
	}
	return ils
}

// right is the answer to f1 without faults.
const right = "121NNY20261130    101501AOMAIN|AA21234000000011|AB31234000000022|AJThe Long Rain|AH20261221    235900|AY1AZE683"

func TestFaultsWithAnAnswer(t *testing.T) {
	for kind, c := range map[sim.Kind]struct {
		want  string
		loans int
	}{
		sim.BadChecksum: {right[:len(right)-1] + "4", 1},
		sim.OtherAY:     {right[:len(right)-7] + "4AZE680", 1},
		sim.OtherItem:   {"", 1},
		sim.BareResend:  {"96AZFEF6", 0},
		sim.Status:      {"", 0},
		sim.Text:        {"Problems handling the request: the system is busy", 0},
	} {
		t.Run(string(kind), func(t *testing.T) {
			ils := faulty(t, sim.Fault{Kind: kind, Times: 1})
			k := kiosk(t, ils.Addr())
			got := exchange(t, k, f1)
			m := sip2.Parse([]byte(got), '|')
			switch kind {
			case sim.OtherItem:
				equal(t, "item", field(m, "AB"), "39999000000000")
				equal(t, "checksum", m.Trailer.Valid, true)
			case sim.Status:
				equal(t, "code", m.Code, sip2.CodeACSStatus)
				equal(t, "AY", m.Trailer.Seq, '1')
			default:
				equal(t, "answer", got, c.want)
			}
			equal(t, "loans", ils.Loans(item), c.loans)
			equal(t, "the next one is answered", exchange(t, k, f1)[:3], "121")
			equal(t, "loans then", ils.Loans(item), c.loans+1)
			equal(t, "faults left", len(ils.Faults()), 0)
		})
	}
}

func TestOtherAYIsNeverTheRightOne(t *testing.T) {
	ils := start(t, sim.Options{})
	if err := ils.Fault(sim.Fault{Kind: sim.OtherAY}); err != nil {
		t.Fatal(err)
	}
	m := sip2.Parse([]byte(exchange(t, kiosk(t, ils.Addr()), ii)), '|') // asks with AY4
	equal(t, "AY", m.Trailer.Seq, '5')
}

func TestFaultsWithoutAnAnswer(t *testing.T) {
	for kind, loans := range map[sim.Kind]int{sim.Lost: 1, sim.Drop: 0} {
		t.Run(string(kind), func(t *testing.T) {
			ils := faulty(t, sim.Fault{Kind: kind, Times: 2})
			k := kiosk(t, ils.Addr())
			for range 2 {
				if err := k.Send([]byte(f1)); err != nil {
					t.Fatal(err)
				}
			}
			silent(t, k)
			equal(t, "loans", ils.Loans(item), 2*loans)
			equal(t, "received", ils.Checkouts(item), 2)
			equal(t, "used up after two", exchange(t, k, f1)[:3], "121")
		})
	}
}

func TestCuts(t *testing.T) {
	for kind, loans := range map[sim.Kind]int{sim.CutBefore: 0, sim.CutAfter: 1, sim.CutAnswer: 1} {
		for _, fin := range []bool{false, true} {
			t.Run(string(kind), func(t *testing.T) {
				ils := faulty(t, sim.Fault{Kind: kind, Times: 1, FIN: fin})
				k := kiosk(t, ils.Addr())
				if err := k.Send([]byte(f1)); err != nil {
					t.Fatal(err)
				}
				err := ended(t, k)
				if fin != errors.Is(err, io.EOF) || fin == errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("FIN %v: the connection ended with %v", fin, err)
				}
				equal(t, "loans", ils.Loans(item), loans)
				equal(t, "whole answers", ils.Answered("12"), 0)
				equal(t, "on a new connection", exchange(t, kiosk(t, ils.Addr()), f1)[:3], "121")
			})
		}
	}
}

func TestCutInTheMiddleOfTheAnswer(t *testing.T) {
	ils := faulty(t, sim.Fault{Kind: sim.CutAnswer, FIN: true})
	conn := dial(t, ils.Addr())
	if _, err := conn.Write([]byte(f1 + "\r")); err != nil {
		t.Fatal(err)
	}
	equal(t, "what came", readAll(t, conn), right[:(len(right)+1)/2])
}

func TestHalvedAndDoubledAnswers(t *testing.T) {
	ils := faulty(t, sim.Fault{Kind: sim.Doubled, Times: 1})
	k := kiosk(t, ils.Addr())
	equal(t, "first", exchange(t, k, f1), right)
	second, err := k.Read(within(t))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "second", string(second), right)
	equal(t, "loans", ils.Loans(item), 1)

	if err := ils.Fault(sim.Fault{Kind: sim.Halved, Code: "11", Times: 1}); err != nil {
		t.Fatal(err)
	}
	if err := k.Send([]byte(f1)); err != nil {
		t.Fatal(err)
	}
	// The rest never comes: the next answer follows the half.
	got := exchange(t, k, stat)
	equal(t, "half and the next", strings.HasPrefix(got, right[:(len(right)+1)/2]+"98Y"), true)
}

func TestCRLFOfOneAnswer(t *testing.T) {
	ils := faulty(t, sim.Fault{Kind: sim.CRLF, Times: 1})
	conn := dial(t, ils.Addr())
	if _, err := conn.Write([]byte(f1 + "\r" + f1 + "\r")); err != nil {
		t.Fatal(err)
	}
	if err := ils.WaitFor(within(t), func(s sim.Snapshot) bool { return s.Answered("12") == 2 }); err != nil {
		t.Fatal(err)
	}
	conn.(*net.TCPConn).CloseWrite()
	equal(t, "both", readAll(t, conn), right+"\r\n"+right+"\r")
}

func TestDelayBeforeAndAfterTheLoan(t *testing.T) {
	for kind, loans := range map[sim.Kind]int{sim.Delay: 0, sim.Late: 1} {
		t.Run(string(kind), func(t *testing.T) {
			until := make(chan struct{})
			ils := faulty(t, sim.Fault{Kind: kind, Times: 1, Until: until})
			k := kiosk(t, ils.Addr())
			if err := k.Send([]byte(f1)); err != nil {
				t.Fatal(err)
			}
			met := map[sim.Kind]string{sim.Delay: sim.EventFault, sim.Late: sim.EventLoan}[kind]
			waiting := func(s sim.Snapshot) bool {
				return slices.ContainsFunc(s.Journal(), func(e sim.Entry) bool { return e.Event == met })
			}
			if err := ils.WaitFor(within(t), waiting); err != nil {
				t.Fatal(err)
			}
			equal(t, "loans while it waits", ils.Loans(item), loans)
			equal(t, "answers while it waits", ils.Answered("12"), 0)
			close(until)
			answer, err := k.Read(within(t))
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "answer", string(answer), right)
		})
	}
}

func TestDelayByTheClock(t *testing.T) {
	ils := faulty(t, sim.Fault{Kind: sim.Late, Delay: 30 * time.Millisecond})
	begin := time.Now()
	exchange(t, kiosk(t, ils.Addr()), f1)
	if took := time.Since(begin); took < 30*time.Millisecond {
		t.Errorf("answered after %v", took)
	}
	if err := ils.Fault(sim.Fault{Kind: sim.Late, Code: "11"}); err == nil {
		t.Error("a delay without a length was taken")
	}
	if err := ils.Fault(sim.Fault{Kind: "nonsense"}); err == nil {
		t.Error("a fault that does not exist was taken")
	}
}

// A request that still waits when the ILS goes is not carried out.
func TestCloseEndsADelay(t *testing.T) {
	ils := faulty(t, sim.Fault{Kind: sim.Delay, Delay: time.Hour})
	k := kiosk(t, ils.Addr())
	if err := k.Send([]byte(f1)); err != nil {
		t.Fatal(err)
	}
	if err := ils.WaitFor(within(t), func(s sim.Snapshot) bool { return s.Received("11") == 1 }); err != nil {
		t.Fatal(err)
	}
	if err := ils.Close(); err != nil {
		t.Fatal(err)
	}
	equal(t, "loans", ils.Loans(item), 0)
	ended(t, k)
}

func TestBlackHole(t *testing.T) {
	ils := start(t, known(sim.Naive))
	k := kiosk(t, ils.Addr())
	equal(t, "before", exchange(t, k, stat)[:2], "98")
	if err := ils.Fault(sim.Fault{Kind: sim.BlackHole}); err != nil {
		t.Fatal(err)
	}
	if err := k.Send([]byte(f1)); err != nil {
		t.Fatal(err)
	}
	late := kiosk(t, ils.Addr())
	if err := late.Send([]byte(stat)); err != nil {
		t.Fatal(err)
	}
	if err := ils.WaitFor(within(t), func(s sim.Snapshot) bool { return s.Connections() == 2 }); err != nil {
		t.Fatal(err)
	}
	equal(t, "read in the hole", ils.Received("11")+ils.Received("99"), 1)
	equal(t, "named", ils.Faults()[0].Kind, sim.BlackHole)
	if err := ils.ClearFaults(); err != nil {
		t.Fatal(err)
	}
	answer, err := k.Read(within(t))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "after", string(answer), right)
	if _, err := late.Read(within(t)); err != nil {
		t.Fatal(err)
	}
}

// A reset does not call back what the system of the ILS has received: Linux
// hands it out first, and the ILS lends to a client that is long gone.
func TestResetDoesNotCallBackWhatHasArrived(t *testing.T) {
	ils := start(t, known(sim.Naive))
	conn := dial(t, ils.Addr())
	k := sim.NewKiosk(conn, sim.KioskOptions{})
	exchange(t, k, stat)
	if err := ils.Fault(sim.Fault{Kind: sim.BlackHole}); err != nil {
		t.Fatal(err)
	}
	if err := k.Send([]byte(f1)); err != nil {
		t.Fatal(err)
	}
	conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
	if err := ils.ClearFaults(); err != nil {
		t.Fatal(err)
	}
	if err := ils.WaitFor(within(t), func(s sim.Snapshot) bool { return s.OpenConnections() == 0 }); err != nil {
		t.Fatal(err)
	}
	equal(t, "received", ils.Received("11"), 1)
	equal(t, "loans", ils.Loans(item), 1)
}

func TestNoAccept(t *testing.T) {
	ils := start(t, sim.Options{})
	if err := ils.Fault(sim.Fault{Kind: sim.NoAccept}); err != nil {
		t.Fatal(err)
	}
	k := kiosk(t, ils.Addr()) // the system completes the connection
	if err := k.Send([]byte(stat)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(within(t), 20*time.Millisecond)
	defer cancel()
	if frame, err := k.Read(ctx); err == nil {
		t.Fatalf("got %q", frame)
	}
	equal(t, "connections", ils.Connections(), 0)
	if err := ils.ClearFaults(); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Read(within(t)); err != nil {
		t.Fatal(err)
	}
	equal(t, "connections", ils.Connections(), 1)
}

func TestRefuseAndReopenOnTheSamePort(t *testing.T) {
	ils := start(t, sim.Options{})
	addr := ils.Addr()
	k := kiosk(t, addr)
	exchange(t, k, stat)
	if err := ils.Fault(sim.Fault{Kind: sim.Refuse}); err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dialled a closed port: %v %v", c, err)
	}
	exchange(t, k, stat) // the old connection goes on
	equal(t, "named", ils.Faults()[0].Kind, sim.Refuse)
	if err := ils.ClearFaults(); err != nil {
		t.Fatal(err)
	}
	equal(t, "address", ils.Addr(), addr)
	exchange(t, kiosk(t, addr), stat)
}

func TestHangUp(t *testing.T) {
	for _, reset := range []bool{true, false} {
		ils := start(t, sim.Options{})
		k := kiosk(t, ils.Addr())
		exchange(t, k, stat)
		ils.HangUp(reset)
		equal(t, "end in order", errors.Is(ended(t, k), io.EOF), !reset)
		exchange(t, kiosk(t, ils.Addr()), stat)
		equal(t, "connections", ils.Connections(), 2)
	}
}

func TestScript(t *testing.T) {
	ils := start(t, known(sim.Naive))
	const literal = "121YNY20261130    101501AOMAIN|AA21234000000011|AB31234000000022|AJThe Long Rain|AH20270111    235900|AY2AZE679"
	ils.Script(func(conn int, r sip2.Message) ([]byte, bool) {
		switch r.Code {
		case sip2.CodeCheckout:
			ils.Lend(item, patron, time.Time{})
			return []byte(literal), true
		case sip2.CodePatronInformation:
			return nil, true
		}
		return nil, false
	})
	k := kiosk(t, ils.Addr())
	equal(t, "literal", exchange(t, k, f1), literal)
	equal(t, "loans", ils.Loans(item), 1)
	if err := k.Send([]byte(pi)); err != nil {
		t.Fatal(err)
	}
	silent(t, k)
	ils.Script(nil)
	equal(t, "ended", exchange(t, k, pi)[:2], "64")
}

func TestParseFault(t *testing.T) {
	for text, want := range map[string]sim.Fault{
		"lost:11":         {Kind: sim.Lost, Code: "11"},
		"lost:11:all":     {Kind: sim.Lost, Code: "11"},
		"LOST:11:2":       {Kind: sim.Lost, Code: "11", Times: 2},
		"late:11:3s":      {Kind: sim.Late, Code: "11", Delay: 3 * time.Second},
		"delay:63:1:50ms": {Kind: sim.Delay, Code: "63", Times: 1, Delay: 50 * time.Millisecond},
		"drop:any:1":      {Kind: sim.Drop, Times: 1},
		"black-hole":      {Kind: sim.BlackHole},
	} {
		got, err := sim.ParseFault(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		again, err := sim.ParseFault(got.String())
		if err != nil || again != got {
			t.Errorf("%s printed as %s reads as %+v, %v", text, got, again, err)
		}
	}
	for text, hint := range map[string]string{
		"loss:11":        "use one of delay",
		"lost":           "lost:11",
		"lost:checkout":  "two characters",
		"lost:11:0":      "neither",
		"lost:11:x":      "neither",
		"lost:11:1:2":    "neither",
		"lost:11:1s:1":   "neither",
		"lost:11:1:1s:x": "neither",
		"late:11":        "add a delay",
		"refuse:11":      "leave out",
		"":               "use one of",
	} {
		if _, err := sim.ParseFault(text); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%q: the error %v does not say %q", text, err, hint)
		}
	}
}
