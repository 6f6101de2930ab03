package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"syscall"
	"text/tabwriter"

	"sip2gate/serialbridge/sim"
)

// kindWords say what each kind of fault does.
var kindWords = map[sim.Kind]string{
	sim.Delay:       "waits DELAY, then does it and answers",
	sim.Late:        "does it, and answers after DELAY",
	sim.Lost:        "does it, and answers nothing",
	sim.Drop:        "neither does it nor answers",
	sim.CutBefore:   "ends the connection, and does nothing",
	sim.CutAfter:    "does it, and ends the connection instead of an answer",
	sim.CutAnswer:   "does it, and ends the connection in the middle of the answer",
	sim.Halved:      "does it, and sends the first half of the answer only",
	sim.Doubled:     "does it, and answers twice",
	sim.BadChecksum: "does it, and answers with a wrong checksum",
	sim.OtherAY:     "does it, and answers with another sequence number",
	sim.CRLF:        "does it, and ends the answer with CR LF",
	sim.BareResend:  "does nothing, and asks to send it again (96)",
	sim.Status:      "does nothing, and sends its status (98) instead",
	sim.Text:        "does nothing, and sends a line of text instead",
	sim.OtherItem:   "does it, and answers for another item",
	sim.NoAccept:    "whole line: nobody takes the call",
	sim.BlackHole:   "whole line: takes the call and hears nothing",
	sim.Refuse:      "whole line: new calls are refused",
}

func printKinds(w io.Writer) error {
	fmt.Fprint(w, "\nKIND of fault, and what the library system does then:\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, k := range sim.Kinds() {
		fmt.Fprintf(table, "  %s\t%s\n", k, cmp.Or(kindWords[k], "is not described"))
	}
	return table.Flush()
}

// simListenHint says what to do about an address that cannot be listened on.
func simListenHint(err error) string {
	_, isAddr := errors.AsType[*net.AddrError](err)
	_, isName := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "stop the program that has this port, or choose another one with --listen HOST:PORT"
	case errors.Is(err, fs.ErrPermission):
		return "a port below 1024 is for root alone: choose a higher one, such as --listen 127.0.0.1:6001"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine has no such address: 127.0.0.1 is for this machine alone, 0.0.0.0 for the network too"
	case isAddr, isName:
		return "type --listen HOST:PORT, such as 127.0.0.1:6001, or 0.0.0.0:6001 for the network too"
	}
	return "choose another address, such as --listen 127.0.0.1:6001"
}
