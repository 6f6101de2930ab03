//go:build !linux

package main

import "testing"

func smallDisk(t *testing.T, _ int) string {
	t.Helper()
	t.Skip("a small file system is mounted on Linux only")
	return ""
}
