package config

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"sip2gate/serialbridge/port"
)

// check looks at what no single value shows. A setting that has been reported
// is left out of it.
func (l *loader) check() {
	l.required()
	l.distinct()
	l.present()
	l.encryption()
	l.login()
	l.texts()
	l.idle()
	l.times()
}

// where gives the place of a setting: its value, or the table that it would
// stand in, or the start of the file.
func (l *loader) where(p place) pos {
	if it, ok := l.seen[p]; ok {
		if it.valueAt.line > 0 {
			return it.valueAt
		}
		return it.at
	}
	if isArray(p.table) {
		return l.stations[p.station]
	}
	if at, ok := l.opened[p.table]; ok {
		return at
	}
	return pos{1, 1}
}

func (l *loader) isSet(p place) bool { _, ok := l.seen[p]; return ok }

// valid says that a setting has been read well; one left out is not.
func (l *loader) valid(p place) bool { return l.isSet(p) && !l.bad[p] }

func ofStation(i int, key string) place { return place{"station", i, key} }
func ofILS(key string) place            { return place{table: "ils", key: key} }
func ofGate(key string) place           { return place{table: "gate", key: key} }

func (l *loader) required() {
	why := ""
	if l.empty {
		why = ": the file holds no settings"
	}
	if !l.isSet(ofILS("address")) {
		hint := `type address = "ils.example.org:6001" below [ils]`
		l.add(l.where(ofILS("address")), "[ils] address is missing"+why, hint)
	}
	if len(l.stations) == 0 {
		l.add(pos{1, 1}, "there is no [[station]]"+why, `type [[station]], and below it a name and one of serial, listen, dial`)
	}
	for i, at := range l.stations {
		if !l.isSet(ofStation(i, "name")) {
			l.add(at, "the station has no name", `type name = "kiosk-`+fmt.Sprint(i+1)+`"`)
		}
		ways := slices.DeleteFunc([]string{"serial", "listen", "dial"}, func(key string) bool {
			return !l.isSet(ofStation(i, key))
		})
		switch len(ways) {
		case 0:
			l.add(at, l.station(i)+" has none of serial, listen and dial", "type one of them: the way to the kiosk")
		case 1:
		default:
			l.add(l.where(ofStation(i, ways[1])), l.station(i)+" has "+strings.Join(ways, " and "), "a station has one of serial, listen and dial")
		}
	}
}

// station names a station in a report: by its number where the name does not.
func (l *loader) station(i int) string {
	name := l.c.Stations[i].Name
	named := func(s Station) bool { return s.Name == name }
	if l.valid(ofStation(i, "name")) && slices.IndexFunc(l.c.Stations, named) == i {
		return `station "` + name + `"`
	}
	return fmt.Sprintf("station %d", i+1)
}

// distinct reports what two stations, or a station and something else, cannot
// both have.
func (l *loader) distinct() {
	l.apart("name", func(a, b Station) bool { return a.Name == b.Name }, "has the same name as")
	l.apart("listen", func(a, b Station) bool { return overlap(a.Listen, b.Listen) }, "listens on the same port as")
	l.apart("dial", func(a, b Station) bool { return samePort(a.Dial, b.Dial) }, "dials the same port as")
	l.apart("serial", func(a, b Station) bool { return port.SameDevice(a.Serial, b.Serial) }, "is on the same device as")
	status := place{table: "status", key: "listen"}
	for i, s := range l.c.Stations {
		if at := ofStation(i, "listen"); l.valid(at) && l.valid(status) && overlap(s.Listen, l.c.Status.Listen) {
			l.collide(at, status, l.station(i)+" listens on the same port as [status]", "give one of them another port")
			break
		}
	}
	address := ofILS("address")
	for i, s := range l.c.Stations {
		if at := ofStation(i, "listen"); l.valid(at) && l.valid(address) && reaches(l.c.ILS.Address, s.Listen) {
			l.collide(at, address, "[ils] address is where "+l.station(i)+" listens: the gate would talk to itself",
				"address is that of the library system")
		}
	}
}

// present warns of serial ports that are not there: the adapter may be
// unplugged. Where the gate's serial lines do not work there is none anyway.
func (l *loader) present() {
	if runtime.GOOS != "linux" {
		return
	}
	for i, s := range l.c.Stations {
		if at := ofStation(i, "serial"); l.valid(at) {
			if _, err := os.Stat(s.Serial); errors.Is(err, fs.ErrNotExist) {
				l.warn(l.where(at), "there is no "+s.Serial+" now", "plug the adapter in; "+portsHint)
			}
		}
	}
}

// apart reports each station whose key is the same as an earlier one's.
func (l *loader) apart(key string, same func(a, b Station) bool, verb string) {
	for i, s := range l.c.Stations {
		for j, earlier := range l.c.Stations[:i] {
			a, b := ofStation(i, key), ofStation(j, key)
			if l.valid(a) && l.valid(b) && same(s, earlier) {
				l.collide(a, b, l.station(i)+" "+verb+" "+l.station(j), "each station has its own "+key)
				break
			}
		}
	}
}

// collide reports two settings at the place of the later, with that of the
// other.
func (l *loader) collide(a, b place, text, hint string) {
	first, second := l.where(a), l.where(b)
	if first.compare(second) > 0 {
		first, second = second, first
	}
	l.add(second, text+", see "+l.at(first), hint)
}

// encryption makes sure that nobody believes in a TLS that is not on.
func (l *loader) encryption() {
	i := l.c.ILS
	for _, key := range []string{"ca_file", "server_name"} {
		switch p := ofILS(key); {
		case !l.isSet(p) || i.TLS || l.bad[ofILS("tls")]:
		case l.isSet(ofILS("tls")):
			l.warn(l.seen[p].at, key+" has no effect while tls is false", "")
		default:
			l.add(l.seen[p].at, key+" is set, but TLS is off: the connection would not be encrypted", "type tls = true, or delete "+key)
		}
	}
	if p := ofILS("ca_file"); l.valid(p) {
		data, err := readBounded(i.CAFile)
		if err != nil {
			l.add(l.where(p), "ca_file: "+unreadable(i.CAFile, err), "")
		} else if !x509.NewCertPool().AppendCertsFromPEM(data) {
			l.add(l.where(p), "ca_file: there is no PEM certificate in "+i.CAFile, "it holds -----BEGIN CERTIFICATE-----")
		}
	}
}

func (l *loader) login() {
	user := ofILS("login_user")
	for _, key := range []string{"login_password_file", "location"} {
		if p := ofILS(key); l.isSet(p) && !l.isSet(user) {
			l.add(l.seen[p].at, key+" has no effect without login_user", "type login_user as well, or delete "+key)
		}
	}
	password := ofILS("login_password_file")
	if l.valid(user) && !l.isSet(password) {
		l.warn(l.seen[user].at, "there is no login_password_file: the login is sent without a password", "")
	}
	if l.valid(password) {
		if _, err := l.c.ILS.LoginPassword(); err != nil {
			text := strings.TrimPrefix(err.Error(), "read the login password: ")
			if _, ok := errors.AsType[*fs.PathError](err); ok {
				text = unreadable(l.c.ILS.LoginPasswordFile, err)
			}
			l.add(l.where(password), "login_password_file: "+text, "the password is the first line of that file")
		}
	}
}

func unreadable(path string, err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return path + " cannot be read: " + err.Error()
}

// maxField is the longest value of a SIP2 field, in bytes.
const maxField = 255

// texts makes sure that what the gate itself writes into frames fits into
// those of every station.
func (l *loader) texts() {
	m := l.c.Messages
	all := []struct {
		place
		value string
	}{
		{place{table: "messages", key: "down"}, m.Down},
		{place{table: "messages", key: "doubt"}, m.Doubt},
		{place{table: "messages", key: "conflict"}, m.Conflict},
		{place{table: "messages", key: "lent"}, m.Lent},
		{ofILS("login_user"), l.c.ILS.LoginUser},
		{ofILS("location"), l.c.ILS.Location},
	}
	for _, t := range all {
		if l.bad[t.place] {
			continue
		}
		said := map[string]bool{} // one fault for all stations that are alike
		fault := func(station int, alike, part, text, hint string) {
			if said[alike] {
				return
			}
			said[alike] = true
			at := l.where(ofStation(station, "delimiter")) // a default message has no place, and can have no other fault
			if it, ok := l.seen[t.place]; ok {
				at = it.find(part)
			}
			l.add(at, t.key+": "+text, hint)
		}
		for i, s := range l.c.Stations {
			if encoded, err := Encode(s.Charset, t.value); err != nil {
				if ce, ok := errors.AsType[*CharsetError](err); ok {
					fault(i, s.Charset, string(ce.Char), fmt.Sprintf("charset %s of %s does not have %s", s.Charset, l.station(i), charName(ce.Char)),
						"use other letters, or set the charset that the kiosk has: "+strings.Join(Charsets(), ", "))
				}
			} else if len(encoded) > maxField {
				fault(i, s.Charset, "", fmt.Sprintf("the text is %d bytes long in %s, more than the %d of a SIP2 field", len(encoded), s.Charset, maxField), "")
			}
			if d := string(rune(s.Delimiter)); strings.Contains(t.value, d) {
				fault(i, d, d, fmt.Sprintf("the text holds %q, the delimiter of %s", d, l.station(i)), "")
			}
		}
	}
}

// idle warns of settings that do nothing: each was set for some purpose.
func (l *loader) idle() {
	onlyFor := map[string][]string{
		"serial": {"baud", "data_bits", "parity", "stop_bits", "flow"},
		"listen": {"allow", "max_connections"},
	}
	for i := range l.stations {
		if !l.isSet(ofStation(i, "serial")) && !l.isSet(ofStation(i, "listen")) && !l.isSet(ofStation(i, "dial")) {
			continue // it is not known yet what the station will be
		}
		for way, keys := range onlyFor {
			for _, key := range keys {
				it, ok := l.seen[ofStation(i, key)]
				if ok && it.path != nil && !l.isSet(ofStation(i, way)) { // presumed ones have a problem already
					l.warn(it.at, fmt.Sprintf("%s has no effect: %s has no %s", key, l.station(i), way), "")
				}
			}
		}
	}
	if at, ok := l.opened["status"]; ok {
		l.warn(at, "[status] has no effect in this version: it has no status page", "")
	}
}

// margin is what must be left of a kiosk's patience when the ILS has used up
// its own: a second for the answer's way back and three in which a checkout
// can still be sent.
const margin = 4 * time.Second

// times warns of figures that defeat each other.
func (l *loader) times() {
	g, ils := l.c.Gate, l.c.ILS
	if l.bad[ofGate("window")] || l.bad[ofILS("timeout")] || l.bad[ofILS("settle")] || l.bad[ofGate("doubt_retention")] {
		return
	}
	if g.DoubtRetention < g.Window {
		l.add(l.where(ofGate("doubt_retention")), fmt.Sprintf("doubt_retention %s is shorter than window %s", Span(g.DoubtRetention), Span(g.Window)), "")
	}
	shortest := -1
	for i, s := range l.c.Stations {
		if l.bad[ofStation(i, "timeout")] || l.bad[ofStation(i, "retries")] {
			continue
		}
		if g.Window <= s.Horizon() {
			l.warn(l.first(ofGate("window"), ofStation(i, "timeout"), ofStation(i, "retries")),
				fmt.Sprintf("window %s is not longer than %s, in which %s may still repeat a checkout: (%d retries + 1) x timeout %s",
					Span(g.Window), Span(s.Horizon()), l.station(i), s.Retries, Span(s.Timeout)),
				"a repeat after the window is a new loan: make the window longer, or timeout and retries as they are on the kiosk")
		}
		if shortest < 0 || s.Timeout < l.c.Stations[shortest].Timeout {
			shortest = i
		}
	}
	if shortest >= 0 {
		if s := l.c.Stations[shortest]; ils.Timeout > s.Timeout-margin {
			l.warn(l.first(ofILS("timeout"), ofStation(shortest, "timeout")),
				fmt.Sprintf("[ils] timeout %s leaves less than %s of the %s that %s waits", Span(ils.Timeout), Span(margin), Span(s.Timeout), l.station(shortest)),
				"connect, login and answer must all end before the kiosk gives up: make [ils] timeout shorter")
		}
	}
	if ils.Settle < ils.Timeout {
		l.warn(l.first(ofILS("settle"), ofILS("timeout")),
			fmt.Sprintf("settle %s is shorter than [ils] timeout %s: the ILS may still be at work when it is asked", Span(ils.Settle), Span(ils.Timeout)),
			"settle is the longest that the ILS may take for a request")
	}
}

// first gives the place of the first of some settings that is in the file,
// else that of the last one's table.
func (l *loader) first(all ...place) pos {
	for _, p := range all {
		if l.isSet(p) {
			return l.where(p)
		}
	}
	return l.where(all[len(all)-1])
}
