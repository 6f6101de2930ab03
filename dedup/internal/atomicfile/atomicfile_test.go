package atomicfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"sip2gate/dedup/internal/atomicfile"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"first", "second", ""} {
		if err := atomicfile.Write(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Fatalf("the file holds %q, %v; want %q", got, err, text)
		}
	}
	only(t, dir, "file")
}

// What cannot be put in place leaves no litter and the old content.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, []byte("text"), 0o600); err == nil {
		t.Error("a file was written over a directory")
	}
	only(t, dir, "file")
	if err := atomicfile.Write(filepath.Join(dir, "none", "file"), nil, 0o600); err == nil {
		t.Error("a file was written into a directory that is not there")
	}
}

func TestRemove(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to do
		if err := atomicfile.Remove(path); err != nil {
			t.Error(err)
		}
	}
	only(t, dir)
}

func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(want) {
		t.Fatalf("the directory holds %v, %v; want %v", entries, err, want)
	}
	for i, e := range entries {
		if e.Name() != want[i] {
			t.Errorf("the directory holds %s, want %s", e.Name(), want[i])
		}
	}
}
