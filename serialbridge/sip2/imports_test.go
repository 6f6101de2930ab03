package sip2_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The codec must stay a function of its bytes, so that it can be tested and
// fuzzed to the last byte: standard library only, and of that nothing that does
// I/O, reads a clock or keeps state between callers.
func TestImports(t *testing.T) {
	pure := []string{"bytes", "iter", "strconv"}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if seen++; !slices.Contains(pure, path) {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
	if seen == 0 {
		t.Error("no imports found: is this the package's directory?")
	}
}
