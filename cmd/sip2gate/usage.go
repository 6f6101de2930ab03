package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"
)

// terminal is where a command talks to people and scripts: data to out, words
// to err. Messages begin with the command's name, have no full stop, and say
// what to do next on a line of its own.
type terminal struct {
	in       io.Reader
	out, err io.Writer
	command  command
}

// complain prints what is wrong, and the next step if there is one.
func (t *terminal) complain(text, hint string) {
	prefix := "sip2gate"
	if t.command.name != "" {
		prefix += " " + t.command.name
	}
	fmt.Fprintf(t.err, "%s: %s\n", prefix, text)
	if hint != "" {
		fmt.Fprintf(t.err, "    %s\n", hint)
	}
}

// json prints one value as a line of JSON.
func (t *terminal) json(v any) {
	e := json.NewEncoder(t.out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.complain("write the answer: "+err.Error(), "")
	}
}

// flags gives an empty flag set for the command.
func (t *terminal) flags() *flag.FlagSet {
	f := flag.NewFlagSet(t.command.name, flag.ContinueOnError)
	f.SetOutput(io.Discard) // parse speaks for it
	return f
}

// parse reads the command line, in which flags may stand before, between and
// after the other arguments; those are returned. most bounds their number, and
// so does least; most < 0 is no bound. If ok is false the command ends with
// code: what there was to say has been said.
func (t *terminal) parse(f *flag.FlagSet, args []string, least, most int) (rest []string, code int, ok bool) {
	for len(args) > 0 {
		err := f.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			t.usage(t.out, f)
			return nil, exitOK, false
		}
		if err != nil {
			t.complain(err.Error(), "")
			t.usage(t.err, f)
			return nil, exitUsage, false
		}
		left := f.Args()
		if n := len(args) - len(left); n > 0 && args[n-1] == "--" {
			rest = append(rest, left...) // nothing after it is a flag
			break
		}
		if len(left) == 0 {
			break
		}
		rest, args = append(rest, left[0]), left[1:]
	}
	if len(rest) < least || most >= 0 && len(rest) > most {
		t.complain("wrong number of arguments", "")
		t.usage(t.err, f)
		return nil, exitUsage, false
	}
	return rest, exitOK, true
}

func (t *terminal) usage(w io.Writer, f *flag.FlagSet) {
	fmt.Fprintf(w, "usage: sip2gate %s", t.command.name)
	f.VisitAll(func(g *flag.Flag) { fmt.Fprintf(w, " [--%s]", g.Name) })
	if t.command.args != "" {
		fmt.Fprint(w, " ", t.command.args)
	}
	fmt.Fprintf(w, "\n%s\n", t.command.summary)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	f.VisitAll(func(g *flag.Flag) { fmt.Fprintf(table, "  --%s\t%s\n", g.Name, g.Usage) })
	table.Flush()
}

func printHelp(w io.Writer) {
	fmt.Fprint(w, "sip2gate: a repeated SIP2 Checkout makes one loan\n\nusage: sip2gate COMMAND [ARGUMENTS]\n\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range commands() {
		fmt.Fprintf(table, "  %s %s\t%s\n", c.name, c.args, c.summary)
	}
	fmt.Fprintf(table, "  help [COMMAND]\tprint this, or how a command is called\n")
	table.Flush()
	fmt.Fprint(w, "\nExit codes: 0 done, 1 the thing examined is not well, 2 usage.\n")
}

// runHelp answers help COMMAND by that command's own --help, so that there is
// one text of it.
func runHelp(ctx context.Context, t *terminal, args []string) int {
	if len(args) == 0 {
		printHelp(t.out)
		return exitOK
	}
	for _, c := range commands() {
		if c.name == args[0] {
			t.command = c
			return c.run(ctx, t, []string{"--help"})
		}
	}
	t.complain(fmt.Sprintf("there is no command %q", args[0]), "sip2gate help lists the commands")
	return exitUsage
}
