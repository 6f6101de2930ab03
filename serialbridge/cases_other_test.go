package serialbridge_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sip2gate/serialbridge"
	"sip2gate/serialbridge/sip2"
)

// C-112: control characters make no false log lines. (How the other log
// formats escape is the command's affair.)
func TestC112ControlCharactersInTheLog(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		k.send("F-CTRL")
		k.lends("312\x1B[2J\x14\n99", time.Second)
		k.send(edited(t, "F3", "AOMAIN", "AOMAIN\n2026-11-30 level=info event=settled"))
		k.lends(item2, time.Second)
		if got := r.ils.wire(1); !strings.Contains(got, string(frameOf(t, "F-CTRL"))) {
			t.Errorf("the ILS got %q, not the frame as it is", got)
		}
		for line := range strings.Lines(r.log.String()) {
			var record map[string]any
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Errorf("a line of the log is no record: %q", line)
			}
			for _, c := range strings.TrimSuffix(line, "\n") {
				if c < ' ' || c == 0x7F {
					t.Errorf("a bare control character in the log: %q", line)
				}
			}
		}
		r.event("checkout_admitted", 2)
		r.event("loan_committed", 2)
		if e := r.log.events("checkout_admitted")[0]; e["item"] != "312\x1B[2J\x14\n99" {
			t.Errorf("the record says %v", e)
		}
	})
}

// C-113: connections that say nothing.
func TestC113ConnectionsThatSayNothing(t *testing.T) {
	for _, limit := range []int{0, 3} { // 0: the default of 32
		t.Run(fmt.Sprint("C-113 limit ", limit), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				s1 := r.serial().loggedIn()
				var storm []*kiosk
				for i := range 2000 {
					k := r.connect("198.51.100.1")
					if i%2 == 1 {
						k.raw("11YN")
					}
					storm = append(storm, k)
				}
				s2 := r.connect("192.0.2.7").loggedIn()
				s2.send("F1")
				s2.expect("R1", 14*time.Second)
				s1.send("F3")
				s1.expect(of(t, item2, seq(t, "R1", 4)), 14*time.Second)

				places := 32
				if limit != 0 {
					places = limit
				}
				synctest.Wait() // the last one to go has gone
				standing := 0
				for i, k := range storm {
					select {
					case <-k.got:
						if standing > 0 {
							t.Errorf("connection %d is closed, an older one stands", i)
						}
					default:
						standing++
					}
				}
				if standing != places-1 {
					t.Errorf("%d silent connections stand, want %d", standing, places-1)
				}
				after(61 * time.Second)
				for _, k := range storm {
					k.closed(time.Second)
				}
				s2.send("STAT") // one that has spoken stays
				s2.expect("R-STAT-Y", 5*time.Second)
				r.ils.want(item1, 1, 2, 0)

				// Every place is free again, and only for kiosks that talk.
				for i := range places - 1 {
					k := r.connect(fmt.Sprintf("192.0.2.%d", 100+i))
					k.loggedIn()
				}
				k := r.connect("192.0.2.99")
				k.closed(time.Second)
				r.event("connection_refused", 1)
			}, func(r *rig) {
				r.edit = func(c *serialbridge.Config) { c.Stations[1].MaxConnections = limit }
			})
		})
	}
}

// C-115: the end of a session is not the end of the connection.
func TestC115EndOfSession(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		k.send("F1")
		k.expect("R1", time.Second)
		k.send("END")
		k.expect("R-END", time.Second)
		k.send("F1-SEQ") // somebody's second try: it is verified
		k.expect("R1-SEQ", 4*time.Second)
		r.ils.want(item1, 1, 1, 0)
		k.send("F2")
		k.expect(edited(t, seq(t, "R1", 3), patron1, patron2), time.Second)
		k.send("STAT")
		k.expect("R-STAT-Y", time.Second)
		r.ils.want(item1, 2, 2, 0)
		k.send("F1-SEQ")
		k.expect("R1-SEQ", time.Second)
		r.ils.want(item1, 3, 3, 0)
		if c, l := r.ils.connections(), len(r.ils.sent("93")); c != 1 || l != 1 {
			t.Errorf("%d connections and %d logins, want one of each", c, l)
		}
	})
}

// C-116: a fee payment is never repeated by the gateway.
func TestC116FeeIsPaidOnce(t *testing.T) {
	late := func(d time.Duration) func(q *request) {
		return func(q *request) { after(d); q.reply("R-FEE-OK") }
	}
	for _, c := range []struct {
		name    string
		ils     func(q *request)
		answer  string // "": the most negative 38
		within  time.Duration
		repeats int // how often the kiosk sends it again, every 4 s
	}{
		{"wrong checksum", func(q *request) { q.raw(string(frameOf(q.m.t, "R-FEE-BADAZ"))) }, "R-FEE-BADAZ", time.Second, 0},
		{"late", late(8 * time.Second), "R-FEE-OK", 9 * time.Second, 0},
		{"late, and repeated meanwhile", late(9 * time.Second), "R-FEE-OK", 10 * time.Second, 2},
		{"silence", func(*request) {}, "", 14 * time.Second, 0},
		{"silence, and repeated meanwhile", func(*request) {}, "", 22 * time.Second, 2},
		{"reset after reading", func(q *request) { q.close() }, "", 14 * time.Second, 0},
	} {
		t.Run("C-116 "+c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(func(q *request) bool {
					if q.is("37") {
						c.ils(q)
						return true
					}
					return false
				})
				k := r.serial().loggedIn()
				begin := time.Now()
				k.send("FEE")
				for range c.repeats {
					after(4 * time.Second)
					k.send("FEE")
				}
				if c.answer != "" {
					k.expect(c.answer, c.within-time.Since(begin))
				} else {
					k.negative("FEE", c.within-time.Since(begin))
				}
				got := strings.TrimPrefix(k.heard(), string(frameOf(t, "R-LOGIN-Y")))
				for range 2 {
					k.send("97")
					if again := k.read(time.Second); again != got {
						t.Errorf("a 97 got %q, want %q again", again, got)
					}
				}
				k.none(2 * time.Minute)
				if n := len(r.ils.sent("37")); n != 1 {
					t.Errorf("%d 37s at the ILS, want one", n)
				}
				if n := len(r.ils.sent("97")) + r.ils.reads(); n != 0 {
					t.Errorf("%d 97s and reads at the ILS", n)
				}
			})
		})
	}
}

// C-118: unknown message codes, and frames too short for one.
func TestC118UnknownCode(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		r.ils.on(func(q *request) bool {
			if strings.HasPrefix(string(q.msg.Raw), "XS") {
				q.raw(seq(t, "UNK", 9))
				return true
			}
			return false
		})
		k.send("UNK")
		k.expect("UNK", time.Second)
		for _, short := range []string{"00\r", "1\r"} {
			k.raw(short)
			k.expect("96", time.Second)
		}
		if got, want := r.ils.wire(1), frames(t, "LOGIN", "UNK"); got != want {
			t.Errorf("the ILS got\n%q, want\n%q", got, want)
		}
		k.send("F1")
		k.expect("R1", time.Second)
		k.none(time.Minute)
		r.ils.want(item1, 1, 1, 0)
	})
}

// C-119: no message is built anew on the way.
func TestC119NothingIsRebuilt(t *testing.T) {
	hold := "15+20261130    101600AOMAIN|AA" + patron1 + "|AD|AC|AB" + item1 + "|ZZx|BSMAIN|"
	info := "6300120261130    101522  Y       AOMAIN|AA" + patron1 + "|AC|AD|BP|BQ|ZZx|"
	bubble(t, func(t *testing.T, r *rig) {
		titles := "64              00120261130    101523000000000000000000000000AOMAIN|AA" + patron1 + "|AE|BLY|ZZy||"
		r.ils.on(func(q *request) bool {
			switch {
			case q.is("15"):
				q.reply("161Y20261130    101600AOMAIN|AA" + patron1 + "|AJ|ZZ|")
			case q.is("63") && strings.Contains(string(q.msg.Raw), "ZZx"):
				q.reply(titles)
			case q.is("99"):
				q.reply("R-STAT-NOPIPE")
			default:
				return false
			}
			return true
		})
		k := r.serial().loggedIn()
		sent, heard := frames(t, "LOGIN"), frames(t, "R-LOGIN-Y")
		for _, x := range [][2]string{
			{"F1", "R1"}, {"CI", "R-CI"}, {"PI", "R-PI-NONE"},
			// The checkin has ended the key of F1: this is new work. (Behind the
			// frames with later dates it would be an upload, and be read first.)
			{"F-TAIL", "R1-SEQ"},
			{"F-AYAZ", of(t, "AY1AZ0001", seq(t, "R1", 4))},
			{"END", "R-END"},
			{"RENEW", seq(t, "30"+string(frameOf(t, "R1"))[2:], 8)},
			{trailed(hold, '2'), trailed("161Y20261130    101600AOMAIN|AA"+patron1+"|AJ|ZZ|", '2')},
			{trailed(info, '3'), trailed(titles, '3')},
			{"STAT", "R-STAT-NOPIPE"},
		} {
			k.send(x[0])
			k.expect(x[1], time.Second)
			sent += string(frameOf(t, x[0]))
			heard += string(frameOf(t, x[1]))
		}
		if got := r.ils.wire(1); got != sent {
			t.Errorf("the ILS got\n%q, want\n%q", got, sent)
		}
		if got := k.heard(); got != heard {
			t.Errorf("the kiosk heard\n%q, want\n%q", got, heard)
		}

		// Once the gate has swallowed a frame only AY and AZ may differ.
		k.send("F-AYAZ")
		k.expect(of(t, "AY1AZ0001", seq(t, "R1", 4)), time.Second)
		for _, f := range []string{"PI", trailed(hold, '7'), "F3", of(t, item3, "F-LONG")} {
			k.send(f)
			k.read(4 * time.Second)
			all := r.ils.sent("")
			if got, want := bare(all[len(all)-1].raw), bare(string(frameOf(t, f))); got != want {
				t.Errorf("the ILS got %q, want %q but for AY and AZ", got, want)
			}
		}
	})
}

// trailed is a body with AY and a right AZ.
func trailed(body string, seq byte) string {
	return string(sip2.AppendTrailer([]byte(body), true, seq)) + "\r"
}

// bare is a frame without AY, AZ and terminator.
func bare(frame string) string {
	f := []byte(strings.TrimRight(frame, "\r\n"))
	return string(sip2.Body(f, sip2.ReadTrailer(f)))
}
