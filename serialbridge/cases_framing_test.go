package serialbridge_test

import (
	"strings"
	"testing"
	"time"
)

// crlf answers truthfully, or with the 98 of the cases, and ends in CR LF.
func crlf(q *request) bool {
	switch {
	case q.is("11"):
		q.lend()
		q.raw(q.stamped(q.loan()) + "\n")
	case q.is("99"):
		q.raw(q.stamped("R-STAT-Y") + "\n")
	case q.is("93"):
		q.raw(q.stamped("R-LOGIN-Y") + "\n")
	default:
		return false
	}
	return true
}

// C-001: the ILS ends its frames with CR LF. That the gate is idle in between
// shows in that the bubble's time moves on: a loop that spins would hold it.
func TestC001ILSEndsInCRLF(t *testing.T) {
	for _, split := range []bool{false, true} {
		bubble(t, func(t *testing.T, r *rig) {
			r.ils.on(func(q *request) bool {
				if split && q.is("11") { // the LF comes on its own
					q.lend()
					q.raw(q.stamped("R1"))
					after(time.Second)
					q.raw("\n")
					return true
				}
				return crlf(q)
			})
			k := r.serial().loggedIn()
			k.send("F1")
			k.expect("R1", time.Second)
			after(2 * time.Second)
			k.send("STAT")
			k.expect("R-STAT-Y", time.Second)
			k.none(time.Minute)
			if want := frames(t, "R-LOGIN-Y", "R1", "R-STAT-Y"); k.heard() != want {
				t.Errorf("the kiosk heard\n%q, want\n%q", k.heard(), want)
			}
			r.ils.want(item1, 1, 1, 0)
			if n := len(r.ils.sent("99")); n != 1 {
				t.Errorf("%d 99s at the ILS", n)
			}
			noBlankLine(t, r.ils.wire(1))
		})
	}
}

// frames are frames one after the other, as they stand on the wire.
func frames(t testing.TB, names ...string) string {
	t.Helper()
	var all strings.Builder
	for _, name := range names {
		all.Write(frameOf(t, name))
	}
	return all.String()
}

// noBlankLine fails if a wire carries an LF in front of a message code, or a
// line with nothing on it.
func noBlankLine(t *testing.T, wire string) {
	t.Helper()
	for line := range strings.SplitAfterSeq(wire, "\r") {
		line = strings.TrimPrefix(line, "\n")
		if line == "\r" || strings.HasPrefix(line, "\n") || strings.HasPrefix(line, " ") {
			t.Errorf("a blank line or an LF before a code: %q", wire)
		}
	}
	if strings.HasPrefix(wire, "\n") {
		t.Errorf("an LF comes first: %q", wire)
	}
}

// C-002: a kiosk that ends its frames with CR LF. The LF arrives with its CR,
// or glued to the next frame.
func TestC002KioskEndsInCRLF(t *testing.T) {
	for name, glued := range map[string]bool{"LF with its CR": false, "LF with the next frame": true} {
		t.Run("C-002 "+name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				k := r.serial().loggedIn()
				lf := ""
				say := func(frame string) {
					k.raw(lf + string(frameOf(t, frame)))
					if lf = "\n"; !glued {
						k.raw(lf)
						lf = ""
					}
				}
				want := frames(t, "R-LOGIN-Y", "R1", "R-STAT-Y", "R-CI")
				say("F1")
				after(3 * time.Second)
				say("STAT")
				after(time.Second)
				say("CI")
				after(time.Minute)
				// Its first answer may come before the kiosk has shown its LF.
				if got := strings.ReplaceAll(k.heard(), "\n", ""); got != want {
					t.Errorf("the kiosk heard\n%q, want\n%q", got, want)
				}
				if !strings.HasSuffix(k.heard(), "\r\n") {
					t.Errorf("the kiosk uses CR LF, and heard %q", k.heard())
				}
				if got, want := r.ils.wire(1), frames(t, "LOGIN", "F1", "STAT", "CI"); got != want {
					t.Errorf("the ILS got\n%q, want\n%q", got, want)
				}
				for _, e := range []string{"frame_sent_back", "frame_passed_damaged", "ils_text", "frame_too_long", "noise_skipped"} {
					r.event(e, 0)
				}
			})
		})
	}
	t.Run("C-002 from the first frame on", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.connect("192.0.2.7").endingIn("\r\n").loggedIn()
			for _, x := range [][2]string{{"F1", "R1"}, {"STAT", "R-STAT-Y"}, {"CI", "R-CI"}} {
				k.send(x[0])
				k.expect(x[1], time.Second)
			}
			noBlankLine(t, r.ils.wire(1))
			r.event("frame_sent_back", 0)
		})
	})
}

// C-003: two requests in one segment, and one request in 109 single bytes.
func TestC003CutsDoNotMatter(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.connect("192.0.2.7").loggedIn()
		k.send("STAT", "F3")
		k.expect("R-STAT-Y", time.Second)
		k.expect(of(t, item2, seq(t, "R1", 4)), time.Second)
		k.none(time.Minute)
		r.ils.want(item2, 1, 1, 0)

		r.ils.on(func(q *request) bool {
			if !q.is("11") {
				return false
			}
			q.lend()
			rest, cuts := q.stamped("R1"), []string{"1", "AJThe"}
			for _, c := range cuts {
				i := strings.Index(rest, c) + len(c)
				q.raw(rest[:i])
				rest = rest[i:]
				after(300 * time.Millisecond)
			}
			q.raw(rest[:len(rest)-1])
			after(300 * time.Millisecond)
			q.raw("\r")
			return true
		})
		s := r.serial().loggedIn()
		for _, b := range frameOf(t, "F1") {
			s.raw(string(b))
			after(20 * time.Millisecond)
		}
		s.expect("R1", 2*time.Second)
		s.none(time.Minute)
		r.ils.want(item1, 1, 2, 0)
		if n := len(r.ils.sent("99")); n != 1 {
			t.Errorf("%d 99s at the ILS, want one", n)
		}
		r.event("frame_sent_back", 0)
	})
}

// C-006: plain text instead of a SIP2 message.
func TestC006TextInsteadOfAnAnswer(t *testing.T) {
	const text = "Problems handling the request: "
	for name, lends := range map[string]bool{"lent": true, "not lent": false} {
		t.Run("C-006 "+name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(func(q *request) bool {
					if !q.is("11") {
						return false
					}
					if lends {
						q.lend()
					}
					q.raw(text + "\r")
					return true
				})
				k := r.serial().loggedIn()
				begin := time.Now()
				k.send("F1")
				if lends {
					k.lends(item1, time.Second) // the text ends the wait
				} else {
					k.refused('1', "could not be confirmed", 15*time.Second)
				}
				if d := time.Since(begin); d > 14*time.Second {
					t.Errorf("answered after %v", d)
				}
				k.none(time.Minute)
				if strings.Contains(k.heard(), "Problems") || strings.Contains(r.log.String(), "Problems") {
					t.Errorf("the text shows: the kiosk heard %q, the log is\n%s", k.heard(), r.log)
				}
				r.event("ils_text", 1)
				if e := r.log.events("ils_text")[0]; e["length"] != float64(len(text)) {
					t.Errorf("the event says %v", e)
				}
				r.event("checkout_in_doubt", 1)
				if r.ils.reads() == 0 {
					t.Error("it was not settled by a read")
				}
				loans := 0
				if lends {
					loans = 1
				}
				r.ils.want(item1, 1, loans, 0)
			})
		})
	}
}

// C-007: blanks and empty lines around frames.
func TestC007BlankLines(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.connect("192.0.2.7")
		k.raw("\r\n \r")
		k.none(time.Second)
		k.send("LOGIN")
		k.read(time.Second)
		k.raw("\r\r")
		k.none(time.Second)
		k.send("F-TAIL")
		k.read(time.Second)
		k.none(time.Minute)
		// Whether its blank line makes it a kiosk that uses CR LF is left open.
		if got, want := strings.ReplaceAll(k.heard(), "\n", ""), frames(t, "R-LOGIN-Y", "R1-SEQ"); got != want {
			t.Errorf("the kiosk heard\n%q, want\n%q", got, want)
		}
		if got, want := r.ils.wire(1), frames(t, "LOGIN", "F-TAIL"); got != want {
			t.Errorf("the ILS got\n%q, want\n%q", got, want)
		}
		r.ils.want(item1, 1, 1, 0)
	})
}

// C-122: noise in front of a checkout.
func TestC122NoiseBeforeACheckout(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		f1, r1 := withoutTrailer(t, "F1"), withoutTrailer(t, "R1")
		k := r.connect("192.0.2.7")
		k.raw("\xFF\x80" + f1)
		k.expect(r1, time.Second)
		k.send(f1)
		k.expect(r1, time.Second)
		if got := r.ils.wire(1); got != f1 {
			t.Errorf("the ILS got %q, want one 11 without the noise", got)
		}
		r.ils.want(item1, 1, 1, 0)
		r.event("telnet_bytes", 0)

		s := r.serial().loggedIn()
		answer := of(t, item2, seq(t, "R1", 4))
		s.raw("\xFF\xFD\x03" + string(frameOf(t, "F3")))
		s.expect(answer, time.Second)
		s.send("F3")
		s.expect(answer, time.Second)
		if got, want := r.ils.wire(2), frames(t, "LOGIN", "F3"); got != want {
			t.Errorf("the ILS got\n%q, want\n%q", got, want)
		}
		r.ils.want(item2, 1, 2, 0)
		r.event("telnet_bytes", 1)
		e := r.log.events("telnet_bytes")[0]
		if hint, _ := e["hint"].(string); e["station"] != "S1" || !strings.Contains(hint, "telnet") {
			t.Errorf("the event says %v", e)
		}
	})
}
