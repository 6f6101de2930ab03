package dedup

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"golang.org/x/crypto/chacha20poly1305"
)

// ErrSeal is returned when sealed bytes do not authenticate: they were
// damaged, belong elsewhere, or were sealed under another secret.
var ErrSeal = errors.New("sealed value does not authenticate")

// Sealer hides small values (a request, an answer, a remembered login) under
// a key derived from the secret. It is safe for concurrent use.
type Sealer struct{ aead cipher.AEAD }

// NewSealer derives the key for one purpose from the secret.
func NewSealer(secret []byte, purpose string) (*Sealer, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "sip2gate seal "+purpose, chacha20poly1305.KeySize)
	if err != nil {
		return nil, fmt.Errorf("derive the key for %s: %w", purpose, err)
	}
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, fmt.Errorf("set up sealing for %s: %w", purpose, err)
	}
	return &Sealer{aead}, nil
}

// Seal hides plain and binds it to the label: it opens under no other.
func (s *Sealer) Seal(label, plain []byte) []byte {
	nonce := make([]byte, s.aead.NonceSize(), s.aead.NonceSize()+len(plain)+s.aead.Overhead())
	rand.Read(nonce) // never fails since Go 1.24
	return s.aead.Seal(nonce, nonce, plain, label)
}

// Open returns what was sealed under the label, or ErrSeal.
func (s *Sealer) Open(label, sealed []byte) ([]byte, error) {
	n := s.aead.NonceSize()
	if len(sealed) < n {
		return nil, ErrSeal
	}
	plain, err := s.aead.Open(nil, sealed[:n], sealed[n:], label)
	if err != nil {
		return nil, ErrSeal
	}
	return plain, nil
}
