package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"sip2gate/serialbridge/sip2"
)

// runDecode says in words what frames mean. The frames come as arguments or,
// without any, as lines of standard input.
func runDecode(_ context.Context, t *terminal, args []string) int {
	flags := t.flags()
	asJSON := flags.Bool("json", false, "print one JSON object for each frame")
	secrets := flags.Bool("show-secrets", false, "show patrons and passwords, not only their lengths")
	delim := flags.String("delimiter", "|", "the delimiter of the fields")
	texts, code, ok := t.parse(flags, args, 0, -1)
	if !ok {
		return code
	}
	if len(*delim) != 1 {
		t.complain(fmt.Sprintf("--delimiter %q is not one character", *delim), "")
		return exitUsage
	}
	d := decoder{delim: (*delim)[0], secrets: *secrets}
	frames, bad := 0, 0
	each := func(text string) {
		for _, f := range d.decodeAll(text) {
			frames++
			if !f.OK {
				bad++
			}
			if *asJSON {
				t.json(f)
				continue
			}
			if frames > 1 {
				fmt.Fprintln(t.out)
			}
			f.print(t)
		}
	}
	for _, text := range texts {
		each(text)
	}
	if len(texts) == 0 {
		lines := bufio.NewScanner(t.in)
		lines.Buffer(nil, 1<<20)
		lines.Split(splitLines)
		for lines.Scan() {
			each(lines.Text())
		}
		if err := lines.Err(); err != nil {
			t.complain("read the frames: "+err.Error(), "")
			return exitUnwell
		}
	}
	if frames == 0 {
		t.complain("there is no frame", `give one in quotes, such as '9900302.00', or a file by <`)
		return exitUnwell
	}
	if bad > 0 {
		return exitUnwell
	}
	return exitOK
}

// decodedFrame is a frame in words.
type decodedFrame struct {
	Event    string         `json:"event,omitempty"` // of a line of the gate's log, which is no frame
	Code     string         `json:"code,omitempty"`
	Name     string         `json:"name,omitempty"`
	Fixed    []decodedField `json:"fixed,omitempty"`
	Fields   []decodedField `json:"fields,omitempty"`
	Sequence string         `json:"sequence,omitempty"`
	Checksum *checksum      `json:"checksum,omitempty"` // nil if the frame has none
	Notes    []string       `json:"notes,omitempty"`
	OK       bool           `json:"ok"` // a whole SIP2 frame without a wrong checksum
}

// decodedField is one field. A hidden one has a length and no value.
type decodedField struct {
	ID     string `json:"id,omitempty"` // empty in the fixed part
	Name   string `json:"name,omitempty"`
	Value  string `json:"value"`
	Means  string `json:"means,omitempty"`
	Hidden bool   `json:"hidden,omitempty"`
	Length int    `json:"length"` // in bytes
}

type checksum struct {
	Written string `json:"written"`
	Right   string `json:"right"`
	OK      bool   `json:"ok"`
}

// decoder decodes frames of one delimiter.
type decoder struct {
	delim   byte
	secrets bool
}

// decodeAll decodes what is in one text: one frame as a rule.
func (d decoder) decodeAll(text string) (all []decodedFrame) {
	// Two digits and a Y or N stand in many a log line, delimiters in none of ours.
	if event := eventIn(strings.TrimSpace(text)); event != "" && strings.IndexByte(text, d.delim) < 0 {
		return []decodedFrame{{Event: event, Notes: []string{
			"a line of the gate's log holds no frame: it never writes down what a patron's card says"}}}
	}
	for _, raw := range d.framesIn(text) {
		all = append(all, d.decode(raw))
	}
	return all
}

func (d decoder) decode(raw []byte) decodedFrame {
	m := sip2.ParseAnswer(raw, d.delim)
	f := decodedFrame{Code: m.Code.String(), Name: m.Code.Name(), OK: true}
	note := func(format string, args ...any) { f.Notes = append(f.Notes, fmt.Sprintf(format, args...)) }
	for s := range m.Segments() {
		switch s.Part {
		case sip2.PartFixed:
			f.Fixed = append(f.Fixed, decodedField{Name: s.Fixed.Name, Value: string(s.Value),
				Means: meaning(s.Fixed, string(s.Value)), Length: len(s.Value)})
		case sip2.PartCut:
			note("%s has %d of its %d characters", s.Fixed.Name, len(s.Value), s.Fixed.Len)
		case sip2.PartField:
			f.Fields = append(f.Fields, d.field(&m, s))
		case sip2.PartEmpty:
			note("a delimiter without a field")
		case sip2.PartOpaque:
			rest := decodedField{Name: "text", Value: string(s.Value), Length: len(s.Value)}
			f.Fields = append(f.Fields, d.hide(rest, true))
		}
	}
	if m.MissingDueDate() {
		note("nb due date, 18 characters, is left out before the fields")
	}
	switch {
	case !m.IsFrame():
		f.OK = false
		note("this is no SIP2 frame: it does not begin with a message code")
	case !m.Known():
		note("SIP2 2.00 has no message %s", m.Code)
	case m.Short():
		f.OK = false
		note("the fixed part is cut: bytes of the frame are missing")
	}
	d.trailer(&f, &m)
	return f
}

func (d decoder) trailer(f *decodedFrame, m *sip2.Message) {
	t := m.Trailer
	if t.HasSeq {
		f.Sequence = string(t.Seq)
	}
	if !t.Present {
		return
	}
	f.Checksum = &checksum{
		Written: string(m.Raw[len(m.Raw)-t.Digits:]),
		Right:   fmt.Sprintf("%04X", sip2.Sum(m.Raw[:len(m.Raw)-t.Digits])),
		OK:      t.Valid,
	}
	f.OK = f.OK && t.Valid
	if !t.Valid && sip2.NonASCII(m.Raw) {
		f.Notes = append(f.Notes, "the frame has characters beyond ASCII: some systems add up characters where bytes are meant")
	}
}

func (d decoder) field(m *sip2.Message, s sip2.Segment) decodedField {
	id := s.ID.String()
	f := decodedField{ID: id, Name: sip2.FieldName(id), Value: string(s.Value), Length: len(s.Value)}
	return d.hide(f, isSecret(id) || holdsSecret(id, f.Value))
}

func (d decoder) hide(f decodedField, secret bool) decodedField {
	if secret && !d.secrets && f.Length > 0 {
		f.Value, f.Hidden = "", true
	}
	return f
}

// isSecret tells the fields of a person or a password: what somebody who looks
// for a fault in a line does not need to see, and may not leave in a ticket.
func isSecret(id string) bool {
	switch id {
	case "AA", "AC", "AD", "AE", "BD", "BE", "BF", "CO", "CY", "DA":
		return true
	}
	return false
}

// holdsSecret tells a value into which a person's field has run, because its
// delimiter was lost or is another one. Free text, in which the same letters
// are words, is told by its length alone.
func holdsSecret(id, value string) bool {
	const longText = 128
	if len(value) > longText {
		return !strings.Contains("AF AG AH AJ", id)
	}
	if id != "AO" && id != "AB" && id != "CP" {
		return false
	}
	for _, secret := range []string{"AA", "AC", "AD", "AE", "CO"} {
		if strings.Contains(value, secret) {
			return true
		}
	}
	return false
}

// meaning picks what a coded value of the fixed part says, or tells what may
// stand there.
func meaning(f sip2.FixedField, value string) string {
	if date, ok := readDate(value); ok {
		return date
	}
	for part := range strings.SplitSeq(strings.ReplaceAll(f.What, "; ", ", "), ", ") {
		for _, sep := range []string{" ", ": "} {
			if rest, ok := strings.CutPrefix(part, value+sep); ok && rest != "or N" {
				return rest
			}
		}
	}
	return f.What
}

// readDate gives the 18 characters YYYYMMDDZZZZHHMMSS as people write them.
func readDate(s string) (string, bool) {
	if len(s) != 18 {
		return "", false
	}
	if strings.TrimSpace(s) == "" || strings.Trim(s, "0") == "" {
		return "no date", true
	}
	if strings.Trim(s[:8]+s[12:], "0123456789") != "" {
		return "", false
	}
	zone := strings.TrimSpace(s[8:12])
	switch zone {
	case "":
		zone = "local time"
	case "Z":
		zone = "UTC"
	default:
		zone = fmt.Sprintf("zone %q", zone)
	}
	return fmt.Sprintf("%s-%s-%s %s:%s:%s %s", s[:4], s[4:6], s[6:8], s[12:14], s[14:16], s[16:], zone), true
}

func (f decodedFrame) print(t *terminal) {
	switch {
	case f.Event != "":
		fmt.Fprintf(t.out, "the event %s of the gate's log, no frame\n", f.Event)
		f.printNotes(t)
		return
	case f.Name != "":
		fmt.Fprintf(t.out, "%s %s\n", f.Code, f.Name)
	case f.Code != "":
		fmt.Fprintf(t.out, "%s, an unknown message\n", f.Code)
	default:
		fmt.Fprintln(t.out, "no SIP2 frame")
	}
	table := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	row := func(id, name, value, means string) {
		if id == "" {
			id = "--" // a field of the fixed part has a place instead
		}
		if means != "" {
			value += "\t" + means
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\n", id, strings.ReplaceAll(name, "_", " "), value)
	}
	for _, x := range slices.Concat(f.Fixed, f.Fields) {
		value := strconv.Quote(x.Value)
		if x.Hidden {
			value = fmt.Sprintf("(%d bytes, hidden)", x.Length)
		}
		row(x.ID, x.Name, value, x.Means)
	}
	if f.Sequence != "" {
		row("AY", "sequence number", f.Sequence, "")
	}
	switch c := f.Checksum; {
	case c == nil:
		row("AZ", "checksum", "none", "")
	case c.OK:
		row("AZ", "checksum", c.Written, "right")
	default:
		row("AZ", "checksum", c.Written, "WRONG, right is "+c.Right)
	}
	table.Flush()
	f.printNotes(t)
}

func (f decodedFrame) printNotes(t *terminal) {
	for _, n := range f.Notes {
		fmt.Fprintf(t.out, "  note: %s\n", n)
	}
}
