package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// event is a line of the log.
type event map[string]any

func (e event) name() string { s, _ := e["msg"].(string); return s }

func (e event) text(field string) string { s, _ := e[field].(string); return s }

// processLog keeps all that the runs of one gate write, and wakes those who
// wait for an event.
type processLog struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced with each line
	all     bytes.Buffer
	lines   []string
	rest    []byte
}

func newProcessLog() *processLog { return &processLog{changed: make(chan struct{})} }

// Write takes in what the process writes.
func (l *processLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Write(p)
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			break
		}
		l.lines = append(l.lines, string(line))
		l.rest = bytes.Clone(rest)
	}
	close(l.changed)
	l.changed = make(chan struct{})
	return len(p), nil
}

// wake lets those who wait look again: the process has ended.
func (l *processLog) wake() { _, _ = l.Write(nil) }

func (l *processLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func (l *processLog) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lines)
}

// after are the lines from a point on.
func (l *processLog) after(mark int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines[mark:]...)
}

// events are the events of one name from a point on, with the given fields
// (name and value in turn).
func (l *processLog) events(mark int, name string, fields ...any) []event {
	var found []event
	for _, line := range l.after(mark) {
		var e event
		if json.Unmarshal([]byte(line), &e) == nil && e.name() == name && e.has(fields) {
			found = append(found, e)
		}
	}
	return found
}

func (e event) has(fields []any) bool {
	for i := 0; i+1 < len(fields); i += 2 {
		if fmt.Sprint(e[fmt.Sprint(fields[i])]) != fmt.Sprint(fields[i+1]) {
			return false
		}
	}
	return true
}

// await waits for an event from a point of the log on.
func (l *processLog) await(mark int, limit time.Duration, name string, fields ...any) (event, bool) {
	var found []event
	ok := l.awaitAny(limit, func() bool {
		found = l.events(mark, name, fields...)
		return len(found) > 0
	})
	if !ok {
		return nil, false
	}
	return found[0], true
}

// awaitAny waits until ok is true, which it looks at after each change.
func (l *processLog) awaitAny(limit time.Duration, ok func() bool) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		if ok() {
			return true
		}
		select {
		case <-changed:
		case <-timer.C:
			return false
		}
	}
}

// Whoever and whatever may stand in no log line and no file of the state
// folder. The e2e tests use no other patrons, PINs, passwords, names and
// titles than these (PINs so long that chance does not make them).
const (
	reader1, reader2 = "B1029384756", "B5647382910"
	pin1, pin2       = "48151623", "42108642"
	name1, name2     = "Wilhelmina Vogelsang", "Ottokar Unverzagt"
	mail1            = "wilhelmina@vogelsang.example"
	title1           = "The Long Rain of Ystad"
	password1        = "s3cret-kiosk-pw"
	password2        = "wr0ng-kiosk-pw"
)

var secrets = []string{
	reader1, reader2, pin1, pin2, "Wilhelmina", "Vogelsang", "Ottokar", "Unverzagt", mail1,
	title1, "Ystad", password1, password2, "Title of", "Reader ",
}

// leaks names the secrets that stand in b, in clear.
func leaks(b []byte) []string {
	var found []string
	for _, s := range secrets {
		if bytes.Contains(b, []byte(s)) {
			found = append(found, s)
		}
	}
	return found
}

// noPatron searches the log and every file that the gate has made.
func (g *gateProcess) noPatron() {
	g.t.Helper()
	for line := range strings.Lines(g.log.String()) {
		if found := leaks([]byte(line)); found != nil {
			g.t.Errorf("the log shows %q: %s", found, line)
		}
	}
	err := filepath.WalkDir(g.state(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if found := leaks(data); found != nil {
			g.t.Errorf("%s shows %q", d.Name(), found)
		}
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		g.t.Error(err)
	}
}
