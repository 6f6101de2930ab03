package bolt

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/chacha20poly1305"

	"sip2gate/dedup"
)

// version is the first byte of everything sealed: a record, a value, the
// mark. It says how what follows is laid out.
const version = 1

var (
	errSealed  = errors.New("does not authenticate")
	errVersion = errors.New("has an unknown format")
	errShort   = errors.New("is cut short")
)

// sealer seals under a key derived from the secret. XChaCha20-Poly1305 it is
// because the boards have no AES instructions, and because its nonce is long
// enough to be random on a board that may forget any counter.
type sealer struct {
	aeads []cipher.AEAD // the first seals, all open
}

func newSealer(secrets ...[]byte) (*sealer, error) {
	s := &sealer{}
	for _, secret := range secrets {
		key, err := hkdf.Key(sha256.New, secret, nil, "sip2gate store v1", chacha20poly1305.KeySize)
		if err != nil {
			return nil, fmt.Errorf("deriving the store's key: %w", err)
		}
		aead, err := chacha20poly1305.NewX(key)
		if err != nil {
			return nil, fmt.Errorf("deriving the store's key: %w", err)
		}
		s.aeads = append(s.aeads, aead)
	}
	return s, nil
}

// seal binds plain to its place: the bucket and the key in it.
func (s *sealer) seal(bucket, key, plain []byte) []byte {
	aead := s.aeads[0]
	const head = 1 + chacha20poly1305.NonceSizeX
	out := make([]byte, head, head+len(plain)+aead.Overhead())
	out[0] = version
	rand.Read(out[1:head])
	return aead.Seal(out, out[1:head], plain, place(bucket, key))
}

// open undoes seal. former reports that it took one of the former secrets.
func (s *sealer) open(bucket, key, sealed []byte) (plain []byte, former bool, err error) {
	const head = 1 + chacha20poly1305.NonceSizeX
	if len(sealed) < head {
		return nil, false, errShort
	}
	if sealed[0] != version {
		return nil, false, errVersion
	}
	ad := place(bucket, key)
	for i, aead := range s.aeads {
		if plain, err := aead.Open(nil, sealed[1:head], sealed[head:], ad); err == nil {
			return plain, i > 0, nil
		}
	}
	return nil, false, errSealed
}

func place(bucket, key []byte) []byte {
	ad := binary.AppendUvarint([]byte{version}, uint64(len(bucket)))
	ad = append(ad, bucket...)
	return append(ad, key...)
}

const (
	flagMarked = 1 << iota
	flagDelivered
	flagPartial
	flagPair  // Pair equals Key and is left out
	flagUnder // Under is not 0
)

// appendRecord encodes r. Digests are fixed, all else is varints: a loan is
// written twice, and every byte counts on an SD card.
func appendRecord(b []byte, r *dedup.Record) []byte {
	var flags byte
	if r.Marked {
		flags |= flagMarked
	}
	if r.Delivered {
		flags |= flagDelivered
	}
	if r.Partial {
		flags |= flagPartial
	}
	if r.Pair == r.Key {
		flags |= flagPair
	}
	if r.Under != 0 {
		flags |= flagUnder
	}
	b = append(b, flags, byte(r.State))
	if r.Under != 0 {
		b = binary.BigEndian.AppendUint32(b, r.Under)
	}
	b = append(b, r.Key[:]...)
	if flags&flagPair == 0 {
		b = append(b, r.Pair[:]...)
	}
	b = append(b, r.Object[:]...)
	b = append(b, r.Subject[:]...)
	b = append(b, r.Target[:]...)
	b = append(b, r.Token[:]...)
	b = binary.AppendUvarint(b, r.Rev)
	for _, t := range []time.Duration{r.ClaimedAt, r.TouchedAt, r.CompletedAt, r.Expires} {
		b = binary.AppendVarint(b, int64(t))
	}
	b = binary.AppendVarint(b, r.Since)
	for _, s := range []string{r.Station, r.Scope, r.Label} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Compared)))
	for _, d := range r.Compared {
		b = append(b, d[:]...)
	}
	b = appendBytes(b, r.Request)
	return appendBytes(b, r.Answer)
}

// appendBytes keeps nil and empty apart: an erased request is nil.
func appendBytes(b, p []byte) []byte {
	if p == nil {
		return append(b, 0)
	}
	return append(binary.AppendUvarint(b, uint64(len(p))+1), p...)
}

// parseRecord undoes appendRecord.
func parseRecord(b []byte) (r dedup.Record, err error) {
	d := decoder{b: b}
	flags := d.byte()
	r.Marked = flags&flagMarked != 0
	r.Delivered = flags&flagDelivered != 0
	r.Partial = flags&flagPartial != 0
	r.State = dedup.State(d.byte())
	if flags&flagUnder != 0 {
		var under [4]byte
		d.copy(under[:])
		r.Under = binary.BigEndian.Uint32(under[:])
	}
	d.copy(r.Key[:])
	if r.Pair = r.Key; flags&flagPair == 0 {
		d.copy(r.Pair[:])
	}
	d.copy(r.Object[:])
	d.copy(r.Subject[:])
	d.copy(r.Target[:])
	d.copy(r.Token[:])
	r.Rev = d.uvarint()
	for _, t := range []*time.Duration{&r.ClaimedAt, &r.TouchedAt, &r.CompletedAt, &r.Expires} {
		*t = time.Duration(d.varint())
	}
	r.Since = d.varint()
	for _, s := range []*string{&r.Station, &r.Scope, &r.Label} {
		*s = string(d.take(d.uvarint()))
	}
	if n := d.uvarint(); n > uint64(len(d.b)/len(dedup.Digest{})) {
		d.failed = true
	} else if n > 0 {
		r.Compared = make([]dedup.Digest, n)
		for i := range r.Compared {
			d.copy(r.Compared[i][:])
		}
	}
	r.Request = d.bytes()
	r.Answer = d.bytes()
	return r, d.end()
}

// decoder reads what the append functions wrote. After a failure it yields
// zeros; end tells.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.failed = true
		d.b = nil
		return nil
	}
	p := d.b[:n:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) byte() byte {
	if p := d.take(1); len(p) == 1 {
		return p[0]
	}
	return 0
}

func (d *decoder) copy(to []byte) { copy(to, d.take(uint64(len(to)))) }

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	d.take(uint64(max(n, 0)))
	d.failed = d.failed || n <= 0
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	d.take(uint64(max(n, 0)))
	d.failed = d.failed || n <= 0
	return v
}

func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n == 0 {
		return nil
	}
	return append([]byte{}, d.take(n-1)...)
}

func (d *decoder) end() error {
	if d.failed || len(d.b) > 0 {
		return errShort
	}
	return nil
}
