package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"sip2gate/serialbridge/sim"
)

// simFlags is the command line of ils-sim.
type simFlags struct {
	opts    sim.Options
	faults  []sim.Fault
	listen  string
	journal string
}

func (s *simFlags) read(t *terminal, args []string) (code int, ok bool) {
	f := t.flags()
	f.StringVar(&s.listen, "listen", "127.0.0.1:6001", "HOST:PORT to listen on, 127.0.0.1:6001 if not given")
	f.StringVar(&s.journal, "journal", "", "FILE that gets every frame and loan as a line of JSON, without patrons")
	f.BoolVar(&s.opts.NoReads, "no-reads", false, "do not answer 17 and 63")
	f.BoolVar(&s.opts.CheckAZ, "check-az", false, "answer 96 to a wrong checksum")
	f.BoolVar(&s.opts.CheckAY, "check-ay", false, "answer 96 to a gap in the sequence numbers")
	f.Func("persona", "naive (lends twice, if not given), koha or sierra (renew), evergreen (renews by policy), folio or evergreen-mediator (refuse), rero (refuses, but lends twice within a second)", func(v string) (err error) {
		s.opts.Persona, err = sim.ParsePersona(v)
		return err
	})
	f.Func("error-detection", "AY and AZ in answers: mirror (as the request, if not given), on or off", func(v string) (err error) {
		s.opts.ErrorDetection, err = sim.ParseErrorDetection(v)
		return err
	})
	f.Func("terminator", "what ends a frame: cr, crlf or lf; the persona's if not given", s.terminator)
	f.Func("account", "USER:PASSWORD that may log in; may be repeated; anybody may if not given", s.account)
	f.Func("fault", "KIND:CODE[:TIMES][:DELAY], as lost:11:1 or late:11:3s; may be repeated; KIND is one of "+kindList(), func(v string) error {
		fault, err := sim.ParseFault(v)
		s.faults = append(s.faults, fault)
		return err
	})
	_, code, ok = t.parse(f, args, 0, 0)
	return code, ok
}

func (s *simFlags) terminator(v string) error {
	ends := map[string]string{"cr": "\r", "crlf": "\r\n", "lf": "\n"}
	if s.opts.Terminator = ends[strings.ToLower(v)]; s.opts.Terminator == "" {
		return fmt.Errorf("unknown terminator: use cr, crlf or lf")
	}
	return nil
}

func (s *simFlags) account(v string) error {
	user, password, ok := strings.Cut(v, ":")
	if !ok || user == "" {
		return fmt.Errorf("an account is USER:PASSWORD")
	}
	if s.opts.Accounts == nil {
		s.opts.Accounts = map[string]string{}
	}
	s.opts.Accounts[user] = password
	return nil
}

// runILSSim plays a library system until ctx ends or somebody types quit.
// Lines on standard input rule it while it runs; their end does not end it.
func runILSSim(ctx context.Context, t *terminal, args []string) int {
	var s simFlags
	if code, ok := s.read(t, args); !ok {
		return code
	}
	if s.journal != "" {
		file, err := os.OpenFile(s.journal, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			t.complain("open the journal: "+err.Error(), "give --journal a file in a directory that exists and can be written")
			return exitUnwell
		}
		defer file.Close()
		s.opts.Journal = file
	}
	ils := sim.New(s.opts)
	if err := ils.Listen(s.listen); err != nil {
		t.complain(err.Error(), simListenHint(err))
		return exitUnwell
	}
	for _, f := range s.faults {
		if err := ils.Fault(f); err != nil {
			t.complain(err.Error(), "")
			return exitUnwell
		}
	}
	fmt.Fprintf(t.err, "sip2gate ils-sim: listening on %s; type help for what it understands\n", ils.Addr())
	return s.run(ctx, t, ils)
}

func (s *simFlags) run(ctx context.Context, t *terminal, ils *sim.ILS) int {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- ils.Serve(ctx) }() // received below
	lines := readLines(ctx, t.in)
	for {
		select {
		case err := <-served:
			if err == nil {
				err = ils.JournalError()
			}
			if err != nil {
				t.complain(err.Error(), "")
				return exitUnwell
			}
			return exitOK
		case line, ok := <-lines:
			if !ok {
				lines = nil
			} else if strings.TrimSpace(line) == "quit" {
				stop()
			} else {
				simAnswer(t, ils, line)
			}
		}
	}
}

// simAnswer carries out a line and prints what comes of it in one write.
func simAnswer(t *terminal, ils *sim.ILS, line string) {
	var out bytes.Buffer
	if err := simCommand(&out, ils, line); err != nil {
		t.complain(err.Error(), "type help for what it understands")
	}
	if out.Len() > 0 {
		t.out.Write(out.Bytes())
	}
}

// readLines sends the lines of r until its end or that of ctx. A read of a
// terminal cannot be interrupted: then the goroutine ends with the process.
func readLines(ctx context.Context, r io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for sc := bufio.NewScanner(r); sc.Scan(); {
			select {
			case lines <- sc.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// simCommands are what ils-sim understands while it runs. args bounds the
// words after the name.
var simCommands = []struct {
	name, usage, what string
	least, most       int
	run               func(w io.Writer, ils *sim.ILS, args []string) error
}{
	{"fault", "fault KIND [CODE] [TIMES] [DELAY]", "set a fault, as: fault lost 11 1", 1, 4, simFault},
	{"faults", "faults", "list the faults that are set, and all kinds", 0, 0, simFaults},
	{"clear", "clear", "end all faults", 0, 0, simClear},
	{"hang-up", "hang-up [reset]", "end all connections", 0, 1, simHangUp},
	{"loans", "loans", "print what was asked and lent, by item", 0, 0, simLoans},
	{"lend", "lend ITEM PATRON", "lend at the desk", 2, 2, func(_ io.Writer, ils *sim.ILS, a []string) error {
		ils.Lend(a[0], a[1], time.Time{})
		return nil
	}},
	{"desk-checkin", "desk-checkin ITEM", "take an item back at the desk", 1, 1, simDeskCheckin},
}

// simCommand carries out one line of standard input.
func simCommand(w io.Writer, ils *sim.ILS, line string) error {
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	name, args := strings.ToLower(words[0]), words[1:]
	if name == "help" {
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, c := range simCommands {
			fmt.Fprintf(table, "%s\t%s\n", c.usage, c.what)
		}
		fmt.Fprint(table, "quit\tend the simulator\n")
		if err := table.Flush(); err != nil {
			return err
		}
		return printKinds(w)
	}
	for _, c := range simCommands {
		if c.name != name {
			continue
		}
		if len(args) < c.least || len(args) > c.most {
			return fmt.Errorf("wrong number of words: %s", c.usage)
		}
		return c.run(w, ils, args)
	}
	return fmt.Errorf("unknown command %q", name)
}

func simFault(w io.Writer, ils *sim.ILS, args []string) error {
	f, err := sim.ParseFault(strings.Join(args, ":"))
	if err != nil {
		return err
	}
	if err := ils.Fault(f); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "set %s\n", f)
	return err
}

func simFaults(w io.Writer, ils *sim.ILS, _ []string) error {
	for _, f := range ils.Faults() {
		fmt.Fprintf(w, "set %s\n", f)
	}
	_, err := fmt.Fprintf(w, "kinds: %s\n", kindList())
	return err
}

func simClear(w io.Writer, ils *sim.ILS, _ []string) error {
	n := len(ils.Faults())
	if err := ils.ClearFaults(); err != nil {
		return err
	}
	if n == 0 {
		_, err := fmt.Fprintln(w, "no fault was set")
		return err
	}
	_, err := fmt.Fprintln(w, "all faults are ended: it answers as a healthy library system again")
	return err
}

func simHangUp(_ io.Writer, ils *sim.ILS, args []string) error {
	if len(args) == 1 && args[0] != "reset" {
		return fmt.Errorf("hang-up %s: the only word after it is reset", args[0])
	}
	ils.HangUp(len(args) == 1)
	return nil
}

func simDeskCheckin(w io.Writer, ils *sim.ILS, args []string) error {
	if !ils.DeskCheckin(args[0]) {
		return fmt.Errorf("item %s is not on loan: loans lists what is", args[0])
	}
	_, err := fmt.Fprintf(w, "checked in %s\n", args[0])
	return err
}

// simLoans prints the totals of every item. Two open loans of one item are the
// incident, and are marked.
func simLoans(w io.Writer, ils *sim.ILS, _ []string) error {
	items := ils.ItemsSeen()
	if len(items) == 0 {
		_, err := fmt.Fprintln(w, "nothing was lent or asked for yet")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "item\t11 received\tloans\topen\trenewals\tcheckins\tdue\t")
	for _, item := range items {
		due, note := "-", ""
		if _, d, ok := ils.ActiveLoan(item); ok {
			due = d.Format(time.DateOnly)
		}
		open := ils.OpenLoans(item)
		if open > 1 {
			note = "LENT TWICE"
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", strings.Trim(strconv.QuoteToASCII(item), `"`), ils.Checkouts(item), ils.Loans(item), open,
			ils.Renewals(item), ils.Checkins(item), due, note)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return ils.JournalError()
}

func kindList() string {
	var names []string
	for _, k := range sim.Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}
