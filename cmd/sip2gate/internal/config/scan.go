package config

import (
	"slices"
	"strings"
	"unicode"
)

// item is one statement of a TOML file: a table header, or a key with its
// value as it was typed. The TOML library gives no place for unknown keys and
// for values of the wrong type, and stops at the first fault; so the file is
// taken apart here and the library reads each value by itself.
type item struct {
	header bool
	array  bool // [[...]]
	path   []string
	at     pos // of the header's bracket or of the key

	value   []rune // as typed, without comments; lists may hold newlines
	valueAt pos
	broken  bool // the value has a fault that is reported already
}

func (it item) name() string { return strings.Join(it.path, ".") }

// find gives the place of text inside the value as typed, or the value's own.
func (it item) find(text string) pos {
	want := []rune(text)
	for i := range it.value {
		if len(want) > 0 && len(it.value)-i >= len(want) && slices.Equal(it.value[i:i+len(want)], want) {
			return it.place(i)
		}
	}
	return it.valueAt
}

// place gives that of the nth character of the value.
func (it item) place(n int) pos {
	at := it.valueAt
	for _, r := range it.value[:n] {
		at.col++
		if r == '\n' {
			at = pos{at.line + 1, 1}
		}
	}
	return at
}

// scanner walks over the lines of a file.
type scanner struct {
	*report
	lines [][]rune
	line  int // index of the current line
	col   int // index in it
}

func scan(lines [][]rune, r *report) []item {
	s := &scanner{report: r, lines: lines}
	var items []item
	for ; s.line < len(s.lines); s.line++ {
		s.col = 0
		if it, ok := s.statement(); ok {
			items = append(items, it)
		}
	}
	return items
}

func (s *scanner) here() pos { return pos{s.line + 1, s.col + 1} }

// peek gives the current character, 0 at the end of the line.
func (s *scanner) peek() rune { return s.ahead(0) }

func (s *scanner) ahead(n int) rune {
	if line := s.lines[s.line]; s.col+n < len(line) {
		return line[s.col+n]
	}
	return 0
}

func (s *scanner) blanks() {
	for ; s.col < len(s.lines[s.line]); s.col++ {
		r := s.peek()
		if r == ' ' || r == '\t' {
			continue
		}
		if _, bad := asBadByte(r); bad || !hidden(r) {
			return
		}
		s.fault(s.here(), charFault(r)) // it looks like a space or like nothing, so take it for that
	}
}

func (s *scanner) fault(at pos, f *fault) { s.add(at, f.text, f.hint) }

const howLinesLook = `a line is  key = value,  [table]  or  # comment`

func (s *scanner) statement() (item, bool) {
	s.blanks()
	switch r := s.peek(); {
	case s.atEnd():
		return item{}, false
	case r == ';', r == '/' && s.ahead(1) == '/':
		s.add(s.here(), "a comment begins with #", "put # in front of the line")
		return item{}, false
	case r == '[':
		return s.tableHeader()
	}
	it := item{at: s.here()}
	if it.path = s.keyPath(); it.path == nil {
		if r := s.peek(); r >= 0x80 {
			s.fault(s.here(), charFault(r))
		} else {
			s.add(s.here(), "this line cannot be read", howLinesLook)
		}
		return item{}, false
	}
	s.blanks()
	switch s.peek() {
	case '=':
	case ':':
		s.add(s.here(), `a key and its value are joined by =, not by :`, "type "+it.name()+" = "+oneLine(strings.Trim(string(s.lines[s.line][s.col+1:]), " \t;,")))
	default:
		if r := s.peek(); r >= 0x80 {
			s.fault(s.here(), charFault(r))
		} else {
			s.add(s.here(), `there is no = after "`+it.name()+`"`, howLinesLook)
		}
		it.broken = true
		return it, true
	}
	s.col++
	s.blanks()
	it.valueAt = s.here()
	s.scanValue(&it)
	return it, true
}

// atEnd is true where nothing but a comment is left of the line.
func (s *scanner) atEnd() bool {
	return s.col >= len(s.lines[s.line]) || s.peek() == '#'
}

func (s *scanner) tableHeader() (item, bool) {
	it := item{header: true, at: s.here()}
	s.col++
	if s.peek() == '[' {
		it.array = true
		s.col++
	}
	s.blanks()
	if it.path = s.keyPath(); it.path == nil {
		if r := s.peek(); r >= 0x80 {
			s.fault(s.here(), charFault(r))
		} else {
			s.add(it.at, "the table has no name", "the tables are "+tableNames())
		}
		return item{}, false
	}
	s.blanks()
	want, got := 1, 0
	if it.array {
		want = 2
	}
	for s.peek() == ']' {
		got++
		s.col++
	}
	s.blanks()
	if got != want || !s.atEnd() {
		s.add(it.at, "the table name is not closed as it was opened", "type "+bracket(it.name(), it.array)+" on a line of its own")
	}
	return it, true
}

func bracket(name string, array bool) string {
	if array {
		return "[[" + name + "]]"
	}
	return "[" + name + "]"
}

// keyPath reads a.b.c, each part bare or in quotes; nil if there is none.
func (s *scanner) keyPath() []string {
	var path []string
	for {
		var part string
		if q := s.peek(); q == '"' || q == '\'' {
			rest := s.lines[s.line][s.col+1:]
			end := slices.Index(rest, q)
			if end < 0 {
				return nil
			}
			part = string(rest[:end])
			s.col += end + 2
		} else {
			start := s.col
			for isBare(s.peek()) {
				s.col++
			}
			part = string(s.lines[s.line][start:s.col])
		}
		if part == "" {
			return nil
		}
		path = append(path, part)
		mark := s.col
		for s.peek() == ' ' || s.peek() == '\t' {
			s.col++
		}
		if s.peek() != '.' {
			s.col = mark
			return path
		}
		s.col++
		for s.peek() == ' ' || s.peek() == '\t' {
			s.col++
		}
	}
}

func isBare(r rune) bool {
	return r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '_' || r == '-'
}

// scanValue finds where a value ends: at the end of its line, or of the line
// that closes its last bracket or its triple quotes.
func (s *scanner) scanValue(it *item) {
	depth := 0
	for {
		s.rest(it, &depth)
		if depth <= 0 || it.broken {
			break
		}
		if s.line+1 == len(s.lines) || startsStatement(s.lines[s.line+1]) {
			s.add(it.valueAt, "the value of "+it.name()+" is not closed with ]", `a list is written ["one", "two"]`)
			it.broken = true
			break
		}
		it.value = append(it.value, '\n')
		s.line++
		s.col = 0
	}
	s.trim(it)
	if len(it.value) == 0 && !it.broken {
		s.add(it.valueAt, it.name()+" has no value", "leave the line out to get the default")
		it.broken = true
	}
}

// trim takes from the end of a value what does not belong to it: blanks, and
// the ; or , with which other kinds of files end a line.
func (s *scanner) trim(it *item) {
	value := strings.TrimRightFunc(string(it.value), unicode.IsSpace)
	short := strings.TrimRightFunc(value, func(r rune) bool { return unicode.IsSpace(r) || r == ';' || r == ',' })
	if short == "" || short == value || it.broken {
		it.value = []rune(short)
		return
	}
	last := string([]rune(value)[len([]rune(short)):])
	sign := strings.TrimSpace(last)[:1]
	at := it.place(len([]rune(short)) + strings.Index(last, sign))
	s.add(at, "a line does not end with "+sign, "delete the "+sign+" at the end")
	it.value = []rune(short)
}

// rest reads the remainder of a line outside of strings, and each string in
// it.
func (s *scanner) rest(it *item, depth *int) {
	for !s.atEnd() {
		r := s.peek()
		switch {
		case r == '"' || r == '\'':
			if !s.text(it, r) {
				return
			}
			continue
		case r == '[' || r == '{':
			*depth++
		case r == ']' || r == '}':
			*depth--
		case r >= 0x80 || r < ' ' && r != '\t':
			s.fault(s.here(), charFault(r))
			it.broken = true
			return
		}
		it.value = append(it.value, r)
		s.col++
	}
}

// text reads one string and says whether it was whole.
func (s *scanner) text(it *item, quote rune) bool {
	open := s.here()
	triple := s.ahead(1) == quote && s.ahead(2) == quote
	width := 1
	if triple {
		width = 3
	}
	take := func(n int) {
		it.value = append(it.value, s.lines[s.line][s.col:s.col+n]...)
		s.col += n
	}
	closes := func() bool {
		return s.peek() == quote && (!triple || s.ahead(1) == quote && s.ahead(2) == quote)
	}
	take(width)
	for !closes() {
		r := s.peek()
		_, bad := asBadByte(r)
		switch {
		case s.col >= len(s.lines[s.line]):
			if !triple || s.line+1 == len(s.lines) {
				s.add(open, "the text is not closed with "+strings.Repeat(string(quote), width), "put the closing quote at the end of the text")
				it.broken = true
				return false
			}
			it.value = append(it.value, '\n')
			s.line++
			s.col = 0
			continue
		case bad || r < ' ' && r != '\t' || r == 0x7F:
			s.fault(s.here(), charFault(r))
			it.broken = true
			return false
		case r == '\\' && quote == '"' && s.ahead(1) != 0:
			take(2)
		default:
			take(1)
		}
	}
	take(width)
	for triple && s.peek() == quote { // up to two quotes may stand before the closing three
		take(1)
	}
	return true
}

// startsStatement tells the next setting from a further line of a list.
func startsStatement(line []rune) bool {
	s := strings.TrimSpace(string(line))
	if name, ok := strings.CutPrefix(strings.TrimPrefix(s, "["), "["); ok || name != s {
		return name != "" && isBare(rune(name[0]))
	}
	name, _, ok := strings.Cut(s, "=")
	name = strings.TrimSpace(name)
	return ok && name != "" && strings.IndexFunc(name, func(r rune) bool { return !isBare(r) }) < 0
}
