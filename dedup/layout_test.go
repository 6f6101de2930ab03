package dedup_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The decision knows nothing of SIP2 or of who asks: that keeps it usable for
// other protocols, and testable without any.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./...").Output()
	if err != nil {
		t.Skipf("go list is not to be had: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "sip2gate/") && !strings.HasPrefix(line, "sip2gate/dedup") {
			t.Errorf("dedup imports %s", line)
		}
	}
}
