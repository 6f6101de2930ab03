package dedup_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"sip2gate/dedup"
)

// The keys are a contract: another implementation with the same secret must
// come to the same.
func TestKeys(t *testing.T) {
	data, err := os.ReadFile("testdata/keys.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		var v struct {
			Secret                    string
			Mode                      string `json:"sequence_mode"`
			Institution, Patron, Item string
			Sequence                  *string
			Key                       string
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		n++
		var sequence []byte
		if v.Sequence != nil {
			sequence = []byte(*v.Sequence)
		}
		k := dedup.NewKeyer([]byte(v.Secret), v.Mode == "match")
		id := k.Identify([]byte(v.Institution), []byte(v.Patron), []byte(v.Item), sequence)
		if got := dedup.KeyString(id.Key); got != v.Key {
			t.Errorf("line %d: key %s, want %s", n, got, v.Key)
		}
		if v.Mode == "ignore" && id.Pair != id.Key {
			t.Errorf("line %d: in ignore mode the pair is the key", n)
		}
		if strings.Contains(dedup.KeyString(id.Key), v.Patron) {
			t.Errorf("line %d: the key shows the patron", n)
		}
	}
	if n != 9 {
		t.Errorf("%d vectors read, want 9", n)
	}
}

func TestIdentity(t *testing.T) {
	k := dedup.NewKeyer([]byte("a secret"), false)
	base := k.Identify([]byte("MAIN"), []byte("p"), []byte("i"), nil)
	for _, c := range []struct {
		name                       string
		scope, subject, object     string
		key, objectSame, subjectOK bool
	}{
		{"the same", "MAIN", "p", "i", true, true, true},
		{"blanks round the item", "MAIN", "p", "\r\n i\t", true, true, true},
		{"blanks round the patron", "MAIN", " p ", "i", true, true, true},
		{"other institution", "BRANCH", "p", "i", false, true, true},
		{"blank institution is another", " MAIN", "p", "i", false, true, true},
		{"other patron", "MAIN", "q", "i", false, true, false},
		{"other item", "MAIN", "p", "j", false, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := k.Identify([]byte(c.scope), []byte(c.subject), []byte(c.object), []byte("7"))
			if got := id.Key == base.Key; got != c.key {
				t.Errorf("same key: %v, want %v", got, c.key)
			}
			if got := id.Object == base.Object; got != c.objectSame {
				t.Errorf("same item: %v, want %v", got, c.objectSame)
			}
			if got := id.Subject == base.Subject; got != c.subjectOK {
				t.Errorf("same patron: %v, want %v", got, c.subjectOK)
			}
		})
	}
	if other := dedup.NewKeyer([]byte("another"), false).Identify([]byte("MAIN"), []byte("p"), []byte("i"), nil); other.Key == base.Key || other.Subject == base.Subject {
		t.Error("another secret gives the same digests")
	} else if other.Object != base.Object {
		t.Error("an item is found under one secret only")
	}
}

func TestFingerprint(t *testing.T) {
	k := dedup.NewKeyer([]byte("a secret"), false)
	a := k.Identify([]byte("MAIN"), []byte("p"), []byte("i"), nil)
	b := k.Identify([]byte("MAIN"), []byte("q"), []byte("i"), nil)
	values := [][]byte{[]byte("N"), []byte("4711")}
	fa, fb := k.Fingerprint(a.Pair, values), k.Fingerprint(b.Pair, values)
	if fa[1] == fb[1] {
		t.Error("the same PIN of two patrons shows as the same")
	}
	swapped := k.Fingerprint(a.Pair, [][]byte{values[1], values[0]})
	if swapped[0] == fa[1] {
		t.Error("a value digests the same in another place")
	}
	r := dedup.Record{Compared: fa}
	for _, c := range []struct {
		name            string
		fee, pin        string
		partial, stored bool
		want            bool
	}{
		{"equal", "N", "4711", false, false, true},
		{"other PIN", "N", "4712", false, false, false},
		{"no PIN", "N", "", false, false, false},
		{"fee accepted", "Y", "4711", false, false, false},
		{"an upload without PIN", "N", "", true, false, true},
		{"an upload with the fee accepted", "Y", "", true, false, false},
		{"stored from an upload", "N", "4712", false, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.Partial = c.stored
			f := k.Fingerprint(a.Pair, [][]byte{[]byte(c.fee), []byte(c.pin)})
			if got := dedup.SameRequest(&r, f, c.partial); got != c.want {
				t.Errorf("same request: %v, want %v", got, c.want)
			}
		})
	}
}

func TestSeal(t *testing.T) {
	s, err := dedup.NewSealer([]byte("a secret"), "payload")
	if err != nil {
		t.Fatal(err)
	}
	plain := []byte("11YN20261130    101500AA21234000000011|")
	sealed := s.Seal([]byte("label"), plain)
	if bytes.Contains(sealed, []byte("21234000000011")) {
		t.Error("sealed bytes show the patron")
	}
	if again := s.Seal([]byte("label"), plain); bytes.Equal(again, sealed) {
		t.Error("sealing twice gives the same bytes")
	}
	if got, err := s.Open([]byte("label"), sealed); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("opened %q, %v", got, err)
	}
	other, _ := dedup.NewSealer([]byte("a secret"), "another purpose")
	for name, open := range map[string]func() ([]byte, error){
		"other label":   func() ([]byte, error) { return s.Open([]byte("labe1"), sealed) },
		"other purpose": func() ([]byte, error) { return other.Open([]byte("label"), sealed) },
		"cut":           func() ([]byte, error) { return s.Open([]byte("label"), sealed[:len(sealed)-1]) },
		"empty":         func() ([]byte, error) { return s.Open([]byte("label"), nil) },
	} {
		if got, err := open(); err != dedup.ErrSeal || got != nil {
			t.Errorf("%s: opened %q, %v", name, got, err)
		}
	}
	for i := range sealed {
		damaged := bytes.Clone(sealed)
		damaged[i] ^= 0x10
		if _, err := s.Open([]byte("label"), damaged); err != dedup.ErrSeal {
			t.Fatalf("a flipped bit at %d was not noticed", i)
		}
	}
}
