package serialbridge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sip2gate/serialbridge/sip2"
)

// lendingWith lends to every 11 and answers with what f makes of the request.
func lendingWith(f func(q *request) string) func(q *request) bool {
	return func(q *request) bool {
		if !q.is("11") {
			return false
		}
		q.lend()
		q.raw(f(q))
		return true
	}
}

// about gives an answer to F1 the identifiers of another request.
func (q *request) about(frame string) string {
	f := strings.ReplaceAll(string(frameOf(q.m.t, frame)), item1, q.field("AB"))
	return strings.ReplaceAll(f, patron1, q.field("AA"))
}

// charSummed is the frame with its checksum taken over characters, as peers
// do that hold text and not bytes.
func charSummed(frame string) string {
	body := frame[:strings.LastIndex(frame, "AZ")+2]
	sum := 0
	for _, c := range body {
		sum += int(c)
	}
	return fmt.Sprintf("%s%04X\r", body, uint16(-sum))
}

// C-009: the sum is taken over bytes, not over characters.
func TestC009SumOverBytes(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		k.send("F1")
		k.expect("R1", time.Second)

		byChars := func(q *request) string { return charSummed(q.stamped(q.about("R-UTF8"))) }
		byBytes := func(q *request) string { return q.stamped(q.about("R-UTF8")) }
		if got, want := charSummed(string(frameOf(t, "R-UTF8"))), string(frameOf(t, "R-UTF8-CHARSUM")); got != want {
			t.Fatalf("a sum over characters makes %q, want %q", got, want)
		}

		r.ils.on(lendingWith(byChars))
		k.send("F3")
		first := charSummed(of(t, item2, seq(t, "R-UTF8", 4)))
		k.expect(first, time.Second)
		k.send(seq(t, "F3", 5))
		// Moved by the difference: still wrong by the same amount.
		k.expect(charSummed(of(t, item2, seq(t, "R-UTF8", 5))), time.Second)
		r.ils.want(item2, 1, 2, 0)
		r.event("loan_committed", 2)

		r.ils.on(lendingWith(byBytes))
		k.send(of(t, item3, seq(t, "F1", 6)))
		k.expect(of(t, item3, seq(t, "R-UTF8", 6)), time.Second)
		r.event("checkout_in_doubt", 0)

		r.ils.on(lendingWith(byChars))
		k.send(of(t, item4, seq(t, "F1", 7)))
		got := k.lends(item4, 14*time.Second)
		if m := sip2.Parse([]byte(strings.TrimSuffix(got, "\r")), '|'); !m.Trailer.Valid || m.Trailer.Seq != '7' {
			t.Errorf("what a read has settled is %q", got)
		}
		r.event("checkout_in_doubt", 1)
		for _, item := range []string{item3, item4} {
			r.ils.want(item, 1, 4, 0)
		}
	})
}

// C-011: endless 96.
func TestC011Endless96(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool {
			if q.is("11") {
				q.raw("96AZFEF6\r")
			}
			return q.is("11")
		})
		k := r.serial().loggedIn()
		for n := 1; n <= 4; n++ {
			k.send("F1")
			k.expect("96", time.Second)
			k.none(time.Second)
			r.ils.want(item1, n, 0, 0)
		}
		r.event("checkout_in_doubt", 0)

		r.ils.on(nil)
		for range 2 {
			k.send("F1-BADAZ")
			k.expect("96", time.Second)
		}
		r.ils.want(item1, 4, 0, 0)
		k.send("F1-DATE")
		k.expect("R1-SEQ", time.Second)
		r.ils.want(item1, 5, 1, 0)
		r.event("frame_passed_damaged", 0)

		wrong := strings.ReplaceAll(string(frameOf(t, "F1-BADAZ")), item1, item2)
		for range 2 {
			k.send(wrong)
			k.expect("96", time.Second)
		}
		for range 2 {
			k.send(wrong)
			k.expect(of(t, item2, "R1"), time.Second)
		}
		k.none(time.Minute)
		r.ils.want(item2, 1, 2, 0)
		r.event("frame_sent_back", 4)
		r.event("frame_passed_damaged", 2)
	})
}

// C-012: a checksum with a leading zero, and one printed without it.
func TestC012LeadingZero(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(lendingWith(func(q *request) string { return q.stamped(q.about("R-PAD")) }))
		k := r.serial().loggedIn()
		k.send("F1")
		k.expect("R-PAD", time.Second)
		k.send("F1-SEQ")
		k.expect(seq(t, "R-PAD", 2), time.Second)
		if want := "AY2AZ0FE3\r"; !strings.HasSuffix(k.heard(), want) {
			t.Errorf("the repeat does not end in %q", want)
		}

		// The sum of the frame about F3 has its zero left out, too.
		threeDigits := func(f string) string {
			i := strings.LastIndex(f, "AZ0")
			return f[:i+2] + f[i+3:]
		}
		if got, want := threeDigits(string(frameOf(t, "R-PAD"))), string(frameOf(t, "R-PAD3")); got != want {
			t.Fatalf("without its zero: %q, want %q", got, want)
		}
		r.ils.on(lendingWith(func(q *request) string { return threeDigits(q.stamped(q.about("R-PAD"))) }))
		k.send("F3")
		want := threeDigits(of(t, item2, seq(t, "R-PAD", 4)))
		k.expect(want, time.Second)
		k.send("F3")
		k.expect(want, time.Second)
		k.none(time.Minute)
		r.ils.want(item1, 1, 2, 0)
		r.ils.want(item2, 1, 2, 0)
		r.event("loan_committed", 2)
		r.event("checkout_in_doubt", 0)
	})
}

// C-014: sequence number 10.
func TestC014SequenceNumberTen(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		answer := ""
		for i := range 3 {
			k.send("F1-AY10")
			got := k.read(time.Second)
			if i == 0 {
				answer = got
			}
			m := sip2.Parse([]byte(strings.TrimSuffix(got, "\r")), '|')
			if got != answer || !strings.HasPrefix(got, "121") || m.Trailer.HasSeq || !m.Trailer.Valid {
				t.Errorf("answer %d is %q, the first one %q", i+1, got, answer)
			}
		}
		if got, want := r.ils.wire(1), frames(t, "LOGIN", "F1-AY10"); got != want {
			t.Errorf("the ILS got\n%q, want\n%q", got, want)
		}
		k.send("F1")
		k.expect("R1", time.Second) // with the number that the kiosk looks for
		k.none(time.Minute)
		r.ils.want(item1, 1, 1, 0)
		r.event("duplicate_checkout_suppressed", 3)
	})
}

// C-015: an ILS that answers everything with AY4. (The output of probe is a
// later matter.)
func TestC015AlwaysTheSameNumber(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool {
			if q.msg.Trailer.HasSeq {
				q.msg.Trailer.Seq = '4'
			}
			return false
		})
		k := r.serial()
		for _, x := range [][2]string{
			{"LOGIN", "R-LOGIN-Y"}, {"F1", "R1"}, {"F1-SEQ", "R1-SEQ"},
			{"F3", of(t, item2, seq(t, "R1", 4))}, {"CI", "R-CI"},
			{"II", "R-II-IN"}, {"PI", edited(t, "R-PI-HAS", item1, item2)},
			// The checkin has ended the first loan: this is a new one.
			{"F1-DATE", "R1-SEQ"},
		} {
			k.send(x[0])
			k.expect(x[1], time.Second)
		}
		r.ils.want(item1, 2, 3, 0)
		r.ils.want(item2, 1, 3, 0)

		// A person's repeat, so that the gate's own reads see AY4 too.
		k.send(seq(t, "F3", 7))
		k.expect(of(t, item2, seq(t, "R1", 7)), 4*time.Second)
		k.none(time.Minute)
		r.ils.want(item2, 1, 3, 0)
		if n := len(r.ils.sent("63")); n != 2 {
			t.Errorf("%d reads of the patron, want the kiosk's and the gate's", n)
		}
		if n := r.ils.connections(); n != 1 {
			t.Errorf("%d connections to the ILS", n)
		}
		r.event("ils_sequence", 1)
		r.event("ils_stray_frame", 0)
		r.event("checkout_in_doubt", 0)
	})
}

// C-125: two kiosks on one port, one without error detection.
func TestC125TwoKiosksOnOnePort(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a, b := r.connect("192.0.2.7").loggedIn(), r.connect("192.0.2.8")
		a.send("F1")
		a.expect("R1", time.Second)
		b.send(withoutTrailer(t, "LOGIN"))
		b.expect("941\r", time.Second)
		b.send(withoutTrailer(t, "F3"))
		other := withoutTrailer(t, of(t, item2, "R1"))
		b.expect(other, time.Second)
		b.send("97\r")
		b.expect(other, time.Second)
		b.send(withoutTrailer(t, "F1"))
		b.expect(withoutTrailer(t, "R1"), 4*time.Second)
		b.send("97\r")
		b.expect(withoutTrailer(t, "R1"), time.Second)
		a.send("F1-SEQ")
		a.expect("R1-SEQ", 4*time.Second)
		a.send("97")
		a.expect("R1-SEQ", time.Second)
		a.none(time.Minute)
		r.ils.want(item1, 1, 2, 0)
		r.ils.want(item2, 1, 2, 0)
		r.event("frame_sent_back", 0)
	})
}
