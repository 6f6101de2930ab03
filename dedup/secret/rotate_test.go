package secret_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"sip2gate/dedup/secret"
)

func former(t *testing.T, path string) [][]byte {
	t.Helper()
	got, err := secret.Former(path)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRotate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if got := former(t, filepath.Join(path, "nowhere")); got != nil {
		t.Errorf("before the first start: %d secrets", len(got))
	}
	if _, err := secret.Rotate(path); err == nil {
		t.Error("a secret that is not there was rotated")
	}
	all := make([][]byte, 4)
	var err error
	if all[0], _, err = secret.Load(path, false); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(all); i++ {
		if all[i], err = secret.Rotate(path); err != nil {
			t.Fatal(err)
		}
		if now, created, err := secret.Load(path, true); err != nil || created || !bytes.Equal(now, all[i]) {
			t.Errorf("rotation %d: the file holds another secret, or none: %v", i, err)
		}
		got := former(t, path)
		if len(got) != i || !bytes.Equal(got[0], all[i-1]) || !bytes.Equal(got[i-1], all[0]) {
			t.Errorf("rotation %d: %d secrets are kept, or not the newest first", i, len(got))
		}
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != 4 {
		t.Fatalf("files: %q, %v", files, err)
	}
	for _, file := range files {
		fi, err := os.Stat(file)
		if err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", filepath.Base(file), fi.Mode(), err)
		}
	}
	if err := secret.Erase(path, all[1]); err != nil {
		t.Fatal(err)
	}
	if got := former(t, path); len(got) != 2 || !bytes.Equal(got[0], all[2]) || !bytes.Equal(got[1], all[0]) {
		t.Errorf("after one was erased: %d", len(got))
	}
	if _, err := secret.Rotate(path); err != nil { // its number comes after the others'
		t.Fatal(err)
	}
	if got := former(t, path); len(got) != 3 || !bytes.Equal(got[0], all[3]) {
		t.Errorf("rotated after an erasure: %d", len(got))
	}
}

// A crash between the two files of a rotation leaves the current secret in
// both places: it is not one of the former ones.
func TestRotateInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	current, _, err := secret.Load(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".former-1", current, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := former(t, path); len(got) != 0 {
		t.Errorf("the current secret is listed as a former one")
	}
	if _, err := secret.Rotate(path); err != nil {
		t.Fatal(err)
	}
	if got := former(t, path); len(got) != 1 || !bytes.Equal(got[0], current) {
		t.Errorf("%d secrets after the rotation was made again", len(got))
	}
	if err := secret.Erase(path, current); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(path + ".former-*"); len(left) != 0 {
		t.Errorf("a copy of the erased secret is left: %q", left)
	}
}
