package config

import (
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
)

// A kind is what a value is in the technician's words.
type kind int

const (
	aText kind = iota
	aNumber
	aFlag
	aSpan
	aList
)

func (k kind) String() string {
	return [...]string{"text in quotes", "a whole number without quotes", "true or false without quotes",
		`a duration in quotes, such as "90s"`, "a list of texts in quotes"}[k]
}

// A field is one key of a table, bound to its place in the Config. set is
// given a string, an int64, a bool or a []string, according to the kind (aText
// and aSpan: string).
type field struct {
	name string
	kind kind
	set  func(v any) *fault
}

// tables are the tables of the file. The names of keys live in the fields
// functions alone, so that a key cannot be known and not be read.
var tables = []struct {
	name  string
	array bool
	keys  []string
}{
	{name: "gate", keys: names(gateFields(new(Gate)))},
	{name: "ils", keys: names(ilsFields(new(ILS)))},
	{name: "station", array: true, keys: names(stationFields(new(Station)))},
	{name: "messages", keys: names(messageFields(new(Messages)))},
	{name: "status", keys: names(statusFields(new(Status)))},
	{name: "log", keys: names(logFields(new(Log)))},
}

func names(fields []field) []string {
	var all []string
	for _, f := range fields {
		all = append(all, f.name)
	}
	return all
}

func tableNames() string {
	var all []string
	for _, t := range tables {
		all = append(all, bracket(t.name, t.array))
	}
	return strings.Join(all, ", ")
}

func gateFields(g *Gate) []field {
	return []field{
		{"mode", aText, mode(&g.Mode)},
		{"window", aSpan, between(&g.Window, time.Second, 24*time.Hour)},
		{"sequence", aText, oneOf(&g.Sequence, "ignore", "match")},
		{"checksum", aText, oneOf(&g.Checksum, "auto", "strict", "off")},
		{"state_dir", aText, plain(&g.StateDir)},
		{"secret_file", aText, plain(&g.SecretFile)},
		{"store", aText, store(&g.Store)},
		{"doubt_retention", aSpan, between(&g.DoubtRetention, time.Hour, 365*24*time.Hour)},
	}
}

func ilsFields(i *ILS) []field {
	return []field{
		{"address", aText, hostPort(&i.Address, "ils.example.org:6001")},
		{"timeout", aSpan, between(&i.Timeout, time.Second, 120*time.Second)},
		{"settle", aSpan, between(&i.Settle, time.Second, time.Hour)},
		{"wan_down", aText, oneOf(&i.WANDown, "answer", "silent", "close")},
		{"resolve", aList, subset(&i.Resolve, "63", "17")},
		{"tls", aFlag, boolean(&i.TLS)},
		{"ca_file", aText, plain(&i.CAFile)},
		{"server_name", aText, plain(&i.ServerName)},
		{"login_user", aText, plain(&i.LoginUser)},
		{"login_password_file", aText, plain(&i.LoginPasswordFile)},
		{"location", aText, plain(&i.Location)},
		{"terminator", aText, terminator(&i.Terminator)},
	}
}

func stationFields(s *Station) []field {
	return []field{
		{"name", aText, stationName(&s.Name)},
		{"serial", aText, device(&s.Serial)},
		{"baud", aNumber, from(&s.Baud, 50, 4_000_000)},
		{"data_bits", aNumber, from(&s.DataBits, 7, 8)},
		{"parity", aText, oneOf(&s.Parity, "none", "even", "odd")},
		{"stop_bits", aNumber, from(&s.StopBits, 1, 2)},
		{"flow", aText, oneOf(&s.Flow, "none", "rtscts", "xonxoff")},
		{"listen", aText, listenAt(&s.Listen, "0.0.0.0:6101")},
		{"allow", aList, prefixes(&s.Allow)},
		{"max_connections", aNumber, from(&s.MaxConnections, 1, 1024)},
		{"dial", aText, hostPort(&s.Dial, "10.0.0.9:4001")},
		{"timeout", aSpan, between(&s.Timeout, 5*time.Second, 120*time.Second)},
		{"retries", aNumber, from(&s.Retries, 0, 20)},
		{"delimiter", aText, delimiter(&s.Delimiter)},
		{"charset", aText, oneOf(&s.Charset, Charsets()...)},
		{"terminator", aText, terminator(&s.Terminator)},
	}
}

func messageFields(m *Messages) []field {
	return []field{
		{"down", aText, screenLine(&m.Down)},
		{"doubt", aText, screenLine(&m.Doubt)},
		{"conflict", aText, screenLine(&m.Conflict)},
		{"lent", aText, screenLine(&m.Lent)},
	}
}

func statusFields(s *Status) []field {
	return []field{
		{"listen", aText, listenAt(&s.Listen, "127.0.0.1:8080")},
		{"allow", aList, prefixes(&s.Allow)},
	}
}

func logFields(l *Log) []field {
	return []field{
		{"level", aText, oneOf(&l.Level, "debug", "info", "warn", "error")},
		{"format", aText, oneOf(&l.Format, "json", "text")},
	}
}

func boolean(to *bool) func(any) *fault {
	return func(v any) *fault { *to = v.(bool); return nil }
}

func terminator(to *string) func(any) *fault { return oneOf(to, "auto", "cr", "crlf", "lf") }

func from(to *int, least, most int64) func(any) *fault {
	return func(v any) *fault {
		n := v.(int64)
		if n < least || n > most {
			return faultf("", "%d is out of range: %d to %d", n, least, most)
		}
		*to = int(n)
		return nil
	}
}

func between(to *time.Duration, least, most time.Duration) func(any) *fault {
	return func(v any) *fault {
		s := v.(string)
		d, err := time.ParseDuration(s)
		if err != nil {
			return faultf(spanHint(s), "%q is not a duration", s)
		}
		if d < least || d > most {
			return faultf("", "%q is out of range: %s to %s", s, Span(least), Span(most))
		}
		*to = d
		return nil
	}
}

// spanHint guesses what "90", "90 seconds" or "14d" is meant to be.
func spanHint(s string) string {
	s = strings.ToLower(strings.ReplaceAll(s, " ", ""))
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyz.")
	unit := strings.TrimLeft(s[len(digits):], ".")
	if digits != "" && strings.Trim(digits, "0123456789") == "" {
		switch {
		case unit == "" || strings.HasPrefix("seconds", unit) || unit == "secs":
			return `type "` + digits + `s"`
		case strings.HasPrefix("minutes", unit) || unit == "mins":
			return `type "` + digits + `m"`
		case strings.HasPrefix("hours", unit) || unit == "hrs":
			return `type "` + digits + `h"`
		}
	}
	return `type a number with its unit, such as "90s", "5m" or "336h"; days are written as hours`
}

func oneOf(to *string, words ...string) func(any) *fault {
	return func(v any) *fault {
		s := v.(string)
		if slices.Contains(words, s) {
			*to = s
			return nil
		}
		hint := ""
		if near := nearest(s, words); near != "" {
			hint = `did you mean "` + near + `"?`
		}
		return faultf(hint, "%q is not known here: it is one of %s", s, strings.Join(words, ", "))
	}
}

func subset(to *[]string, words ...string) func(any) *fault {
	return func(v any) *fault {
		chosen := []string{} // an empty list is an answer, not a default
		for _, s := range v.([]string) {
			switch {
			case !slices.Contains(words, s):
				return faultf("", "%q is not known here: the list holds any of %s", s, strings.Join(words, ", ")).in(s)
			case slices.Contains(chosen, s):
				return faultf("", "%q is in the list twice", s)
			}
			chosen = append(chosen, s)
		}
		*to = chosen
		return nil
	}
}

const notYet = "%s = %q is not in this version"

func mode(to *string) func(any) *fault {
	known := oneOf(to, "enforce", "observe", "off")
	return func(v any) *fault {
		if f := known(v); f != nil || *to == "enforce" {
			return f
		}
		return faultf(`type mode = "enforce", or leave the line out`, notYet, "mode", v)
	}
}

func store(to *string) func(any) *fault {
	known := oneOf(to, "bolt")
	return func(v any) *fault {
		if s := v.(string); strings.HasPrefix(s, "redis://") || strings.HasPrefix(s, "rediss://") {
			return faultf(`type store = "bolt", or leave the line out`, "store = %s is not in this version",
				`"`+s[:strings.Index(s, "://")]+`://..."`) // the rest may hold a password
		}
		return known(v)
	}
}

// plain takes a name, a path or the like: not empty, and free of characters
// that nobody can see.
func plain(to *string) func(any) *fault {
	return func(v any) *fault {
		s := v.(string)
		if s == "" {
			return faultf("leave the line out instead", "is empty")
		}
		if i := strings.IndexFunc(s, hidden); i >= 0 {
			r := []rune(s[i:])[0]
			if unicode.IsControl(r) { // as a character it would have been refused, so it was written by a backslash
				return faultf(howBackslash, "%s cannot stand here", charName(r))
			}
			return charFault(r).in(string(r))
		}
		*to = s
		return nil
	}
}

func prefixes(to *[]netip.Prefix) func(any) *fault {
	return func(v any) *fault {
		all := v.([]string)
		if len(all) == 0 {
			return faultf("leave the line out to let everybody in", "an empty list would let nobody in")
		}
		var found []netip.Prefix
		for _, s := range all {
			p, err := netip.ParsePrefix(s)
			if err != nil {
				a, err := netip.ParseAddr(s)
				if err != nil || a.Zone() != "" {
					return faultf(`type "192.0.2.10" or "192.0.2.0/24"`, "%q is neither an address nor a network", s).in(s)
				}
				a = a.Unmap()
				p = netip.PrefixFrom(a, a.BitLen())
			}
			found = append(found, p.Masked())
		}
		*to = found
		return nil
	}
}

func stationName(to *string) func(any) *fault {
	return func(v any) *fault {
		s := v.(string)
		if f := plain(to)(s); f != nil {
			return f
		}
		for _, r := range s {
			if !isBare(r) || r == '_' {
				return faultf("a name is made of letters, digits and -", "%q holds %s", s, charName(r))
			}
		}
		if len(s) > 64 {
			return faultf("", "the name is longer than 64 characters")
		}
		return nil
	}
}

const portsHint = "sip2gate ports prints the names that there are, ready to paste"

func device(to *string) func(any) *fault {
	return func(v any) *fault {
		s := v.(string)
		if f := plain(to)(s); f != nil {
			return f
		}
		if !strings.HasPrefix(path.Clean(s), "/dev/") {
			hint := portsHint
			if tty := path.Base(s); strings.HasPrefix(tty, "tty") {
				hint = `type "/dev/` + tty + `"; ` + hint
			}
			return faultf(hint, "%q is not a serial port: those begin with /dev/", s)
		}
		return nil
	}
}

func delimiter(to *byte) func(any) *fault {
	return func(v any) *fault {
		s := v.(string)
		if len(s) != 1 || s[0] <= ' ' || s[0] >= 0x7F || isBare(rune(s[0])) {
			return faultf(`as a rule it is "|"`, "%q cannot be the delimiter: it is one ASCII sign, neither letter nor digit", s)
		}
		*to = s[0]
		return nil
	}
}

func screenLine(to *string) func(any) *fault {
	return func(v any) *fault {
		s := v.(string)
		if strings.TrimSpace(s) == "" {
			return faultf("leave the line out to get the default", "is empty: the patron would see nothing")
		}
		for _, r := range s {
			if r < ' ' || r == 0x7F {
				return faultf("a message is one screen line", "%s cannot stand in a SIP2 message", charName(r))
			}
		}
		*to = s
		return nil
	}
}
