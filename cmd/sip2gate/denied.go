package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"

	"sip2gate/cmd/sip2gate/internal/config"
)

// denied tells a place in which nothing may be kept from one that is damaged.
// What cannot be read there is not lost, so that nothing is set aside for it.
func denied(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EROFS)
}

// logInMemory says that nothing can be kept on the disk, and what to do.
func logInMemory(log *slog.Logger, g config.Gate, err error) {
	if !denied(err) {
		log.Error("store_degraded", "error", err.Error(), "hint", "checkouts are remembered in memory only: replace the disk soon, and do not restart needlessly")
		return
	}
	g.StateDir, g.SecretFile = absolute(g.StateDir), absolute(g.SecretFile) // to be typed anywhere
	at := whereDenied(err, g.StateDir)
	who, owner := thisUser(), ownerOf(at)
	log.Error("store_degraded", "error", err.Error(), "user", who, "folder", g.StateDir, "at", at, "owner", owner,
		"hint", howAllowed(err, g, at, who, owner)+"; until then checkouts are remembered in memory only, and a restart forgets them")
}

// howAllowed is what a technician types.
func howAllowed(err error, g config.Gate, at, who, owner string) string {
	own := g.StateDir
	if !within(at, own) && at == g.SecretFile {
		own = at
	}
	switch {
	case errors.Is(err, syscall.EROFS):
		return "the disk is mounted read-only: mount it so that it can be written, or set state_dir to a folder on another"
	case errors.Is(err, syscall.ENOTDIR):
		return at + " is not a folder: move it away, or set state_dir to another folder"
	case owner == who && !within(at, own):
		return fmt.Sprintf("%s may not use what is its own: chmod u+rwx %s", who, at)
	case owner == who:
		return fmt.Sprintf("%s may not use what is its own: chmod -R u+rwX %s", who, own)
	case owner == "":
		return fmt.Sprintf("%s may not use it: set state_dir to a folder that %s may write", who, who)
	}
	return fmt.Sprintf("run sip2gate as %s, or give the folder to %s: sudo mkdir -p %s && sudo chown -R %s %s",
		owner, who, g.StateDir, who, own)
}

// whereDenied is the innermost place that can be seen at or above the one that
// the error is about; dir if the error does not tell.
func whereDenied(err error, dir string) string {
	at := dir
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		at = absolute(pe.Path)
	}
	for {
		if _, err := os.Lstat(at); err == nil || at == filepath.Dir(at) {
			return at
		}
		at = filepath.Dir(at)
	}
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+string(filepath.Separator))
}

// thisUser is the name of who runs the program, or the number.
func thisUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return fmt.Sprint(os.Geteuid())
}
