//go:build unix

package main

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// ownerOf is the name of who owns what is at path, or the number; empty if that
// cannot be told.
func ownerOf(path string) string {
	fi, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	id := strconv.FormatUint(uint64(st.Uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}
