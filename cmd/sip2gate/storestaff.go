package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"sip2gate/cmd/sip2gate/internal/config"
	"sip2gate/cmd/sip2gate/internal/control"
	"sip2gate/dedup"
	"sip2gate/dedup/bolt"
)

// branch runs one of the commands whose names have two words.
func (t *terminal) branch(ctx context.Context, all []command, args []string) int {
	word := t.command.name
	if len(args) > 0 {
		for _, c := range all {
			if c.name == word+" "+args[0] {
				t.command = c
				return c.run(ctx, t, args[1:])
			}
		}
	}
	to, code := t.out, exitOK
	if len(args) == 0 || !strings.HasPrefix(args[0], "-h") && args[0] != "--help" && args[0] != "help" {
		to, code = t.err, exitUsage
		if len(args) > 0 {
			t.complain(fmt.Sprintf("there is no command %q", args[0]), "")
		}
	}
	fmt.Fprintf(to, "usage: sip2gate %s %s\n%s\n", word, t.command.args, t.command.summary)
	for _, c := range all {
		fmt.Fprintf(to, "\n  sip2gate %s %s\n      %s\n", c.name, c.args, c.summary)
	}
	fmt.Fprint(to, "\n  --file FILE says which gate: its settings file, sip2gate.toml in this folder if not given\n  --json prints the answer as one JSON object\n")
	return code
}

// staffCommand is a command to a running gate, which it finds by the state
// folder that the settings file names.
type staffCommand struct {
	t      *terminal
	flags  *flag.FlagSet
	file   string
	json   bool
	config *config.Config
}

const defaultFile = "sip2gate.toml"

func newStaffCommand(t *terminal) *staffCommand {
	s := &staffCommand{t: t, flags: t.flags()}
	s.flags.StringVar(&s.file, "file", defaultFile, "the gate's settings file; "+defaultFile+" in this folder if not given")
	s.flags.BoolVar(&s.json, "json", false, "print the answer as one JSON object")
	return s
}

// parse reads the command line and the settings file.
func (s *staffCommand) parse(args []string, least, most int) (rest []string, code int, ok bool) {
	rest, code, ok = s.t.parse(s.flags, args, least, most)
	if !ok {
		return rest, code, ok
	}
	c, problems := config.ReadFile(s.file)
	if c == nil {
		for _, p := range problems {
			fmt.Fprintln(s.t.err, p)
		}
		s.t.complain("the gate cannot be found without its settings file", "name the file that the gate runs with: --file FILE")
		return rest, exitUnwell, false
	}
	s.config = c
	return rest, exitOK, true
}

// ask has the gate answer r into data. Where no gate is running, stopped does
// what can be done on the file; nil: nothing can.
func (s *staffCommand) ask(_ context.Context, r control.Request, data any, stopped func() error) int {
	err := control.Call(s.config.Gate.StateDir, r, data)
	if errors.Is(err, control.ErrNotRunning) {
		if stopped == nil {
			s.t.complain("the gate is not running", "start it first: only a running gate can take that")
			return exitUnwell
		}
		err = stopped()
	}
	var said *control.Error
	switch {
	case err == nil:
	case errors.As(err, &said):
		s.t.complain(said.Text, said.Hint)
		return exitUnwell
	case errors.Is(err, bolt.ErrInUse):
		s.t.complain("the gate is running, but does not answer commands", "its log says why: look for no_commands")
		return exitUnwell
	default:
		s.t.complain(err.Error(), "")
		return exitUnwell
	}
	if s.json {
		s.t.json(data)
	}
	return exitOK
}

// hasStore: a command must not be the first start of a gate.
func (s *staffCommand) hasStore() error {
	if bolt.Exists(storePath(s.config)) {
		return nil
	}
	return &control.Error{Text: "nothing is remembered yet: there is no store in " + s.config.Gate.StateDir, Hint: "the gate makes it when it starts"}
}

// offline reads the store of a stopped gate, changes nothing, and has a desk
// answer from that.
func (s *staffCommand) offline(ctx context.Context, do func(*desk) error) error {
	if err := s.hasStore(); err != nil {
		return err
	}
	c := s.config
	held, err := bolt.Hold(ctx, storePath(c))
	if err != nil {
		return err
	}
	defer held.Close()
	keys, err := allSecrets(c.Gate.SecretFile)
	if err != nil {
		return err
	}
	log := logger(s.t.err, config.Log{Level: "warn", Format: "text"})
	store, now := bolt.Fallback(storeOptions(c, keys[0], keys[1:], log), errors.New("the gate is stopped"))
	g, err := dedup.New(ctx, dedup.Options{
		Store: store, Clock: now, Secret: keys[0], Former: keys[1:],
		Window: c.Gate.Window, DoubtRetention: c.Gate.DoubtRetention,
		Settle: c.ILS.Settle, ILSTimeout: c.ILS.Timeout,
	})
	if err != nil {
		return err
	}
	d := newDesk(c, &openedGate{Gate: g}, log)
	err = do(d)
	return errors.Join(err, store.Close())
}

func (s *staffCommand) checkStopped(ctx context.Context, c *checked) error {
	if err := s.hasStore(); err != nil {
		return err
	}
	held, err := bolt.Hold(ctx, storePath(s.config))
	if err != nil {
		return err
	}
	defer held.Close()
	*c, err = checkFile(ctx, storePath(s.config), s.config.Gate.SecretFile)
	return err
}

// compactStopped opens the store as the gate would: what that finds out about
// a store that is not well is kept for the gate's next start.
func (s *staffCommand) compactStopped(ctx context.Context, done *compacted) error {
	if err := s.hasStore(); err != nil {
		return err
	}
	log := logger(s.t.err, config.Log{Level: "warn", Format: "text"})
	g, err := openGate(ctx, s.config, log)
	if err != nil {
		return err
	}
	defer g.close(log)
	a, err := newDesk(s.config, g, log).compact(ctx)
	if err == nil {
		*done = a.(compacted)
	}
	return err
}
