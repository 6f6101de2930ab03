package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"os"
	"time"

	"go.etcd.io/bbolt"
)

const (
	metaMagic  = 0xED0CDAED
	pageHeader = 16 // bytes before the meta in its page
	metaLen    = 64 // of which the last eight are the sum of the others
)

// validMetas counts the meta pages of a bbolt file that hold together. There
// are two, written in turn: with one of them damaged bbolt silently goes back
// to the commit before the last.
func validMetas(path string) (int, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n := 0
	if _, ok := metaAt(f, 0); ok {
		n++
	}
	// The second page begins where the first says, or, if that is damaged,
	// at one of the sizes that there are.
	for size := int64(1 << 10); size <= 1<<16; size <<= 1 {
		if own, ok := metaAt(f, size); ok && own == size {
			return n + 1, nil
		}
	}
	return n, nil
}

func metaAt(r io.ReaderAt, at int64) (pageSize int64, ok bool) {
	var m [metaLen]byte
	if _, err := r.ReadAt(m[:], at+pageHeader); err != nil {
		return 0, false
	}
	h := fnv.New64a()
	h.Write(m[:metaLen-8])
	ne := binary.NativeEndian // bbolt writes its structures as they lie in memory
	if ne.Uint32(m[:]) != metaMagic || ne.Uint64(m[metaLen-8:]) != h.Sum64() {
		return 0, false
	}
	return int64(ne.Uint32(m[8:])), true
}

// CheckFile examines the structure of the store file at path and reads every
// page that is in use, without changing anything. It is meant to be run in a
// process of its own: on some kinds of damage the reading process dies, or
// does not come to an end, and whoever started it must take that for the
// answer too. It needs no secret, so it does not tell whether what is in the
// records is right.
func CheckFile(path string) error {
	return guard(func() error {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: 2 * time.Second})
		if err != nil {
			return fmt.Errorf("opening %s: %w", path, err)
		}
		err = db.View(func(tx *bbolt.Tx) error {
			for err := range tx.Check() {
				return fmt.Errorf("checking %s: %w: %w", path, ErrDamaged, err)
			}
			return touchAll(tx)
		})
		if err != nil {
			return err // the file may be past closing
		}
		return db.Close()
	})
}

// touchAll reads every byte of every entry: a page that is not there faults.
func touchAll(tx *bbolt.Tx) error {
	sum := crc32.NewIEEE()
	return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
		return b.ForEach(func(k, v []byte) error {
			sum.Write(k)
			sum.Write(v)
			return nil
		})
	})
}
