// Command sip2gate stands between library self-check kiosks and the library
// system, and sees to it that a repeated SIP2 Checkout makes one loan.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// The exit codes, a contract with scripts and with the supervisor: a bad file
// is not restarted for ever, a crash is.
const (
	exitOK     = 0 // done
	exitUnwell = 1 // the thing examined is not well, or the work failed
	exitUsage  = 2 // the command line cannot be read
)

// A command is one word of the command line. Each lives in a file of its own
// and gets the arguments after its name.
type command struct {
	name    string
	args    string // as help shows them
	summary string
	run     func(ctx context.Context, t *terminal, args []string) int
}

// commands lists every command, in the order in which help shows them.
func commands() []command {
	return []command{
		{"run", "FILE", "run the gate", runRun},
		{"demo", "", "show the incident without and with the gate", runDemo},
		{"check", "FILE", "report every problem of a settings file", runCheck},
		{"decode", "[FRAME...]", "say in words what SIP2 frames mean", runDecode},
		{"store", "list|resolve|forget|stats|check|compact", "show the books that staff should check, and what is remembered", runStore},
		{"secret", "rotate", "replace the secret that everything remembered is sealed with", runSecret},
		{"ports", "", "list the serial ports by their stable names", runPorts},
		{"ils-sim", "", "simulate a library system", runILSSim},
		{"version", "", "print the version", runVersion},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program; a test can call it. ctx ends it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	t := &terminal{in: stdin, out: stdout, err: stderr}
	if len(args) == 0 {
		printHelp(stderr)
		return exitUsage
	}
	name, args := args[0], args[1:]
	switch name {
	case "-v", "-version", "--version":
		name = "version"
	}
	for _, c := range commands() {
		if c.name == name {
			t.command = c
			return c.run(ctx, t, args)
		}
	}
	switch name {
	case "store-check": // the child in which a doubtful store is examined
		t.command.name = name
		return runStoreCheck(ctx, t, args)
	case "help", "-h", "-help", "--help":
		return runHelp(ctx, t, args)
	}
	t.complain(fmt.Sprintf("there is no command %q", name), "sip2gate help lists the commands")
	return exitUsage
}
