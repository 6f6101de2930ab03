package serialbridge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sip2gate/serialbridge"
)

// Half a frame followed by 5 s without a byte is dropped; a shorter pause is
// part of the frame.
func TestHalfAFrame(t *testing.T) {
	for _, listen := range []bool{false, true} {
		for _, spoken := range []bool{true, false} {
			t.Run(fmt.Sprintf("TCP %v, after a login %v", listen, spoken), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					k := r.serialOr(listen)
					if spoken {
						k.loggedIn()
					}
					f := string(frameOf(t, "F1"))
					k.raw(f[:62])
					after(5001 * time.Millisecond)
					k.raw(f)
					k.expect("R1", time.Second)
					r.event("half_frame_dropped", 1)
					if e := r.log.events("half_frame_dropped")[0]; e["length"] != 62.0 {
						t.Errorf("the event says %v", e)
					}
					for _, b := range f { // at 4.9 s a byte: 9 minutes
						k.raw(string(b))
						if b != '\r' {
							after(4900 * time.Millisecond)
						}
					}
					k.lends(item1, 4*time.Second)
					r.event("half_frame_dropped", 1)
				}, func(r *rig) { r.window = time.Hour })
			})
		}
	}
	t.Run("cut in the middle of a terminator or of a telnet option", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			k.raw("\n\xFF\xFD")
			after(6 * time.Second)
			k.send("F1") // its first byte is no option
			k.expect("R1", time.Second)
			r.ils.want(item1, 1, 1, 0)
		})
	})
}

const maxFrame = 64 << 10

// A frame is at most 64 KiB; what is longer is discarded to the next CR.
func TestLongFrames(t *testing.T) {
	grown := func(n int) string {
		head, tail, _ := strings.Cut(bare(string(frameOf(t, "F1"))), "AD4711|")
		fill := n - len(head) - len(tail) - len("CH|AD4711|AY1AZ0000")
		return trailed(head+"CH"+strings.Repeat("x", fill)+"|AD4711|"+tail, '1')
	}
	for _, c := range kiosks {
		if !c.trailer {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				k := r.serialOr(c.listen).endingIn(c.end).loggedIn()
				for range 2 {
					k.send(grown(maxFrame))
					k.expect("R1", time.Second)
				}
				r.ils.want(item1, 1, 1, 0)
				if got := r.ils.sent("11")[0].raw + "\r"; got != grown(maxFrame) {
					t.Errorf("the ILS got %d bytes of the 11", len(got))
				}
				r.event("frame_too_long", 0)

				long := grown(maxFrame + 1)
				k.send(of(t, item2, long))
				k.send(of(t, item2, grown(3*maxFrame)))
				k.none(20 * time.Second)
				r.event("frame_too_long", 2)
				k.send("F3")
				k.expect(of(t, item2, seq(t, "R1", 4)), 4*time.Second)
				r.ils.want(item2, 1, 2, 0)

				// One that never ends is half a frame all the same.
				k.raw(strings.TrimSuffix(long, "\r"))
				after(6 * time.Second)
				k.send("F3")
				k.expect(of(t, item2, seq(t, "R1", 4)), time.Second)
				r.ils.want(item2, 1, 2, 0)
			})
		})
	}
	t.Run("an answer", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			answer := trailed("64              00120261130    101523000000000000000000000000AOMAIN|AA1|AE|AF"+strings.Repeat("y", 60<<10)+"|", '5')
			r.ils.on(func(q *request) bool { q.raw(answer); return true })
			k := r.serial()
			k.send("PI")
			if got := k.read(time.Second); got != answer {
				t.Errorf("%d bytes came of an answer of %d", len(got), len(answer))
			}
		})
	})
}

// Frames that came in one read wait for their turn, at most 8, and are
// answered in order. Nothing is ever pipelined to the ILS.
func TestPipelinedFrames(t *testing.T) {
	item := func(i int) string { return fmt.Sprintf("3123400000%04d", 5000+i) }
	for _, c := range []struct {
		name   string
		frame  func(i int) string
		answer func(i int) string
	}{
		{"17", func(i int) string { return edited(t, of(t, item(i), "II"), "AY4", fmt.Sprint("AY", i%10)) },
			func(i int) string { return edited(t, of(t, item(i), "R-II-IN"), "AY4", fmt.Sprint("AY", i%10)) }},
		{"11", func(i int) string { return of(t, item(i), seq(t, "F1", byte(i))) },
			func(i int) string { return of(t, item(i), seq(t, "R1", byte(i))) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				busy := false
				r.ils.on(func(q *request) bool {
					if busy {
						t.Error("a request came before the answer to the last one")
					}
					busy = true
					after(100 * time.Millisecond)
					busy = false
					return false
				})
				k := r.serial().loggedIn()
				var all []string
				for i := range 12 {
					all = append(all, c.frame(i))
				}
				k.send(all...)
				for i := range 9 { // one is outstanding, 8 wait
					k.expect(c.answer(i), time.Second)
				}
				k.none(time.Minute)
				r.event("requests_dropped", 3)
				if n := len(r.ils.sent(c.name)); n != 9 {
					t.Errorf("%d frames at the ILS", n)
				}
				k.send(c.frame(11)) // the line stays in use
				k.expect(c.answer(11), 4*time.Second)
			})
		})
	}
	t.Run("equal ones join", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.ils.on(holding(100 * time.Millisecond))
			k := r.serial().loggedIn()
			k.send("F1", "F1", "F1-SEQ", "STAT", "STAT", "CI", "CI")
			for _, answer := range []string{"R1-SEQ", "R-STAT-Y", "R-CI"} {
				k.expect(answer, time.Second)
			}
			k.none(time.Minute)
			r.ils.want(item1, 1, 1, 0)
			if got := r.ils.codes(); got != "11 09" {
				t.Errorf("the ILS got %s", got)
			}
		})
	})
}

// Telnet bytes are skipped in front of a frame, with one hint, and left alone
// inside.
func TestTelnetBytes(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.connect("192.0.2.7")
		k.raw("\xFF\xFB\x1F\xFF\xFB\x20\xFF\xFB\x18\xFF\xFD\x01\xFF\xFE\r\xFF\xFC1\xFF\xF1")
		k.none(time.Second)
		k.send("LOGIN")
		k.expect("R-LOGIN-Y", time.Second)
		k.raw("\xFF\xFD\x03\n" + string(frameOf(t, "F1")))
		k.expect("R1", time.Second)
		inside := trailed("XS\xFF\xFD\x03|ZZ\xFF\xFF|", '3')
		r.ils.on(func(q *request) bool { q.raw(inside); return true })
		k.send(inside)
		k.expect(inside, time.Second)
		if got, want := r.ils.wire(1), frames(t, "LOGIN", "F1", inside); got != want {
			t.Errorf("the ILS got\n%q, want\n%q", got, want)
		}
		r.event("telnet_bytes", 1)
		other := r.connect("192.0.2.8")
		other.raw("\xFF\xFB\x1F" + string(frameOf(t, "F1")))
		other.lends(item1, 4*time.Second)
		r.event("telnet_bytes", 2) // it is set to telnet too
	})
}

// The third copy in a row of the same wrong bytes is no noise: it and further
// copies pass.
func TestRuleOfThree(t *testing.T) {
	wrong := func(frame string) string {
		f := strings.TrimSuffix(string(frameOf(t, frame)), "\r")
		return f[:len(f)-4] + "0000\r"
	}
	for _, mode := range []serialbridge.Checksum{serialbridge.ChecksumAuto, serialbridge.ChecksumStrict, serialbridge.ChecksumOff} {
		for _, spoken := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, after a right frame %v", mode, spoken), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					k := r.serial()
					if spoken {
						k.loggedIn()
					}
					if mode == serialbridge.ChecksumOff || mode == serialbridge.ChecksumAuto && !spoken {
						for range 4 {
							k.send(wrong("F1"))
							k.expect("R1", time.Second)
						}
						r.event("frame_sent_back", 0)
						r.ils.want(item1, 1, 1, 0)
						return
					}
					sentBack := func(frame string) {
						t.Helper()
						k.raw(frame)
						k.expect("96", time.Second)
					}
					sentBack(wrong("F1"))
					sentBack(wrong("F1"))
					sentBack(wrong("F3")) // others in between: the count begins anew
					sentBack(wrong("F1"))
					k.send("97AZ0000\r") // is never judged, and does not count
					k.expect("96", time.Second)
					sentBack(wrong("F1"))
					r.ils.want(item1, 0, 0, 0)
					for range 2 {
						k.send(wrong("F1"))
						k.expect("R1", time.Second)
					}
					r.event("frame_passed_damaged", 2)
					k.send("F3") // a right one: the next wrong bytes are noise again
					k.expect(of(t, item2, seq(t, "R1", 4)), time.Second)
					sentBack(wrong("F1"))
					sentBack(withoutTrailer(t, "F1"))
					r.ils.want(item1, 1, 2, 0)
					r.ils.want(item2, 1, 2, 0)
				}, func(r *rig) {
					r.edit = func(c *serialbridge.Config) { c.Checksum = mode }
				})
			})
		}
	}
	t.Run("bytes above 0x7F", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			high := strings.ReplaceAll(string(frameOf(t, "F3")), "AC|", "AC\xC5\xBB|")
			k.send(charSummed(high)) // a peer that sums characters
			k.expect(of(t, item2, seq(t, "R1", 4)), time.Second)
			k.send(edited(t, "F1", "AC|", "AC\xC5\xBB|")) // it can sum bytes, too
			k.expect("R1", time.Second)
			k.send(charSummed(strings.ReplaceAll(high, item2, item3)))
			k.expect("96", time.Second)
			r.ils.want(item3, 0, 2, 0)
		})
	})
}

// An 11 with AA, AB or AO twice is two frames run together, whatever its
// checksum says and whoever sends it. The rule of three applies.
func TestDoubledFields(t *testing.T) {
	for _, id := range []string{"AA", "AB", "AO"} {
		for _, c := range kiosks {
			if c.end != "\r" {
				continue
			}
			t.Run(id+", "+c.name, func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					k := r.serialOr(c.listen)
					body := bare(string(frameOf(t, "F1")))
					first := strings.Index(body, id)
					end := first + strings.IndexByte(body[first:], '|') + 1
					frame := withTrailer(body+id+"99|", c.trailer, 1) + "\r"
					adjacent := withTrailer(body[:end]+body[first:], c.trailer, 1) + "\r"
					resend := withTrailer("96", false, 0) + "\r"
					for _, f := range []string{frame, frame, adjacent, adjacent} {
						k.raw(f)
						if got := k.read(time.Second); got != resend {
							t.Errorf("got %q, want %q", got, resend)
						}
					}
					r.ils.want(item1, 0, 0, 0)
					for range 2 {
						k.raw(adjacent)
						k.lends(item1, time.Second)
					}
					r.event("frame_sent_back", 4)
					r.event("frame_passed_damaged", 2)
					r.ils.want(item1, 1, 1, 0)
					k.raw(withTrailer(body, c.trailer, 2) + "\r")
					k.lends(item1, 4*time.Second)
					r.ils.want(item1, 1, 1, 0)
				})
			})
		}
	}
	t.Run("two frames, the CR between them lost", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			k.raw(strings.TrimSuffix(string(frameOf(t, "F1")), "\r") + string(frameOf(t, "F3")))
			k.expect("96", time.Second)
			k.send("F3")
			k.expect(of(t, item2, seq(t, "R1", 4)), time.Second)
			r.ils.want(item1, 0, 1, 0)
			r.ils.want(item2, 1, 1, 0)
		})
	})
	t.Run("others may come twice", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			k.send(edited(t, "F1", "BON|", "BON|CHa|CHb|ACx|"))
			k.expect("R1", time.Second)
			k.send(edited(t, "CI", "AOMAIN|", "AOMAIN|AOMAIN|")) // no 11
			k.expect("R-CI", time.Second)
		})
	})
}

// An ILS may demand the last number plus one. It sees no gap where frames were
// sent back or answered here, and the kiosk sees its own numbers all the same.
func TestNumbersWithoutGaps(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		k.send("F1")
		k.expect("R1", time.Second)
		for _, x := range [][2]string{
			{seq(t, "F3", 2), of(t, item2, seq(t, "R1", 2))},
			{strings.Replace(seq(t, "F1", 3), "BON", "BOX", 1), "96"},
			{seq(t, "CI", 4), seq(t, "R-CI", 4)},
			{seq(t, "F3", 5), of(t, item2, seq(t, "R1", 5))}, // a repeat: one read, no 11
			{"97", of(t, item2, seq(t, "R1", 5))},
			{seq(t, "CI", 9), seq(t, "R-CI", 9)},
			{seq(t, "END", 9), seq(t, "R-END", 9)},
			{seq(t, "END", 0), seq(t, "R-END", 0)},
		} {
			k.send(x[0])
			k.expect(x[1], 4*time.Second)
		}
		for i, f := range r.ils.sent("") {
			if want := fmt.Sprintf("AY%dAZ", i%10); !strings.Contains(f.raw, want) {
				t.Errorf("frame %d at the ILS is %q", i, f.raw)
			}
		}
		if n := r.ils.reads(); n == 0 {
			t.Error("the repeat was not verified")
		}
	})
}
