package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEventsAreExplained holds that the technician's page has every event that
// the program can log.
func TestEventsAreExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/technician.md")
	if err != nil {
		t.Fatal(err)
	}
	event := regexp.MustCompile(`\.(?:Debug|Info|Warn|Error|event|tell)\("([^"]+)"`)
	name := regexp.MustCompile(`^[a-z]+(_[a-z]+)+$`)
	found := 0
	for _, dir := range []string{"..", "../../serialbridge", "../../dedup"} {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range event.FindAllStringSubmatch(string(source), -1) {
				found++
				if !name.MatchString(m[1]) {
					t.Errorf("%s: %q is no name for an event", path, m[1])
				} else if !strings.Contains(string(page), "`"+m[1]+"`") {
					t.Errorf("%s: the event %s is not explained", path, m[1])
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 50 {
		t.Errorf("only %d places where events are logged were found", found)
	}
}
