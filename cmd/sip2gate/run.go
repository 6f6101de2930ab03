package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sip2gate/cmd/sip2gate/internal/config"
	"sip2gate/dedup"
	"sip2gate/dedup/bolt"
	"sip2gate/dedup/clock"
	"sip2gate/dedup/secret"
	"sip2gate/serialbridge"
)

// runRun runs the gate until it is told to stop.
func runRun(ctx context.Context, t *terminal, args []string) int {
	files, code, ok := t.parse(t.flags(), args, 1, 1)
	if !ok {
		return code
	}
	c, problems := config.ReadFile(files[0])
	for _, p := range problems {
		fmt.Fprintln(t.err, p)
	}
	if c == nil {
		return exitUnwell
	}
	log := logger(t.err, c.Log)
	g, err := openGate(ctx, c, log)
	switch {
	case errors.Is(err, bolt.ErrInUse):
		t.complain(err.Error(), "another sip2gate is running with this state_dir: stop it first, or give this one its own")
		return exitUnwell
	case err != nil:
		t.complain(err.Error(), "")
		return exitUnwell
	}
	times := newTimekeeper(g.Store())
	bridge, err := newBridge(c, g, times, log)
	if err != nil {
		t.complain(err.Error(), "")
		g.close(log)
		return exitUnwell
	}
	desk := newDesk(c, g, log)
	err = desk.open()
	noFolder := denied(err) || errors.Is(err, fs.ErrNotExist)
	if err != nil && (g.disk != nil || !noFolder) { // else store_degraded has said it
		// The branch lends without it.
		log.Error("no_commands", "error", err.Error(), "hint", "sip2gate store and sip2gate secret cannot reach this gate")
	}
	log.Info("gate_started", "version", thisBuild().String(), "settings", c.Summary())
	var keeping sync.WaitGroup
	keeping.Go(func() { times.keep(ctx) })
	err = bridge.Run(ctx)
	keeping.Wait()
	desk.close()
	g.close(log)
	log.Info("gate_stopped")
	if err != nil {
		t.complain(err.Error(), "")
		return exitUnwell
	}
	return exitOK
}

// logger writes one event a line: its name is the message.
func logger(w io.Writer, c config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo // config has checked it
	}
	opts := &slog.HandlerOptions{Level: level}
	if c.Format == "text" {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}

// openedGate is a gate with what must be closed after it.
type openedGate struct {
	*dedup.Gate
	target  dedup.Digest
	disk    *bolt.Store // nil while records are kept in memory only
	secrets *secretKeeper
}

func (g *openedGate) close(log *slog.Logger) {
	if err := g.Store().Close(); err != nil {
		log.Error("store_not_closed", "error", err.Error())
	}
}

// openGate opens secret, store and gate. Whatever is wrong with them, but for
// a second gate on the same store, the branch keeps lending: with a new store,
// or in memory, and loudly.
func openGate(ctx context.Context, c *config.Config, log *slog.Logger) (*openedGate, error) {
	key, former, err := loadSecrets(c, log)
	opt := storeOptions(c, key, former, log)
	var store dedup.Store
	var now clock.Clock
	forgot := true
	if err != nil {
		// The store is not touched: under another secret it would be set aside.
		logInMemory(log, c.Gate, err)
		bolt.NoteMemory(opt, err)
		store, now = bolt.Fallback(opt, err)
	} else if store, now, forgot, err = openStore(ctx, opt, c.Gate, log); err != nil {
		return nil, err
	}
	keeper := &secretKeeper{file: c.Gate.SecretFile, log: log}
	var retired func(context.Context, []byte) error
	if disk, ok := store.(*bolt.Store); ok {
		keeper.disk, retired = disk, keeper.retire
	}
	target := ilsTarget(c)
	g, err := dedup.New(ctx, dedup.Options{
		Store: store, Clock: now, Match: c.Gate.Sequence == "match",
		Secret: key, Former: former, Retired: retired,
		Window: c.Gate.Window, DoubtRetention: c.Gate.DoubtRetention,
		Settle: c.ILS.Settle, ILSTimeout: c.ILS.Timeout,
		Amnesia: forgot, Target: target, Wall: wallSeconds,
	})
	if err != nil {
		_ = store.Close() // the first error says more
		return nil, fmt.Errorf("open the gate: %w", err)
	}
	return &openedGate{g, target, keeper.disk, keeper}, nil
}

func storePath(c *config.Config) string { return filepath.Join(c.Gate.StateDir, "gate.db") }

// ilsTarget names the ILS that requests go to. No secret goes in, so that a
// doubt is still known to be of this ILS when the secret has been replaced.
func ilsTarget(c *config.Config) dedup.Digest {
	return sha256.Sum256([]byte("ils:" + c.ILS.Address))
}

// loadSecrets gives the secret, and those before it; on the first start it makes
// one. A secret that is lost beside a store makes the store unreadable: a new
// one is made, the store's opening finds out, and sets the store aside. After an
// error the secret is good for this run only, in memory.
func loadSecrets(c *config.Config, log *slog.Logger) (key []byte, former [][]byte, err error) {
	if key, err = loadSecret(c, log); err != nil {
		return passingSecret(), nil, err
	}
	former, err = secret.Former(c.Gate.SecretFile)
	switch {
	case err == nil:
	case denied(err):
		return passingSecret(), nil, err
	default:
		log.Error("secret_lost", "error", err.Error(), "hint", "what was remembered under a secret before the current one is not found")
	}
	return key, former, nil
}

func loadSecret(c *config.Config, log *slog.Logger) ([]byte, error) {
	path := c.Gate.SecretFile
	if err := os.MkdirAll(c.Gate.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the state folder: %w", err)
	}
	key, _, err := secret.Load(path, bolt.Exists(storePath(c)))
	lost := errors.Is(err, secret.ErrLost)
	if pe, ok := errors.AsType[*fs.PathError](err); ok && denied(err) {
		return nil, fmt.Errorf("use the secret: %w", pe) // it is not lost
	}
	if err == nil || denied(err) || !lost && size(path) == 0 { // the last: it could not be made
		return key, err
	}
	hint := "this file does not hold a secret: it is kept under a dated name, and a new secret is made"
	if lost {
		hint = "what the store holds cannot be read any more: it is set aside, and a new secret is made"
	}
	log.Error("secret_lost", "error", err.Error(), "file", path, "hint", hint)
	return secret.Replace(path)
}

func storeOptions(c *config.Config, key []byte, former [][]byte, log *slog.Logger) bolt.Options {
	return bolt.Options{
		Path: storePath(c), Secret: key, Former: former, Source: clock.System(), Logger: log, RunDir: runDir(),
		Slice: max(c.Gate.Window/8, time.Second),
		Check: checkInChild,
		OnHealth: func(h dedup.Health) {
			if h.Durable {
				log.Info("store_durable")
				return
			}
			log.Error("store_degraded", "why", h.Why, "hint", "checkouts are remembered in memory only until the disk can be written")
		},
	}
}

// runDir is a folder in memory, which a full or broken disk does not concern. A
// service that may not write to /run is given one of its own (systemd.exec,
// RuntimeDirectory).
func runDir() string {
	dir, _, _ := strings.Cut(os.Getenv("RUNTIME_DIRECTORY"), ":")
	return cmp.Or(dir, "/run")
}

// openStore opens the durable store, or one in memory in its place. forgot:
// records of an earlier run may be missing.
func openStore(ctx context.Context, opt bolt.Options, g config.Gate, log *slog.Logger) (_ dedup.Store, _ clock.Clock, forgot bool, _ error) {
	store, report, err := bolt.Open(ctx, opt)
	switch {
	case errors.Is(err, bolt.ErrInUse), ctx.Err() != nil:
		return nil, nil, false, err
	case err != nil:
		logInMemory(log, g, err)
		fallback, now := bolt.Fallback(opt, err)
		return fallback, now, true, nil
	}
	if report.SetAside != "" {
		log.Error("store_set_aside", "file", report.SetAside, "why", report.Amnesia, "carried_over", report.Records)
	} else if report.Amnesia != "" {
		log.Error("store_forgot", "why", report.Amnesia)
	}
	log.Info("store_opened", "records", report.Records, "damaged", report.Damaged,
		"created", report.Created, "unclean", report.Unclean)
	return store, store.Clock(), report.Amnesia != "", nil
}

// checkInChild examines a store whose last opening did not end, in a process
// of its own: on damaged pages the reading process dies.
func checkInChild(ctx context.Context, path string) error {
	self, err := os.Executable()
	if err != nil {
		return nil // cannot be carried out
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, self, "store-check", path).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit), ctx.Err() != nil:
		said, _, _ := bytes.Cut(out, []byte{'\n'})
		return fmt.Errorf("the check of the store failed: %w: %s", err, said)
	}
	return nil
}

// runStoreCheck is the child of checkInChild.
func runStoreCheck(_ context.Context, t *terminal, args []string) int {
	files, code, ok := t.parse(t.flags(), args, 1, 1)
	if !ok {
		return code
	}
	if err := bolt.CheckFile(files[0]); err != nil {
		t.complain(err.Error(), "")
		return exitUnwell
	}
	return exitOK
}

var _ serialbridge.Gate = (*dedup.Gate)(nil)
