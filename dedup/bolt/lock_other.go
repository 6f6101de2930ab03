//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package bolt

import "os"

// tryLock relies on bbolt's own lock where there is no flock.
func tryLock(*os.File) (bool, error) { return true, nil }
