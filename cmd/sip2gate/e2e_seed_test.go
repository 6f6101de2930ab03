package main

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sip2gate/serialbridge/sim"
	"sip2gate/serialbridge/sip2"
)

// The line of the incident, byte for byte: no nb due date, and a wrong AZ; and
// the frame that it should have been.
const (
	seedItem  = "I30012000029894"
	seedLine  = "11YN20260716    110214AOMAIN-BR|AA" + reader1 + "|AB" + seedItem + "|ACterm7|AY3AZF1C2"
	rightLine = "11YN20260716    110214                  AOMAIN-BR|AA" + reader1 + "|AB" + seedItem + "|ACterm7|AY3AZEAD2"
)

var everyPersona = []sim.Persona{sim.Naive, sim.Koha, sim.Folio}

func TestSeedLines(t *testing.T) {
	if seed := sip2.ReadTrailer([]byte(seedLine)); !seed.Present || seed.Valid {
		t.Error("the checksum of the incident's line should be wrong")
	}
	if right := sip2.ReadTrailer([]byte(rightLine)); !right.Valid {
		t.Error("the checksum of the frame it should have been should be right")
	}
}

// seedRun is one way to send a checkout twice.
type seedRun struct {
	t     *testing.T
	ils   *sim.ILS
	gate  *gateProcess
	addr  string
	kiosk *testKiosk
	first []byte // the frame
}

// seedWays are the ways in which the line goes out twice. Each sends and
// judges the answers; what the ILS must have seen is the same for all.
var seedWays = []struct {
	name string
	play func(s *seedRun)
}{
	{"after the answer", func(s *seedRun) {
		first := s.lends(s.kiosk.ask(s.first))
		same(s.t, s.kiosk.ask(s.first), first)
	}},
	{"in one write", func(s *seedRun) {
		s.kiosk.send([]byte(string(s.first) + "\r" + string(s.first) + "\r"))
		s.lends(s.kiosk.read())
		s.kiosk.quiet()
	}},
	{"AY raised", func(s *seedRun) {
		first := s.lends(s.kiosk.ask(s.first))
		same(s.t, s.kiosk.ask(restamped(s.first, '4')), restamped(first, '4'))
	}},
	{"new date", func(s *seedRun) {
		first := s.lends(s.kiosk.ask(s.first))
		same(s.t, s.kiosk.ask(changed(s.first, "110214", "110244")), first)
	}},
	{"50 ms apart", func(s *seedRun) { s.apart(50 * time.Millisecond) }},
	{"5 s apart", func(s *seedRun) { s.apart(5 * time.Second) }},
	{"while the first is with the ILS", func(s *seedRun) {
		answered := make(chan struct{})
		fault(s.t, s.ils, sim.Fault{Kind: sim.Late, Code: "11", Until: answered})
		s.kiosk.send(append(bytes.Clone(s.first), '\r'))
		waitILS(s.t, s.ils, "the first 11", func(l sim.Snapshot) bool { return l.Loans(seedItem) == 1 })
		s.kiosk.send(append(restamped(s.first, '4'), '\r'))
		s.gate.event("checkout_joined")
		close(answered)
		got := s.lends(s.kiosk.read())
		if tr := sip2.ReadAnswerTrailer(got); !tr.HasSeq || tr.Seq != '4' || !tr.Valid {
			s.t.Errorf("the one answer has not the newest AY: %q", got)
		}
		s.kiosk.quiet()
	}},
	{"after the station reconnected", func(s *seedRun) {
		first := s.lends(s.kiosk.ask(s.first))
		s.kiosk.conn.Close()
		again := connect(s.t, s.addr)
		same(s.t, again.ask(s.first), first)
		again.quiet()
	}},
	{"after kill -9", func(s *seedRun) {
		first := s.lends(s.kiosk.ask(s.first))
		// A claim is on the disk when its frame leaves, and with it what was
		// to be written before.
		other := answer(s.kiosk.ask(changed(s.first, seedItem, "I30012000029999")))
		if !lent(other) {
			s.t.Errorf("the other item: %q", other.Raw)
		}
		s.gate.restart()
		again := connect(s.t, s.addr)
		same(s.t, again.ask(s.first), first)
		again.quiet()
	}},
}

// changed is a frame with a text replaced, and its checksum right if it was.
func changed(frame []byte, from, to string) []byte {
	out := []byte(strings.Replace(string(frame), from, to, 1))
	if !sip2.ReadTrailer(frame).Valid {
		return out
	}
	t := sip2.ReadTrailer(out)
	return sip2.AppendTrailer(bytes.Clone(sip2.Body(out, t)), t.HasSeq, t.Seq)
}

// lends wants a 12 ok=1 for this patron and item.
func (s *seedRun) lends(frame []byte) []byte {
	s.t.Helper()
	if m := answer(frame); !lent(m) || field(m, "AA") != reader1 || field(m, "AB") != seedItem || !m.Trailer.Valid {
		s.t.Errorf("not the loan's answer: %q", frame)
	}
	return frame
}

// apart sends the second so long after the first, whatever has come till then.
// If the first is still with the ILS then, there is one answer to both.
func (s *seedRun) apart(d time.Duration) {
	s.t.Helper()
	timer := time.After(d)
	s.kiosk.send(append(bytes.Clone(s.first), '\r'))
	<-timer
	s.kiosk.send(append(bytes.Clone(s.first), '\r'))
	first := s.lends(s.kiosk.read())
	s.gate.eitherEvent("checkout_joined", "duplicate_checkout_suppressed")
	if len(s.gate.log.events(s.gate.begun, "checkout_joined")) == 0 {
		same(s.t, s.kiosk.read(), first)
	}
	s.kiosk.quiet()
}

// forSeeds runs f for the incident's line and for the right frame at each kind
// of ILS.
func forSeeds(t *testing.T, f func(t *testing.T, ils *sim.ILS, frame []byte)) {
	for _, persona := range everyPersona {
		for _, line := range []struct{ name, frame string }{{"as printed", seedLine}, {"right frame", rightLine}} {
			t.Run(string(persona)+"/"+line.name, func(t *testing.T) {
				t.Parallel()
				ils := startILS(t, sim.Options{Persona: persona})
				f(t, ils, []byte(line.frame))
				wantCount(t, ils, seedItem, oneLoan)
			})
		}
	}
}

func TestSeedTwice(t *testing.T) {
	t.Parallel()
	for _, way := range seedWays {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			forSeeds(t, func(t *testing.T, ils *sim.ILS, frame []byte) {
				addr := freePort(t)
				g := startGate(t, setup{ils: ils.Addr(), stations: []string{listen(addr)}})
				way.play(&seedRun{t, ils, g, addr, connect(t, addr), frame})
			})
		})
	}
}

func TestSeedFromASerialLine(t *testing.T) {
	t.Parallel()
	forSeeds(t, func(t *testing.T, ils *sim.ILS, frame []byte) {
		p := newPTY(t)
		startGate(t, setup{ils: ils.Addr(), stations: []string{fmt.Sprintf("serial = %q", p.Path)}})
		s := &seedRun{t: t, ils: ils, kiosk: onLine(t, p), first: frame}
		first := s.lends(s.kiosk.ask(frame))
		same(t, s.kiosk.ask(frame), first)
		s.kiosk.send([]byte(string(frame) + "\r" + string(frame) + "\r"))
		same(t, s.kiosk.read(), first)
		s.kiosk.quiet()
	})
}

// TestSeedFrom32Stations sends the line from 32 stations at once, each with a
// port of its own, and from 32 kiosks on one port.
func TestSeedFrom32Stations(t *testing.T) {
	t.Parallel()
	const n = 32
	at := func(t *testing.T, frame []byte, kiosks []*testKiosk) {
		answers := make([][]byte, len(kiosks))
		start := make(chan struct{})
		var all sync.WaitGroup
		for i, k := range kiosks {
			all.Go(func() {
				<-start
				ctx, cancel := k.within()
				defer cancel()
				got, err := k.Exchange(ctx, frame)
				if err != nil {
					t.Error(err)
				}
				answers[i] = got
			})
		}
		close(start)
		all.Wait()
		s := &seedRun{t: t}
		for _, got := range answers {
			s.lends(got)
			same(t, got, answers[0])
		}
	}
	t.Run("ports", func(t *testing.T) {
		t.Parallel()
		forSeeds(t, func(t *testing.T, ils *sim.ILS, frame []byte) {
			s := setup{ils: ils.Addr()}
			var addrs []string
			for range n {
				addrs = append(addrs, freePort(t))
				s.stations = append(s.stations, listen(addrs[len(addrs)-1]))
			}
			startGate(t, s)
			var kiosks []*testKiosk
			for _, addr := range addrs {
				kiosks = append(kiosks, connect(t, addr))
			}
			at(t, frame, kiosks)
		})
	})
	t.Run("addresses", func(t *testing.T) {
		t.Parallel()
		forSeeds(t, func(t *testing.T, ils *sim.ILS, frame []byte) {
			addr := freePort(t)
			startGate(t, setup{ils: ils.Addr(), stations: []string{listen(addr)}})
			var kiosks []*testKiosk
			for i := range n {
				kiosks = append(kiosks, connectFrom(t, addr, fmt.Sprintf("127.0.0.%d", i+2)))
			}
			at(t, frame, kiosks)
		})
	})
}
