package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxFile bounds the size of a file, in bytes. A file of a hundred stations
// has less than a tenth of it.
const maxFile = 1 << 20

// ReadFile reads and checks the file at path. The Config is nil if Failed is
// true of the problems; without problems the slice is empty.
func ReadFile(path string) (*Config, []Problem) {
	data, err := readBounded(path)
	if err != nil {
		hint := ""
		if _, twin := os.Stat(path + ".txt"); errors.Is(err, fs.ErrNotExist) && twin == nil {
			hint = "there is " + path + ".txt: the editor has added .txt; rename it"
		}
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err // the path is said once
		}
		return nil, []Problem{{File: path, Text: "cannot be read: " + err.Error(), Hint: hint}}
	}
	return Load(path, data)
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = errors.New("it is larger than 1 MiB, so it is no settings file")
	}
	return data, err
}

// Load checks a file's content. name is the file's path: it stands in front of
// each problem, and relative paths in the file are relative to its folder. The
// files and devices named by the settings are looked at, not kept open. The
// Config is nil if Failed is true of the problems, which are in file order,
// each with a line.
func Load(name string, data []byte) (*Config, []Problem) {
	l := &loader{
		report: &report{file: name},
		c:      defaults(),
		seen:   map[place]item{},
		bad:    map[place]bool{},
		opened: map[string]pos{},
	}
	items := scan(lines(data), l.report)
	l.empty = len(items) == 0
	for _, it := range items {
		if it.header {
			l.open(it)
		} else {
			l.statement(it)
		}
	}
	l.finish(filepath.Dir(name))
	l.check()
	if problems := l.sorted(); Failed(problems) {
		return nil, problems
	}
	return l.c, l.problems
}

// place names a setting: station counts the [[station]] tables and is 0
// elsewhere.
type place struct {
	table   string
	station int
	key     string
}

// loader turns the statements of a file into a Config.
type loader struct {
	*report
	c        *Config
	empty    bool
	seen     map[place]item // every setting met, well or not
	bad      map[place]bool // those whose value could not be taken
	opened   map[string]pos // the first header of each table
	stations []pos          // the header of each station

	// The table that the next keys belong to.
	table  string // empty before the first header, and under an unknown one
	inside bool   // a header has been met
	fields []field
}

func (l *loader) open(it item) {
	l.inside, l.table, l.fields = true, "", nil
	name := it.name()
	known := knownTables()
	if !slices.Contains(known, name) {
		near := ""
		if len(it.path) == 1 {
			near = nearest(name, known)
		}
		hint := "the tables are " + tableNames()
		if near != "" {
			hint = "did you mean " + bracket(near, isArray(near)) + "?"
		}
		l.add(it.at, "unknown table "+bracket(name, it.array), hint)
		if near == "" {
			return
		}
		name = near // its keys are looked at all the same
	} else if array := isArray(name); it.array != array {
		hint := "there is one " + bracket(name, false) + " in a file"
		if array {
			hint = "each kiosk or port has a [[station]] of its own"
		}
		l.add(it.at, bracket(name, it.array)+" must be "+bracket(name, array), hint)
	}
	l.enter(name, it.at)
}

// enter makes a known table the one that the next keys belong to.
func (l *loader) enter(name string, at pos) {
	l.table = name
	if isArray(name) {
		l.stations = append(l.stations, at)
		l.c.Stations = append(l.c.Stations, defaultStation())
	} else if first, twice := l.opened[name]; twice {
		l.add(at, fmt.Sprintf("[%s] stands here again, first at %s", name, l.at(first)), "put its keys under the first one")
	}
	if _, ok := l.opened[name]; !ok {
		l.opened[name] = at
	}
	l.fields = l.bind(name)
}

func (l *loader) bind(table string) []field {
	switch table {
	case "gate":
		return gateFields(&l.c.Gate)
	case "ils":
		return ilsFields(&l.c.ILS)
	case "station":
		return stationFields(&l.c.Stations[len(l.c.Stations)-1])
	case "messages":
		return messageFields(&l.c.Messages)
	case "status":
		return statusFields(&l.c.Status)
	default:
		return logFields(&l.c.Log)
	}
}

func knownTables() []string {
	var all []string
	for _, t := range tables {
		all = append(all, t.name)
	}
	return all
}

func isArray(table string) bool { return table == "station" }

// statement takes one key. The other ways that TOML has of writing a table,
// gate.window = ... and gate = { window = ... }, are taken before the first
// header, where they mean the same.
func (l *loader) statement(it item) {
	switch {
	case l.inside && l.table == "":
		// Under an unknown table; that has been said.
	case l.inside:
		l.assign(it)
	case slices.Contains(knownTables(), it.path[0]) && len(it.path) > 1 && !isArray(it.path[0]):
		l.table, l.fields = it.path[0], l.bind(it.path[0])
		it.path = it.path[1:]
		l.assign(it)
	case slices.Contains(knownTables(), it.name()):
		l.inline(it)
	default:
		l.unknown(it, nil)
	}
}

// inline takes a table written as a value.
func (l *loader) inline(it item) {
	name := it.name()
	if it.broken {
		return
	}
	v, f := it.decode(name, aList)
	if f != nil {
		l.fault(it, f)
		return
	}
	var all []map[string]any
	switch v := v.(type) {
	case map[string]any:
		all = append(all, v)
	case []map[string]any:
		all = v
	case []any: // an empty list, or one of other things
		for _, e := range v {
			if m, ok := e.(map[string]any); ok {
				all = append(all, m)
			}
		}
	}
	if len(all) == 0 || len(all) > 1 && !isArray(name) {
		l.add(it.at, name+" is a table, not a value", "type "+bracket(name, isArray(name))+" on a line of its own, and its keys below")
		return
	}
	for _, m := range all {
		l.enter(name, it.at)
		for _, key := range slices.Sorted(maps.Keys(m)) {
			part := it
			part.path = []string{key}
			l.take(part, m[key])
		}
	}
	l.table = ""
}

// assign reads a key's value and puts it where it belongs.
func (l *loader) assign(it item) {
	f := l.field(it)
	if f == nil || it.broken {
		return
	}
	v, wrong := it.decode(f.name, f.kind)
	if wrong != nil {
		l.spoil(it, wrong)
		return
	}
	l.set(it, f, v)
}

// take is assign for a value that is read already.
func (l *loader) take(it item, v any) {
	if f := l.field(it); f != nil {
		l.set(it, f, v)
	}
}

// field finds a key of the present table and notes that it has been met. It is
// nil for an unknown key and for one met before.
func (l *loader) field(it item) *field {
	i := slices.IndexFunc(l.fields, func(f field) bool { return f.name == it.name() })
	if i < 0 {
		l.unknown(it, names(l.fields))
		return nil
	}
	p := l.place(it.name())
	if first, twice := l.seen[p]; twice && first.path != nil {
		l.add(it.at, fmt.Sprintf("%s is set twice, first at %s", p.key, l.at(first.at)), "delete one of the two lines")
		return nil
	}
	l.seen[p] = it
	l.bad[p] = it.broken
	return &l.fields[i]
}

func (l *loader) set(it item, f *field, v any) {
	value, wrong := f.convert(v, it)
	if wrong == nil {
		wrong = f.set(value)
		if wrong != nil && !strings.Contains(wrong.text, f.name) {
			wrong.text = f.name + ": " + wrong.text
		}
	}
	if wrong != nil {
		l.spoil(it, wrong)
	}
}

// spoil reports a value that could not be taken.
func (l *loader) spoil(it item, f *fault) {
	l.bad[l.place(it.name())] = true
	l.fault(it, f)
}

func (l *loader) fault(it item, f *fault) { l.add(it.find(f.part), f.text, f.hint) }

func (l *loader) place(key string) place {
	p := place{table: l.table, key: key}
	if isArray(l.table) {
		p.station = len(l.stations) - 1
	}
	return p
}

// unknown reports a key that the present table does not have. Where it is
// plain which one was meant, that one is not reported as missing later.
func (l *loader) unknown(it item, known []string) {
	if it.valueAt.line == 0 {
		return // a word without = is no key, and has been reported
	}
	name := it.name()
	text := fmt.Sprintf("unknown key %q", name)
	if l.table != "" {
		text += " in " + bracket(l.table, isArray(l.table))
	}
	near := nearest(name, known)
	home := homeOf(name)
	hint := "keys stand below a table: " + tableNames()
	if l.table == "" && home == "" {
		if near = nearest(name, allKeys()); near != "" {
			home = homeOf(near)
		}
	}
	switch {
	case l.table == "" && home != "":
		hint = fmt.Sprintf("type %s below %s", cmp.Or(near, name), bracket(home, isArray(home)))
		if !isArray(home) {
			l.presume(place{table: home, key: cmp.Or(near, name)}, it)
		}
	case near != "" && (home == "" || squeeze(strings.ToLower(name)) == squeeze(near)):
		hint = fmt.Sprintf("did you mean %q?", near)
		l.presume(l.place(near), it)
	case home != "":
		hint = fmt.Sprintf("%s belongs under %s", name, bracket(home, isArray(home)))
		if !isArray(home) {
			l.presume(place{table: home, key: name}, it)
		}
	case len(known) > 0:
		hint = "the keys here are " + strings.Join(known, ", ")
	}
	l.add(it.at, text, hint)
}

// presume takes a setting for one that was meant elsewhere or otherwise.
func (l *loader) presume(p place, it item) {
	if _, ok := l.seen[p]; !ok {
		it.path = nil // no name, so that the right one is not its repetition
		l.seen[p], l.bad[p] = it, true
	}
}

func allKeys() []string {
	var all []string
	for _, t := range tables {
		all = append(all, t.keys...)
	}
	return all
}

// homeOf gives the first table that has a key.
func homeOf(key string) string {
	for _, t := range tables {
		if slices.Contains(t.keys, key) {
			return t.name
		}
	}
	return ""
}

// finish resolves what depends on other settings.
func (l *loader) finish(dir string) {
	g, i := &l.c.Gate, &l.c.ILS
	for _, path := range []*string{&g.StateDir, &g.SecretFile, &i.CAFile, &i.LoginPasswordFile} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
	if g.SecretFile == "" {
		g.SecretFile = filepath.Join(g.StateDir, "secret")
	}
}
