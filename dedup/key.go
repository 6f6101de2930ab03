package dedup

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Namespace stands in front of every key that is written out.
const Namespace = "sip2:checkout:"

// KeyString is the key as logs and staff commands print it.
func KeyString(key Digest) string { return Namespace + key.String() }

// Identity is what a transmission says of its transaction, as digests.
type Identity struct {
	Key     Digest // scope, subject, object and, in "match" mode, sequence
	Pair    Digest // the same without the sequence
	Object  Digest // of the item alone; the same under every secret
	Subject Digest
}

// ObjectDigest is by what the records of one object are found. No secret goes
// in: an item stands in clear in its record, and with one digest for all
// secrets an object has one lock and one place in the index, whatever secret
// its records were made under.
func ObjectDigest(object []byte) Digest {
	h := sha256.New()
	h.Write([]byte("item:"))
	h.Write(Trim(object))
	return sumOf(h)
}

// Keyer turns the clear identity of a transaction into digests. The subject
// goes in as an HMAC, so that a key cannot be traced to a patron without the
// secret. It is safe for concurrent use.
type Keyer struct {
	secret []byte
	match  bool
}

// NewKeyer uses the secret's bytes as they are. With match the sequence is
// part of the identity.
func NewKeyer(secret []byte, match bool) *Keyer {
	return &Keyer{secret: append([]byte(nil), secret...), match: match}
}

// Name tells the secrets of one gate apart, in their records. It is never 0.
func (k *Keyer) Name() uint32 {
	sum := k.mac("name:", nil)
	return binary.BigEndian.Uint32(sum[:]) | 1
}

// Identify digests one transaction. Bytes up to 0x20 at both ends of subject
// and object do not count: scanners add blanks.
func (k *Keyer) Identify(scope, subject, object, sequence []byte) Identity {
	subject, object = Trim(subject), Trim(object)

	var patron [64]byte
	sum := k.mac("patron:", subject)
	hex.Encode(patron[:], sum[:])

	h := sha256.New()
	h.Write(scope)
	h.Write([]byte{'|'})
	h.Write(patron[:])
	h.Write([]byte{'|'})
	h.Write(object)
	id := Identity{
		Pair:    sumOf(h),
		Object:  ObjectDigest(object),
		Subject: k.mac("subject:", subject),
	}
	id.Key = id.Pair
	if k.match {
		h.Write([]byte{'|'})
		h.Write(sequence)
		id.Key = sumOf(h)
	}
	return id
}

// Fingerprint digests the byte strings that must be equal in a true repeat.
// The key goes in too, so that equal values of two transactions do not show.
func (k *Keyer) Fingerprint(pair Digest, compared [][]byte) []Digest {
	out := make([]Digest, len(compared))
	for i, value := range compared {
		m := hmac.New(sha256.New, k.secret)
		m.Write([]byte("compared:"))
		m.Write([]byte{byte(i)})
		m.Write(pair[:])
		m.Write(value)
		out[i] = sumOf(m)
	}
	return out
}

// Digest is a keyed digest for any other purpose, named by label.
func (k *Keyer) Digest(label string, value []byte) Digest { return k.mac(label, value) }

func (k *Keyer) mac(label string, value []byte) Digest {
	m := hmac.New(sha256.New, k.secret)
	m.Write([]byte(label))
	m.Write(value)
	return sumOf(m)
}

func sumOf(h hash.Hash) Digest {
	var d Digest
	h.Sum(d[:0])
	return d
}

// Trim drops bytes up to 0x20 at both ends, without copying.
func Trim(b []byte) []byte {
	for len(b) > 0 && b[0] <= ' ' {
		b = b[1:]
	}
	for len(b) > 0 && b[len(b)-1] <= ' ' {
		b = b[:len(b)-1]
	}
	return b
}
