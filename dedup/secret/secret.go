// Package secret keeps the random bytes from which every key of the gate is
// derived. They are made on the first start, live in a file of their own and
// never leave the machine.
package secret

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sip2gate/dedup/internal/atomicfile"
)

// Size is the least number of bytes in a secret, and the number made.
const Size = 32

// ErrLost means that there is a store but no longer the secret that opens it.
// Such a store counts as damaged: Replace makes a new secret, and opening the
// store with that sets it aside.
var ErrLost = errors.New("the secret is lost")

// Load returns the secret in the file at path. If there is none, or an empty
// file, and storeExists is false, this is the first start: the secret is made
// (created is true), and is on the disk when Load returns. Beside an existing
// store a secret that is missing, unreadable or too short is ErrLost.
func Load(path string, storeExists bool) (secret []byte, created bool, err error) {
	b, err := os.ReadFile(path)
	switch {
	case err == nil && usable(b):
		return b, false, nil
	case err == nil:
		err = fmt.Errorf("it has %d usable bytes, not %d", len(b), Size)
	}
	if storeExists {
		return nil, false, fmt.Errorf("%w: %s: %w", ErrLost, path, err)
	}
	// Whoever put a few bytes there by hand meant something by it, and is
	// told. An empty file is what a power cut leaves.
	if len(b) > 0 || !empty(path) {
		return nil, false, fmt.Errorf("secret %s: %w", path, err)
	}
	secret, err = create(path)
	return secret, err == nil, err
}

// Replace makes a new secret in place of a lost one. What stands at path is
// kept under a dated name beside it.
func Replace(path string) ([]byte, error) {
	if _, err := os.Lstat(path); err == nil {
		aside := path + ".lost-" + time.Now().UTC().Format("20060102T150405.000000000Z")
		if err := os.Rename(path, aside); err != nil {
			return nil, fmt.Errorf("setting the lost secret aside: %w", err)
		}
	}
	return create(path)
}

// usable tells a secret from what a failing disk leaves: too little, or zeros.
func usable(b []byte) bool {
	if len(b) < Size {
		return false
	}
	for _, c := range b {
		if c != 0 {
			return true
		}
	}
	return false
}

// empty reports whether there is nothing at path, or an empty file.
func empty(path string) bool {
	fi, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	return err == nil && fi.Mode().IsRegular() && fi.Size() == 0
}

func create(path string) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the secret: %w", err)
	}
	b := make([]byte, Size)
	rand.Read(b) // never fails
	if err := atomicfile.Write(path, b, 0o600); err != nil {
		return nil, fmt.Errorf("making the secret: %w", err)
	}
	return b, nil
}
