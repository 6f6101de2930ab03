package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// print tells a story line by line.
func (d *demoStory) print(out io.Writer, title string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.SortStableFunc(d.lines, func(a, b demoLine) int { return a.at.Compare(b.at) })
	fmt.Fprintln(out, title)
	for _, l := range d.lines {
		fmt.Fprintf(out, "%8.3f  %-5s  %s\n", l.at.Sub(d.begun).Seconds(), l.who, l.what)
	}
	fmt.Fprintln(out)
}

// demoVerdict prints the table and says whether the gate did its work.
func demoVerdict(t *terminal, without, with *demoStory) int {
	equal := len(with.answers) > 1
	for _, a := range with.answers {
		equal = equal && a == with.answers[0]
	}
	same := "not equal"
	if equal {
		same = "byte for byte the same"
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "\twithout the gate\twith sip2gate\n")
	fmt.Fprintf(w, "transmissions of the kiosk\t%d\t%d\n", without.sent, with.sent)
	fmt.Fprintf(w, "Checkouts (11) that reached the ILS\t%d\t%d\n", without.received, with.received)
	fmt.Fprintf(w, "answers that the kiosk got\t%d\t%d, %s\n", len(without.answers), len(with.answers), same)
	fmt.Fprintf(w, "loans in the ILS\t%d\t%d\n", without.loans, with.loans)
	if err := w.Flush(); err != nil {
		t.complain("print the table: "+err.Error(), "")
		return exitUnwell
	}
	if without.loans != 2 || with.loans != 1 || with.received != 1 || !equal {
		t.complain("this is not what was to be shown: two loans without the gate, one with it, and equal answers", "run it again; if it fails again, please report what it printed")
		return exitUnwell
	}
	fmt.Fprintf(t.out, "\nOne scan, %d transmissions: two loans without the gate, one with it.\n", with.sent)
	return exitOK
}
