package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sip2gate/cmd/sip2gate/internal/config"
)

// nobody has no rights anywhere.
const nobody = 65534

// asNobody opens a gate as a user whose rights are looked at: root's are not.
// A thread that has become another user ends with its goroutine.
func asNobody(t *testing.T, c *config.Config, log *bytes.Buffer) (*openedGate, error) {
	t.Helper()
	var g *openedGate
	var err error
	done := make(chan struct{})
	go func() { // received below
		defer close(done)
		if os.Getuid() == 0 {
			runtime.LockOSThread()
			if _, err = unix.SetfsuidRetUid(nobody); err != nil {
				return
			}
		}
		g, err = openGate(t.Context(), c, logger(log, config.Log{Level: "info", Format: "json"}))
	}()
	<-done
	return g, err
}

// TestNotAllowed: what may not be read or written is not lost. It stays where
// it is, one event says what to do, and the gate lends in memory.
func TestNotAllowed(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(t *testing.T, dir, state string)
		at   string // seen from the folder above the state's
		hint string
	}{
		{"the secret", func(t *testing.T, _, state string) {
			must(t, os.Mkdir(state, 0o777), os.Chmod(state, 0o777),
				os.WriteFile(filepath.Join(state, "secret"), bytes.Repeat([]byte("0123456789abcdef"), 2), 0o600),
				os.WriteFile(filepath.Join(state, "gate.db.exists"), nil, 0o644),
				os.Chmod(filepath.Join(state, "secret"), 0))
		}, "state/secret", ""},
		{"a secret before the current one", func(t *testing.T, _, state string) {
			must(t, os.Mkdir(state, 0o777), os.Chmod(state, 0o777),
				os.WriteFile(filepath.Join(state, "secret"), bytes.Repeat([]byte("0123456789abcdef"), 2), 0o644),
				os.WriteFile(filepath.Join(state, "secret.former-1"), bytes.Repeat([]byte("fedcba9876543210"), 2), 0o600),
				os.Chmod(filepath.Join(state, "secret.former-1"), 0))
		}, "state/secret.former-1", ""},
		{"the folder, on a first start", func(t *testing.T, _, state string) {
			must(t, os.Mkdir(state, 0o555), os.Chmod(state, 0o555))
		}, "state", ""},
		{"the folder above, on a first start", func(t *testing.T, dir, _ string) {
			must(t, os.Chmod(dir, 0o555))
		}, "", ""},
		{"a file in place of the folder", func(t *testing.T, _, state string) {
			must(t, os.WriteFile(state, nil, 0o644))
		}, "state", "is not a folder"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := t.TempDir()
			dir := filepath.Join(base, "gate")
			must(t, os.Chmod(filepath.Dir(base), 0o711), os.Chmod(base, 0o711), os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777))
			state := filepath.Join(dir, "state")
			tt.make(t, dir, state)
			before := names(t, state)
			c, problems := config.Load(filepath.Join(dir, "gate.toml"),
				[]byte("[ils]\naddress = \"127.0.0.1:1\"\n[[station]]\nname = \"k\"\nlisten = \":6101\"\n"))
			if c == nil {
				t.Fatal(problems)
			}
			var log bytes.Buffer
			g, err := asNobody(t, c, &log)
			if err != nil {
				t.Fatal(err)
			}
			defer g.close(logger(&log, config.Log{}))
			if h := g.Store().Health(); h.Durable {
				t.Errorf("health: %+v", h)
			}
			if after := names(t, state); after != before {
				t.Errorf("files before: %s, after: %s", before, after)
			}
			if strings.Count(log.String(), "\n") != 1 {
				t.Errorf("not one event:\n%s", log.String())
			}
			var e struct{ Msg, User, Owner, At, Folder, Hint string }
			if err := json.Unmarshal(log.Bytes(), &e); err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(dir, tt.at); e.Msg != "store_degraded" || e.At != want || e.Folder != state || e.User == "" || e.Owner == "" ||
				!strings.Contains(e.Hint, tt.hint) || !strings.Contains(e.Hint, "in memory only") {
				t.Errorf("want at %s: %+v", want, e)
			}
			if strings.Contains(log.String(), "cannot be read any more") || strings.Contains(log.String(), "lost") {
				t.Error("it says that something is lost")
			}
		})
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// names are the files of a folder, but for the marker that the gate leaves
// where it can; empty if there is no folder.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		t.Fatal(err)
	}
	return fmt.Sprint(slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "gate.db.memory" }))
}

func TestHowAllowed(t *testing.T) {
	g := config.Gate{StateDir: "/srv/gate/state", SecretFile: "/etc/gate/secret"}
	for _, tt := range []struct {
		errno          syscall.Errno
		at, who, owner string
		want           string
	}{
		{syscall.EACCES, "/srv/gate/state", "gate", "root",
			"run sip2gate as root, or give the folder to gate: sudo mkdir -p /srv/gate/state && sudo chown -R gate /srv/gate/state"},
		{syscall.EACCES, "/srv", "gate", "root",
			"run sip2gate as root, or give the folder to gate: sudo mkdir -p /srv/gate/state && sudo chown -R gate /srv/gate/state"},
		{syscall.EPERM, "/etc/gate/secret", "gate", "root",
			"run sip2gate as root, or give the folder to gate: sudo mkdir -p /srv/gate/state && sudo chown -R gate /etc/gate/secret"},
		{syscall.EACCES, "/srv/gate/state", "gate", "gate", "gate may not use what is its own: chmod -R u+rwX /srv/gate/state"},
		{syscall.EACCES, "/srv/gate/state", "gate", "", "gate may not use it: set state_dir to a folder that gate may write"},
		{syscall.EROFS, "/srv/gate", "gate", "root", "the disk is mounted read-only: mount it so that it can be written, or set state_dir to a folder on another"},
		{syscall.ENOTDIR, "/srv/gate/state", "gate", "root", "/srv/gate/state is not a folder: move it away, or set state_dir to another folder"},
	} {
		err := fmt.Errorf("open: %w", &fs.PathError{Op: "open", Path: tt.at, Err: tt.errno})
		if got := howAllowed(err, g, tt.at, tt.who, tt.owner); !denied(err) || got != tt.want {
			t.Errorf("%v at %s: denied %v\n%s\nwant\n%s", tt.errno, tt.at, denied(err), got, tt.want)
		}
	}
	if err := fmt.Errorf("read: %w", syscall.EIO); denied(err) {
		t.Error("a failing disk is taken for a lack of rights")
	}
}

// TestSecretThatIsNone: on a first start nothing is lost, and what stood there
// is kept.
func TestSecretThatIsNone(t *testing.T) {
	for _, exists := range []bool{false, true} {
		dir := t.TempDir()
		c, _ := config.Load(filepath.Join(dir, "gate.toml"),
			[]byte("[ils]\naddress = \"127.0.0.1:1\"\n[[station]]\nname = \"k\"\nlisten = \":6101\"\n"))
		must(t, os.Mkdir(c.Gate.StateDir, 0o700), os.WriteFile(c.Gate.SecretFile, []byte("too short"), 0o600))
		if exists {
			must(t, os.WriteFile(storePath(c)+".exists", nil, 0o600))
		}
		var log bytes.Buffer
		g, err := openGate(t.Context(), c, logger(&log, config.Log{Level: "info", Format: "json"}))
		if err != nil {
			t.Fatal(err)
		}
		if h := g.Store().Health(); !h.Durable {
			t.Errorf("health: %+v", h)
		}
		g.close(logger(&log, config.Log{}))
		kept, _ := filepath.Glob(c.Gate.SecretFile + ".lost-*")
		if len(kept) != 1 || strings.Count(log.String(), "secret_lost") != 1 ||
			strings.Contains(log.String(), "cannot be read any more") != exists {
			t.Errorf("a store exists: %v; kept %q\n%s", exists, kept, log.String())
		}
	}
}
