package bolt_test

import (
	"bufio"
	"fmt"
	"os"
	"testing"
)

// written is how many bytes this process has handed to write and pwrite.
func written(t testing.TB) (n int64) {
	f, err := os.Open("/proc/self/io")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "wchar: %d", &n); err == nil {
			return n
		}
	}
	t.Skip("the kernel does not count what is written")
	return 0
}
