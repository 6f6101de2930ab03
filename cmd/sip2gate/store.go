package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"sip2gate/cmd/sip2gate/internal/control"
)

var storeCommands = []command{
	{"store list", "", "the books that staff should check, and what to do about each", runStoreList},
	{"store resolve", "NUMBER", "say what you have found in the library system about a book of the list; NUMBER is that of the list, or the item's", runStoreResolve},
	{"store forget", "NUMBER", "take a book off the list; NUMBER is that of the list, or the item's", runStoreForget},
	{"store stats", "", "how much is remembered, and whether the disk is well", runStoreStats},
	{"store check", "", "examine the store, also while the gate is running", runStoreVerify},
	{"store compact", "", "write the store anew, without unused room", runStoreCompact},
}

// runStore is the word before store list and the like.
func runStore(ctx context.Context, t *terminal, args []string) int {
	return t.branch(ctx, storeCommands, args)
}

func runStoreList(ctx context.Context, t *terminal, args []string) int {
	s := newStaffCommand(t)
	if _, code, ok := s.parse(args, 0, 0); !ok {
		return code
	}
	var list bookList
	code := s.ask(ctx, control.Request{Command: askList}, &list, func() error {
		return s.offline(ctx, func(d *desk) error {
			list = d.list()
			list.Degraded, list.Stopped = "", true
			return nil
		})
	})
	if code == exitOK && !s.json {
		printBooks(t.out, list, time.Now())
	}
	return code
}

// printBooks is the list as staff read it.
func printBooks(w io.Writer, l bookList, now time.Time) {
	switch len(l.Books) {
	case 0:
		fmt.Fprintln(w, "There is no book to check.")
	case 1:
		fmt.Fprintln(w, "Please check this book.")
	default:
		fmt.Fprintln(w, "Please check these books.")
	}
	for _, b := range l.Books {
		item := "item " + printable(b.Item)
		if b.Item == "" {
			item = "an item whose number cannot be read any more"
		}
		fmt.Fprintf(w, "\n%s  %s", b.ID, item)
		if b.Institution != "" {
			fmt.Fprintf(w, ", institution %s", printable(b.Institution))
		}
		if b.Station != "" {
			fmt.Fprintf(w, ", station %s", printable(b.Station))
		}
		fmt.Fprintf(w, ", %s\n", since(b, now))
		if b.Why == whyUnheard {
			fmt.Fprintf(w, `    It is on loan, but the kiosk may have told the patron that it is not.
    See that the patron has the book. Then:
        sip2gate store forget %s
`, b.ID)
			continue
		}
		wait := ""
		if b.WaitSeconds > 0 {
			wait = fmt.Sprintf("   (not before %s from now)", seconds(b.WaitSeconds))
		}
		fmt.Fprintf(w, `    The library system did not say whether it lent this book, and the kiosk sent the patron to you.
    Look in the library system.
    If the book is on loan to that patron, hand it out. Then:
        sip2gate store resolve --lent %s
    If it is not, lend it at the desk, or let the patron try the kiosk again. But first:
        sip2gate store resolve --not-lent %s%s
`, b.ID, b.ID, wait)
	}
	if l.More > 0 {
		fmt.Fprintf(w, "\nand %d more, which will show when these are done\n", l.More)
	}
	if l.Stopped && len(l.Books) > 0 {
		fmt.Fprint(w, "\nThe gate is stopped. Start it before you tell it what you have found.\n")
	}
	if l.Degraded != "" {
		fmt.Fprintf(w, "\nThe list may not be complete: %s.\n", l.Degraded)
	}
}

// since says when a book was scanned, as well as that is known.
func since(b book, now time.Time) string {
	ago := fmt.Sprintf("%d minutes ago", b.AgeSeconds/60)
	switch n := b.AgeSeconds; {
	case n < 120:
		ago = fmt.Sprintf("%s ago", seconds(n))
	case n >= 48*3600:
		ago = fmt.Sprintf("%d days ago", n/(24*3600))
	case n >= 2*3600:
		ago = fmt.Sprintf("%d hours ago", n/3600)
	}
	at, err := time.Parse(time.RFC3339, b.Since)
	if err != nil {
		// Gate time stands still while the power is off, so it is too short.
		return "time unknown (the clock was not right; at least " + ago + ")"
	}
	at = at.Local()
	if y, m, d := now.Date(); at.Year() == y && at.Month() == m && at.Day() == d {
		return fmt.Sprintf("since %s today (%s)", at.Format("15:04"), ago)
	}
	return "since " + at.Format("2006-01-02 15:04")
}

// printable keeps what a kiosk has sent from steering the terminal.
func printable(s string) string {
	q := fmt.Sprintf("%+q", s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

func runStoreResolve(ctx context.Context, t *terminal, args []string) int {
	s := newStaffCommand(t)
	lent := s.flags.Bool("lent", false, "the book is on loan to the patron who scanned it")
	notLent := s.flags.Bool("not-lent", false, "the book is not on loan to that patron")
	names, code, ok := s.parse(args, 1, 1)
	if !ok {
		return code
	}
	if *lent == *notLent {
		t.complain("say either --lent or --not-lent", "")
		return exitUsage
	}
	return s.decide(ctx, control.Request{Command: askResolve, Name: names[0], Lent: *lent})
}

func runStoreForget(ctx context.Context, t *terminal, args []string) int {
	s := newStaffCommand(t)
	names, code, ok := s.parse(args, 1, 1)
	if !ok {
		return code
	}
	return s.decide(ctx, control.Request{Command: askForget, Name: names[0]})
}

// decide has the running gate do it: only that knows how long the library
// system may still be at work.
func (s *staffCommand) decide(ctx context.Context, r control.Request) int {
	var done decided
	code := s.ask(ctx, r, &done, nil)
	if code != exitOK || s.json {
		return code
	}
	item := printable(done.Item)
	if done.Item == "" {
		item = done.ID
	}
	switch done.Outcome {
	case "lent":
		fmt.Fprintf(s.t.out, "Item %s counts as lent. If that was a mistake: sip2gate store forget %s\n", item, done.ID)
	case "not_lent":
		fmt.Fprintf(s.t.out, "Item %s counts as not lent. The patron can borrow it.\n", item)
	default:
		fmt.Fprintf(s.t.out, "Item %s is off the list.\n", item)
	}
	return code
}

func runStoreStats(ctx context.Context, t *terminal, args []string) int {
	s := newStaffCommand(t)
	if _, code, ok := s.parse(args, 0, 0); !ok {
		return code
	}
	var st storeStats
	code := s.ask(ctx, control.Request{Command: askStats}, &st, func() error {
		return s.offline(ctx, func(d *desk) error {
			st = d.stats()
			st.Running, st.Durable, st.Why = false, true, ""
			return nil
		})
	})
	if code != exitOK || s.json {
		return code
	}
	where := "on the disk"
	if !st.Durable {
		where = "IN MEMORY ONLY: " + st.Why
	}
	running := "running"
	if !st.Running {
		running = "stopped"
	}
	for _, line := range [][2]string{
		{"gate", running},
		{"records are kept", where},
		{"file", fmt.Sprintf("%s, %d bytes", st.File, st.Bytes)},
		{"loans remembered", fmt.Sprint(st.Records)},
		{"  answered", fmt.Sprint(st.Completed)},
		{"  being asked now", fmt.Sprint(st.InFlight)},
		{"  never answered, to be checked", fmt.Sprint(st.Unconfirmed)},
		{"  lent although the kiosk said no", fmt.Sprint(st.Unheard)},
		{"  verified before they are answered again", fmt.Sprint(st.Marked)},
		{"secrets before the current one", fmt.Sprint(st.Former)},
	} {
		fmt.Fprintf(t.out, "%-42s %s\n", line[0]+":", line[1])
	}
	for _, file := range st.SetAside {
		fmt.Fprintf(t.out, "%-42s %s\n", "a damaged store was set aside:", file)
	}
	return code
}

func runStoreVerify(ctx context.Context, t *terminal, args []string) int {
	s := newStaffCommand(t)
	if _, code, ok := s.parse(args, 0, 0); !ok {
		return code
	}
	var c checked
	code := s.ask(ctx, control.Request{Command: askCheck}, &c, func() error { return s.checkStopped(ctx, &c) })
	if code != exitOK {
		return code
	}
	switch {
	case s.json:
	case c.OK:
		fmt.Fprintf(t.out, "The store is sound: %d records.\n", c.Records)
	default:
		t.complain("the store is damaged: "+c.Problem,
			"a running gate has all of it in memory: sip2gate store compact writes the file anew; the next start sets a damaged file aside")
	}
	if !c.OK {
		return exitUnwell
	}
	return exitOK
}

func runStoreCompact(ctx context.Context, t *terminal, args []string) int {
	s := newStaffCommand(t)
	if _, code, ok := s.parse(args, 0, 0); !ok {
		return code
	}
	var done compacted
	code := s.ask(ctx, control.Request{Command: askCompact}, &done, func() error { return s.compactStopped(ctx, &done) })
	if code == exitOK && !s.json {
		fmt.Fprintf(t.out, "The store was written anew: %d bytes before, %d now.\n", done.Before, done.After)
	}
	return code
}
