package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"sip2gate/serialbridge/sip2"
)

// framesIn finds the frames in a piece of text as people have it: a bare
// frame, one with its control characters written as \r, \x0D or <CR>, or a line
// of a log with a frame somewhere in it. Without any it gives all of the text.
func (d decoder) framesIn(text string) [][]byte {
	text = asEscapes.Replace(text)
	if frames := d.pasted(text); frames != nil {
		return frames
	}
	return d.split(unescape(text))
}

// asEscapes writes the names that terminals and serial monitors give to the
// ends of lines as escapes.
var asEscapes = strings.NewReplacer("<CR>", `\r`, "<cr>", `\r`, "[CR]", `\r`, "\u240d", `\r`,
	"<LF>", `\n`, "<lf>", `\n`, "[LF]", `\n`, "\u240a", `\n`)

// pasted is framesIn for text that holds what is plausibly a frame; else nil.
func (d decoder) pasted(text string) [][]byte {
	if frames := d.split(unescape(text)); len(frames) > 0 && d.plausible(frames[0]) {
		return frames
	}
	for i := 1; i+1 < len(text); i++ {
		if !isDigit(text[i]) || !isDigit(text[i+1]) || isAlnum(text[i-1]) && text[i-1] != 'n' && text[i-1] != 'r' {
			continue // \r and \n in front end in a letter
		}
		rest := text[i:]
		if q := text[i-1]; strings.IndexByte("\"'`", q) >= 0 {
			rest = untilQuote(rest, q)
		}
		if frames := d.split(unescape(rest)); len(frames) > 0 && d.plausible(frames[0]) {
			return frames
		}
	}
	return nil
}

// split cuts unescaped text into frames, as a station's port does.
func (d decoder) split(text []byte) [][]byte {
	s := sip2.NewScanner(sip2.TerminatorAuto)
	s.Write(bytes.ReplaceAll(text, []byte("\n"), []byte("\r")))
	s.Write([]byte("\r"))
	var frames [][]byte
	for {
		f, ok := s.Next()
		if !ok {
			return frames
		}
		f = d.withoutQuote(bytes.TrimRight(f, " \t"))
		if len(f) > 0 {
			frames = append(frames, bytes.Clone(f))
		}
	}
}

// withoutQuote takes away quotes that were copied along behind a whole frame.
func (d decoder) withoutQuote(frame []byte) []byte {
	short := bytes.TrimRight(frame, "\"' \t,;")
	if len(short) < len(frame) && (sip2.ReadTrailer(short).Present || bytes.HasSuffix(short, []byte{d.delim})) {
		return short
	}
	return frame
}

// eventIn gives the name of the event if text is a line of the gate's own log,
// in either of its forms; else it is empty. No such line holds a frame.
func eventIn(text string) string {
	var e struct{ Time, Level, Msg string }
	if json.Unmarshal([]byte(text), &e) == nil && e.Time != "" && e.Level != "" && eventName.MatchString(e.Msg) {
		return e.Msg
	}
	if m := textEvent.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

var (
	eventName = regexp.MustCompile(`^[a-z0-9_]+$`)
	textEvent = regexp.MustCompile(`^time=\S+ level=[A-Z]+ msg=([a-z0-9_]+)`)
)

// plausible tells a frame from two digits in the middle of a log line: what it
// must have at a fixed place is there.
func (d decoder) plausible(frame []byte) bool {
	m := sip2.ParseAnswer(frame, d.delim)
	if !m.Known() || m.Short() {
		return false
	}
	for _, f := range sip2.FixedFields(m.Code) {
		v := string(m.Fixed(f.Name))
		switch f.Name {
		case "transaction_date", "date_time_sync":
			if _, ok := readDate(v); !ok {
				return false
			}
		case "protocol_version":
			if v[1] != '.' {
				return false
			}
		}
	}
	switch m.Code {
	case sip2.CodeLogin:
		_, ok := m.Field("CN")
		return ok
	case sip2.CodeLoginResponse:
		return m.Trailer.Start <= 4 || m.Trailer.Present
	case sip2.CodeRequestSCResend, sip2.CodeRequestACSResend:
		return m.Trailer.Start == 2
	}
	return true
}

// untilQuote gives s up to the first quote that no backslash stands before.
func untilQuote(s string, quote byte) string {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case quote:
			return s[:i]
		}
	}
	return s
}

// unescape turns \r, \n, \t, \" and \xNN into what they stand for. Any other
// backslash is itself: it may be part of a title.
func unescape(s string) []byte {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			continue
		}
		switch next := s[i+1]; next {
		case 'r':
			out = append(out, '\r')
			i++
		case 'n':
			out = append(out, '\n')
			i++
		case 't':
			out = append(out, '\t')
			i++
		case '"':
			out = append(out, '"')
			i++
		case 'x':
			if i+4 <= len(s) {
				if b, err := strconv.ParseUint(s[i+2:i+4], 16, 8); err == nil {
					out = append(out, byte(b))
					i += 3
					continue
				}
			}
			out = append(out, '\\')
		default:
			out = append(out, '\\')
		}
	}
	return out
}

// splitLines cuts at CR, LF or both, so that a capture of a line can be piped
// in as it is.
func splitLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexAny(data, "\r\n"); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func isAlnum(b byte) bool {
	return isDigit(b) || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
