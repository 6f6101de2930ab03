package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sip2gate/dedup/internal/atomicfile"
)

// suffixFormer and a number name a secret before the current one.
const suffixFormer = ".former-"

// Former returns the secrets before the one in the file at path that are still
// kept, the newest first. The current one is not among them: after a crash in
// the middle of Rotate its file may stand there too.
func Former(path string) ([][]byte, error) {
	current, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the secret: %w", err)
	}
	numbers, err := formerNumbers(path)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, n := range slices.Backward(numbers) {
		b, err := os.ReadFile(formerPath(path, n))
		if err != nil {
			return nil, fmt.Errorf("reading a secret before the current one: %w", err)
		}
		known := slices.ContainsFunc(out, func(o []byte) bool { return bytes.Equal(o, b) })
		if usable(b) && !known && !bytes.Equal(b, current) {
			out = append(out, b)
		}
	}
	return out, nil
}

// Rotate makes a new secret in the file at path. The current one is kept beside
// it, readable by the owner alone, until Erase. Both are on the disk when it
// returns. After an error, or a crash, the file holds the one or the other, and
// the current one is not lost.
func Rotate(path string) ([]byte, error) {
	current, err := os.ReadFile(path)
	if err == nil && !usable(current) {
		err = fmt.Errorf("it has %d usable bytes, not %d", len(current), Size)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the secret: %w", err)
	}
	numbers, err := formerNumbers(path)
	if err != nil {
		return nil, err
	}
	next := 1
	if len(numbers) > 0 {
		next = numbers[len(numbers)-1] + 1
	}
	if err := atomicfile.Write(formerPath(path, next), current, 0o600); err != nil {
		return nil, fmt.Errorf("keeping the current secret: %w", err)
	}
	return create(path)
}

// Erase removes a secret before the current one. The bytes are overwritten
// first; what a flash card keeps of them is out of reach.
func Erase(path string, secret []byte) error {
	numbers, err := formerNumbers(path)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		name := formerPath(path, n)
		b, err := os.ReadFile(name)
		if err == nil && bytes.Equal(b, secret) {
			err = overwrite(name, len(b))
		}
		if err != nil {
			return fmt.Errorf("erasing a secret that is not needed any more: %w", err)
		}
	}
	return nil
}

func overwrite(name string, n int) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, n))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return atomicfile.Remove(name)
}

func formerPath(path string, n int) string { return path + suffixFormer + strconv.Itoa(n) }

// formerNumbers are those of the files that are there, in rising order.
func formerNumbers(path string) ([]int, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for secrets before the current one: %w", err)
	}
	var numbers []int
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), filepath.Base(path)+suffixFormer); ok {
			if n, err := strconv.Atoi(rest); err == nil && n > 0 {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}
