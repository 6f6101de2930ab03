package config

import (
	"cmp"
	"fmt"
	"slices"
)

// A Problem is one thing wrong with a file, or, as a warning, one thing in it
// that works but is probably not meant.
type Problem struct {
	File    string `json:"file"` // as the caller named it
	Line    int    `json:"line"` // from 1; 0 only when the file could not be read at all
	Col     int    `json:"col"`  // in characters from 1
	Text    string `json:"text"`
	Hint    string `json:"hint,omitempty"` // what to do about it
	Warning bool   `json:"warning,omitempty"`
}

// String gives FILE:LINE:COL: what is wrong, and the hint on an indented line
// of its own. There is no newline at the end.
func (p Problem) String() string {
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprintf(":%d:%d", p.Line, p.Col)
	}
	s += ": "
	if p.Warning {
		s += "warning: "
	}
	s += p.Text
	if p.Hint != "" {
		s += "\n    " + p.Hint
	}
	return s
}

// Failed says whether any of the problems is more than a warning.
func Failed(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning })
}

// pos is a place in the file: line and column in characters, from 1.
type pos struct{ line, col int }

func (p pos) String() string { return fmt.Sprintf("%d:%d", p.line, p.col) }

func (p pos) compare(q pos) int {
	return cmp.Or(cmp.Compare(p.line, q.line), cmp.Compare(p.col, q.col))
}

// fault is what is wrong with a value, before its place is known.
type fault struct {
	text, hint string
	part       string // the piece of the value that is at fault, if not all of it
}

func faultf(hint, format string, args ...any) *fault {
	return &fault{text: fmt.Sprintf(format, args...), hint: hint}
}

// in names the piece of the value that is at fault.
func (f *fault) in(part string) *fault {
	f.part = part
	return f
}

// report collects the problems of one file.
type report struct {
	file     string
	problems []Problem
}

func (r *report) add(at pos, text, hint string) {
	r.problems = append(r.problems, Problem{File: r.file, Line: at.line, Col: at.col, Text: text, Hint: hint})
}

func (r *report) warn(at pos, text, hint string) {
	r.add(at, text, hint)
	r.problems[len(r.problems)-1].Warning = true
}

// at says a second place in the same file, for problems that join two.
func (r *report) at(p pos) string { return r.file + ":" + p.String() }

// sorted gives the problems in file order.
func (r *report) sorted() []Problem {
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		return pos{a.Line, a.Col}.compare(pos{b.Line, b.Col})
	})
	return r.problems
}
