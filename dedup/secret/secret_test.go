package secret_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"sip2gate/dedup/secret"
)

func TestLoadFirstStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "secret")
	made, created, err := secret.Load(path, false)
	if err != nil || !created || len(made) != secret.Size {
		t.Fatalf("Load = %d bytes, %v, %v", len(made), created, err)
	}
	for _, storeExists := range []bool{false, true} {
		again, created, err := secret.Load(path, storeExists)
		if err != nil || created || !bytes.Equal(again, made) {
			t.Errorf("second Load: the same %v, created %v, %v", bytes.Equal(again, made), created, err)
		}
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && fi.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, want 0600", fi.Mode())
	}
	other, _, err := secret.Load(filepath.Join(t.TempDir(), "secret"), false)
	if err != nil || bytes.Equal(other, made) {
		t.Errorf("two secrets are the same")
	}
	// Nothing is left beside it.
	if names, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(names) != 1 {
		t.Errorf("files: %v", names)
	}
}

func TestLoadLost(t *testing.T) {
	tests := []struct {
		name  string
		make  func(path string) error
		fresh bool // on a first start it is made
	}{
		{"missing", func(string) error { return nil }, true},
		{"empty", func(p string) error { return os.WriteFile(p, nil, 0o600) }, true},
		{"short", func(p string) error { return os.WriteFile(p, make([]byte, 31), 0o600) }, false},
		{"zeros", func(p string) error { return os.WriteFile(p, make([]byte, 32), 0o600) }, false},
		{"a directory", func(p string) error { return os.Mkdir(p, 0o700) }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "secret")
			if err := test.make(path); err != nil {
				t.Fatal(err)
			}
			if _, _, err := secret.Load(path, true); !errors.Is(err, secret.ErrLost) {
				t.Errorf("beside a store: %v, want ErrLost", err)
			}
			_, created, err := secret.Load(path, false)
			if created != test.fresh || (err == nil) != test.fresh || errors.Is(err, secret.ErrLost) {
				t.Errorf("without a store: created %v, %v", created, err)
			}
		})
	}
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "secret")
	if err := os.WriteFile(path, []byte("half of a sec"), 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := secret.Replace(path)
	if err != nil {
		t.Fatal(err)
	}
	loaded, _, err := secret.Load(path, true)
	if err != nil || !bytes.Equal(loaded, made) {
		t.Errorf("Load after Replace: %v", err)
	}
	kept, _ := filepath.Glob(path + ".lost-*")
	if len(kept) != 1 {
		t.Fatalf("the lost secret was not kept: %v", kept)
	}
	if b, err := os.ReadFile(kept[0]); err != nil || string(b) != "half of a sec" {
		t.Errorf("kept %q, %v", b, err)
	}
	if _, err := secret.Replace(filepath.Join(dir, "none")); err != nil {
		t.Errorf("Replace of nothing: %v", err)
	}
}

func TestLoadCannotWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file", "secret")
	if err := os.WriteFile(filepath.Dir(path), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var pathErr *fs.PathError
	if _, created, err := secret.Load(path, false); created || !errors.As(err, &pathErr) {
		t.Errorf("Load = created %v, %v; want a path error", created, err)
	}
}
