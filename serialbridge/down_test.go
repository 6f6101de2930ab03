package serialbridge_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"sip2gate/serialbridge"
	"sip2gate/serialbridge/sip2"
)

// wanDown sets what stations get while the ILS cannot be reached.
func wanDown(mode serialbridge.WANDown) func(r *rig) {
	return func(r *rig) {
		edit := r.edit
		r.edit = func(c *serialbridge.Config) {
			if edit != nil {
				edit(c)
			}
			c.WANDown = mode
		}
	}
}

// down takes the line to the ILS down: its links are closed, and connecting
// meets what is given.
func (r *rig) down(connect func(*rig)) {
	connect(r)
	r.ils.hangUp()
}

var (
	portClosed  = func(r *rig) { r.ils.connecting(refuse) }
	nothingBack = func(r *rig) { r.ils.connecting(blackHole) }
)

// requests are what SIP2 has a negative answer for, without trailers.
func requests() map[string]string {
	out := make(map[string]string)
	for _, x := range pairs {
		if code := x.request[:2]; refusals[code].code != "" && out[code] == "" {
			out[code] = x.request
		}
	}
	return out
}

// Each request gets its most negative well-formed answer while the ILS cannot
// be reached, with and without trailers, from the first frame on and after an
// ordinary day.
func TestDownAnswers(t *testing.T) {
	if got, want := len(requests()), len(refusals); got != want {
		t.Fatalf("%d requests for %d refusals", got, want)
	}
	for name, connect := range map[string]func(*rig){"port closed": portClosed, "no answer": nothingBack} {
		for _, c := range kiosks {
			t.Run(name+", "+c.name, func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					r.down(connect)
					k := r.serialOr(c.listen).endingIn(c.end)
					ask := func() {
						n := 0
						for _, body := range requests() {
							request := withTrailer(body, c.trailer, n)
							n++
							begin := time.Now()
							k.raw(request + c.end)
							k.negative(request, 14*time.Second)
							if d := time.Since(begin); d > 14*time.Second {
								t.Errorf("%s was answered after %v", body[:2], d)
							}
						}
					}
					ask()
					r.ils.connecting(nil)
					after(time.Minute)
					k.raw(withTrailer("9900802.00", c.trailer, 7) + c.end)
					if got, want := k.read(10*time.Second), "98Y"; !strings.HasPrefix(got, want) {
						t.Errorf("a 99 got %q once the line was up again", got)
					}
					r.down(connect)
					ask()
					k.none(time.Minute)
					if n := len(r.ils.sent("")); n != 1 {
						t.Errorf("%d frames at the ILS, want the 99 alone", n)
					}
				})
			})
		}
	}
}

// What SIP2 has no answer for gets none; the line stays in use.
func TestDownUnknownIsSilence(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.down(portClosed)
		k := r.connect("192.0.2.7")
		for i, body := range []string{"XS00hello", "81" + day, "96", "12NNNN"} {
			k.raw(withTrailer(body, true, i) + "\r")
			k.none(20 * time.Second)
		}
		k.send("F1")
		k.refused('1', "cannot be reached", 14*time.Second)
	})
}

// With wan_down = "silent" nothing is said, with "close" a TCP kiosk's
// connection is closed; a line has nothing to close. When the ILS is there
// again, all goes on without a visit.
func TestDownSilentAndClose(t *testing.T) {
	all := requests()
	all["93"], all["99"], all["XS"] = "9300CNkiosk1|COs3cret|", "9900802.00", "XS00hello"
	for _, mode := range []serialbridge.WANDown{serialbridge.Silent, serialbridge.Close} {
		for name, connect := range map[string]func(*rig){"port closed": portClosed, "no answer": nothingBack} {
			for _, c := range kiosks {
				if c.end != "\r" {
					continue
				}
				t.Run(string(mode)+", "+name+", "+c.name, func(t *testing.T) {
					bubble(t, func(t *testing.T, r *rig) {
						r.down(connect)
						k := r.serialOr(c.listen)
						n := 0
						for _, body := range all {
							k.raw(withTrailer(body, c.trailer, n) + "\r")
							n++
							if mode == serialbridge.Close && c.listen {
								k.closed(15 * time.Second)
								k = r.connect("192.0.2.7")
							} else {
								k.none(16 * time.Second)
							}
						}
						r.ils.connecting(nil)
						after(time.Minute)
						if mode == serialbridge.Close && c.listen {
							k = r.connect("192.0.2.7") // the last one has been silent for long
						}
						k.raw(withTrailer("9900802.00", c.trailer, 2) + "\r")
						if got, want := k.read(10*time.Second), "98Y"; !strings.HasPrefix(got, want) {
							t.Errorf("a 99 got %q once the line was up again", got)
						}
						k.send(withTrailer(bare(string(frameOf(t, "F1"))), c.trailer, 1) + "\r")
						k.lends(item1, time.Second)
						r.ils.want(item1, 1, 1, 0)
					}, wanDown(mode))
				})
			}
		}
	}
}

// status98 is what a 98 of the gate's own says.
type status98 struct {
	ao, am, bx, version, seq string
	date                     string // "": 18 zeros
	emptyAM                  bool   // AM is there, with nothing in it
}

// ownStatus wants a 98 of the gate's own, whole and never on line. It comes when a link has been waited for, for a second at most.
func (k *kiosk) ownStatus(want status98) {
	k.r.t.Helper()
	t := k.r.t
	raw := k.read(time.Second + time.Millisecond)
	m := sip2.Parse([]byte(strings.TrimRight(raw, "\r\n")), '|')
	if want.date == "" {
		want.date = strings.Repeat("0", 18)
	}
	for name, v := range map[string]string{
		"online_status": "N", "checkin_ok": "N", "checkout_ok": "N", "status_update_ok": "N",
		"timeout_period": "150", "retries_allowed": "002", // of the station's settings
		"date_time_sync": want.date, "protocol_version": want.version,
	} {
		if got := string(m.Fixed(name)); got != v {
			t.Errorf("%s of %q is %q, want %q", name, raw, got, v)
		}
	}
	for id, v := range map[string]string{"AO": want.ao, "AM": want.am, "BX": want.bx} {
		got, there := m.Field(id)
		if !bytes.Equal(bytes.TrimSpace(got), []byte(v)) || there == (id == "AM" && v == "" && !want.emptyAM) || m.Count(id) > 1 {
			t.Errorf("%s of %q is %q, want %q", id, raw, got, v)
		}
	}
	if m.Code != sip2.CodeACSStatus || m.Short() || m.Trailer.Present != (want.seq != "") ||
		m.Trailer.Present && (!m.Trailer.Valid || string(m.Trailer.Seq) != want.seq) {
		t.Errorf("got %q, want a whole 98 with AY%s\n%s", raw, want.seq, k.r.log)
	}
}

var noMessages = strings.Repeat("N", 16)

// Before any 98 of the ILS the gate knows nothing of it but what the station
// itself has said.
func TestDownStatusBeforeAny98(t *testing.T) {
	for name, connect := range map[string]func(*rig){"port closed": portClosed, "no answer": nothingBack} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.down(connect)
				k := r.serial()
				k.send("STAT")
				k.ownStatus(status98{version: "2.00", bx: noMessages, seq: "2"})
				k.send(edited(t, "STAT-20E", "AY2", "AY3"))
				k.ownStatus(status98{version: "2.00", bx: noMessages, seq: "3"})
				k.send("PI")
				k.negative("PI", 14*time.Second)
				k.send("STAT")
				k.ownStatus(status98{ao: "MAIN", version: "2.00", bx: noMessages, seq: "2"})

				other := r.connect("192.0.2.7")
				other.send(withoutTrailer(t, "STAT"))
				other.ownStatus(status98{version: "2.00", bx: noMessages})
			})
		})
	}
}

// An ILS that takes requests and answers none is down, too: each wait ends in
// time, and nothing is sent twice.
func TestMuteILS(t *testing.T) {
	all := requests()
	all["99"] = "9900802.00"
	for _, mode := range []serialbridge.WANDown{serialbridge.Answer, serialbridge.Silent, serialbridge.Close} {
		for code, body := range all {
			t.Run(string(mode)+" "+code, func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					r.ils.on(func(*request) bool { return true })
					k := r.connect("192.0.2.7")
					request := withTrailer(body, true, 2)
					k.raw(request + "\r")
					switch {
					case mode == serialbridge.Answer && code == "99":
						got := k.read(14*time.Second + time.Millisecond)
						if !strings.HasPrefix(got, "98N") || !strings.Contains(got, "|AY2AZ") {
							t.Errorf("got %q", got)
						}
					case mode == serialbridge.Answer, code == "11":
						// Nobody knows whether the checkout was carried out:
						// a kiosk must not go on off line with it.
						k.negative(request, 14*time.Second+time.Millisecond)
					case mode == serialbridge.Silent:
						k.none(15 * time.Second)
					default:
						k.closed(14*time.Second + time.Millisecond)
						return
					}
					k.none(40 * time.Second)
					if n := len(r.ils.sent(code)); n != 1 {
						t.Errorf("%d of it at the ILS", n)
					}
				}, wanDown(mode))
			})
		}
	}
}
