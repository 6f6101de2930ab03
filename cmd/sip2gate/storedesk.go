package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sip2gate/cmd/sip2gate/internal/config"
	"sip2gate/cmd/sip2gate/internal/control"
	"sip2gate/dedup"
	"sip2gate/dedup/bolt"
)

// desk answers what staff ask of a gate: over the control socket of a running
// one, or directly where the gate is stopped and a command has its store.
type desk struct {
	gate    *dedup.Gate
	disk    *bolt.Store // nil while records are kept in memory only
	secrets *secretKeeper
	dir     string // the state folder
	path    string // of the store
	log     *slog.Logger
	server  *control.Server
}

func newDesk(c *config.Config, g *openedGate, log *slog.Logger) *desk {
	return &desk{gate: g.Gate, disk: g.disk, secrets: g.secrets, dir: c.Gate.StateDir, path: storePath(c), log: log}
}

// open begins to answer; close ends it, before the store is closed.
func (d *desk) open() (err error) {
	d.server, err = control.Listen(d.dir, d.answer)
	return err
}

func (d *desk) close() {
	if d.server == nil {
		return
	}
	if err := d.server.Close(); err != nil {
		d.log.Warn("control_not_closed", "error", err.Error())
	}
}

// The commands of the control socket.
const (
	askList    = "store list"
	askResolve = "store resolve"
	askForget  = "store forget"
	askStats   = "store stats"
	askCheck   = "store check"
	askCompact = "store compact"
	askRotate  = "secret rotate"
)

func (d *desk) answer(ctx context.Context, r control.Request) (any, error) {
	switch r.Command {
	case askList:
		return d.list(), nil
	case askResolve:
		return d.resolve(ctx, r.Name, r.Lent)
	case askForget:
		return d.forget(ctx, r.Name)
	case askStats:
		return d.stats(), nil
	case askCheck:
		return d.check(ctx)
	case askCompact:
		return d.compact(ctx)
	case askRotate:
		if err := d.secrets.rotate(ctx, d.gate); err != nil {
			return nil, err
		}
		return rotated{Former: d.gate.FormerSecrets()}, nil
	}
	return nil, &control.Error{Text: fmt.Sprintf("the running gate does not know the command %q", r.Command), Hint: "use the sip2gate that the gate runs"}
}

// book is one line of the list for staff.
type book struct {
	ID          string `json:"id"`
	Why         string `json:"why"` // "unconfirmed", "kiosk_said_no"
	Item        string `json:"item"`
	Institution string `json:"institution"`
	Station     string `json:"station"`
	Since       string `json:"since"` // RFC 3339, or "unknown"
	AgeSeconds  int    `json:"age_s"`
	// WaitSeconds is how long it is too early to say that it was not lent.
	WaitSeconds int `json:"wait_s"`
}

const (
	whyUnconfirmed = "unconfirmed"
	whyUnheard     = "kiosk_said_no"
)

type bookList struct {
	Books []book `json:"books"`
	More  int    `json:"more"` // that did not fit
	// Degraded says why not all may be in it; empty if all is well.
	Degraded string `json:"degraded,omitempty"`
	// Stopped: this is how things stood when the gate stopped.
	Stopped bool `json:"stopped,omitempty"`
}

// mostBooks bounds a list: whoever has more to check has another problem.
const mostBooks = 500

func (d *desk) list() bookList {
	l := bookList{Books: []book{}}
	if h := d.gate.Store().Health(); !h.Durable {
		l.Degraded = h.Why
	}
	for _, c := range d.gate.Cases() {
		switch {
		case c.Concern == dedup.StaffLent:
		case len(l.Books) == mostBooks:
			l.More++
		default:
			l.Books = append(l.Books, bookOf(&c))
		}
	}
	return l
}

func bookOf(c *dedup.Case) book {
	b := book{
		ID: c.ID, Why: whyUnconfirmed, Item: c.Record.Label, Institution: c.Record.Scope, Station: c.Record.Station,
		Since: "unknown", AgeSeconds: int(c.Age / time.Second), WaitSeconds: dedup.Seconds(c.Wait),
	}
	if c.Concern == dedup.Unheard {
		b.Why = whyUnheard
	}
	if c.Record.Since > 0 {
		b.Since = time.Unix(c.Record.Since, 0).Format(time.RFC3339)
	}
	return b
}

// decided is what was done about one book.
type decided struct {
	ID      string `json:"id"`
	Item    string `json:"item"`
	Outcome string `json:"outcome"` // "lent", "not_lent", "forgotten"
}

func (d *desk) resolve(ctx context.Context, name string, lent bool) (any, error) {
	c, err := d.named(name)
	if err != nil {
		return nil, err
	}
	done := decided{c.ID, c.Record.Label, "not_lent"}
	said := "not lent"
	if lent {
		done.Outcome, said = "lent", "lent"
	}
	if err := d.refusal(d.gate.Resolve(ctx, c.Record, lent), &c); err != nil {
		return nil, err
	}
	d.tell("checkout_settled", &c, "outcome", said)
	return done, nil
}

func (d *desk) forget(ctx context.Context, name string) (any, error) {
	c, err := d.named(name)
	if err != nil {
		return nil, err
	}
	if err := d.refusal(d.gate.Forget(ctx, c.Record), &c); err != nil {
		return nil, err
	}
	d.tell("checkout_forgotten", &c)
	return decided{c.ID, c.Record.Label, "forgotten"}, nil
}

func (d *desk) tell(event string, c *dedup.Case, more ...any) {
	d.log.Info(event, append([]any{"dedup_key", dedup.KeyString(c.Record.Key), "institution", c.Record.Scope,
		"item", c.Record.Label, "station", c.Record.Station, "by", "staff"}, more...)...)
}

// named finds the one book that staff mean.
func (d *desk) named(name string) (dedup.Case, error) {
	found := d.gate.Named(name)
	switch len(found) {
	case 0:
		return dedup.Case{}, &control.Error{
			Text: fmt.Sprintf("there is no book to check by the number %q", name),
			Hint: "sip2gate store list shows those that there are",
		}
	case 1:
		return found[0], nil
	}
	var ids []string
	for _, c := range found {
		ids = append(ids, c.ID)
	}
	return dedup.Case{}, &control.Error{
		Text: fmt.Sprintf("%d entries of the list fit %q: %s", len(found), name, strings.Join(ids, ", ")),
		Hint: "name one by the number at the beginning of its line in sip2gate store list",
	}
}

// refusal puts what the gate says against a decision into words.
func (d *desk) refusal(err error, c *dedup.Case) error {
	var early *dedup.TooEarlyError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &early):
		n := dedup.Seconds(early.Left)
		return &control.Error{
			Text: fmt.Sprintf("it is too early to say so: for another %s the library system may still lend this book", seconds(n)),
			Hint: fmt.Sprintf("look in the library system again after %s, and then say it again", seconds(n)),
		}
	case errors.Is(err, dedup.ErrStale):
		return &control.Error{Text: "meanwhile something has changed about this book", Hint: "look at sip2gate store list again"}
	case errors.Is(err, dedup.ErrNotOpen) && c.Concern == dedup.Unheard:
		return &control.Error{
			Text: "the library system itself has said that it lent this book: there is nothing to decide",
			Hint: "sip2gate store forget " + c.ID + " takes it off the list once the patron has it",
		}
	case errors.Is(err, dedup.ErrNotOpen):
		return &control.Error{Text: "this has been decided already", Hint: "sip2gate store forget " + c.ID + " takes it back"}
	}
	return fmt.Errorf("keep what was decided: %w", err)
}

func seconds(n int) string {
	if n == 1 {
		return "1 second"
	}
	return fmt.Sprintf("%d seconds", n)
}

// storeStats is what there is.
type storeStats struct {
	Running     bool     `json:"running"`
	Durable     bool     `json:"durable"`
	Why         string   `json:"why,omitempty"` // why not durable
	File        string   `json:"file"`
	Bytes       int64    `json:"bytes"`
	Records     int      `json:"records"`
	InFlight    int      `json:"in_flight"`
	Completed   int      `json:"completed"`
	Unconfirmed int      `json:"unconfirmed"`
	Unheard     int      `json:"kiosk_said_no"`
	Marked      int      `json:"to_be_verified"`
	Former      int      `json:"former_secrets"`
	SetAside    []string `json:"set_aside"`
}

func (d *desk) stats() storeStats {
	n, h := d.gate.Count(), d.gate.Store().Health()
	s := storeStats{
		Running: true, Durable: h.Durable, Why: h.Why, File: d.path, Bytes: size(d.path),
		Records: n.Records, InFlight: n.InFlight, Completed: n.Completed, Unconfirmed: n.Unconfirmed,
		Unheard: n.Unheard, Marked: n.Marked, Former: n.Former, SetAside: []string{},
	}
	if aside, err := filepath.Glob(d.path + ".damaged-*"); err == nil && aside != nil {
		s.SetAside = aside
	}
	return s
}

// size is that of a file, 0 if there is none.
func size(path string) int64 {
	fi, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return fi.Size()
}

// checked is what an examination of the store has found.
type checked struct {
	OK      bool   `json:"ok"`
	Records int    `json:"records"`
	Damaged int    `json:"damaged"`
	Problem string `json:"problem,omitempty"`
}

var errInMemory = &control.Error{
	Text: "there is no store to work on: the gate keeps its records in memory only",
	Hint: "sip2gate store stats says why",
}

// check examines a copy of the store, so that the gate is not disturbed.
func (d *desk) check(ctx context.Context) (any, error) {
	if d.disk == nil {
		return nil, errInMemory
	}
	copied := d.path + ".check"
	defer os.Remove(copied) // it may not be there
	if err := d.disk.Copy(ctx, copied); errors.Is(err, bolt.ErrDamaged) {
		return checked{Problem: err.Error()}, nil
	} else if err != nil {
		return nil, err
	}
	return checkFile(ctx, copied, d.secrets.file)
}

// checkFile examines a store that nobody has open.
func checkFile(ctx context.Context, path, secretFile string) (checked, error) {
	keys, err := allSecrets(secretFile)
	if err != nil {
		return checked{}, err
	}
	if err := checkInChild(ctx, path); err != nil {
		return checked{Problem: err.Error()}, ctx.Err()
	}
	v, err := bolt.Verify(path, keys...)
	c := checked{OK: err == nil && v.Damaged == 0 && !v.Missing, Records: v.Records, Damaged: v.Damaged}
	switch {
	case err != nil:
		c.Problem = err.Error()
	case v.Damaged > 0:
		c.Problem = fmt.Sprintf("%d records are damaged", v.Damaged)
	case v.Missing:
		c.Problem = "records are missing"
	}
	return c, nil
}

// compacted is how large the store was and is.
type compacted struct {
	Before int64 `json:"before_bytes"`
	After  int64 `json:"after_bytes"`
}

func (d *desk) compact(ctx context.Context) (any, error) {
	if d.disk == nil {
		return nil, errInMemory
	}
	before := size(d.path)
	if err := d.disk.Compact(ctx); err != nil {
		return nil, err
	}
	return compacted{before, size(d.path)}, nil
}

// rotated: the secret has been replaced.
type rotated struct {
	Former int `json:"former_secrets"` // that are still needed
}
