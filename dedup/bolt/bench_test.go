package bolt_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"sip2gate/dedup"
	"sip2gate/dedup/bolt"
	"sip2gate/dedup/clock"
)

// loan is a claim as the gate makes it: about 700 bytes.
func loan(n uint64, at time.Duration) dedup.Record {
	hash := func(what string) dedup.Digest {
		return sha256.Sum256(binary.BigEndian.AppendUint64([]byte(what), n))
	}
	r := dedup.Record{
		Key: hash("key"), Object: hash("object"), Subject: hash("subject"),
		State:     dedup.Claimed,
		Compared:  []dedup.Digest{hash("BO"), hash("AD")},
		Target:    sha256.Sum256([]byte("ils.example.org:6001")),
		Station:   "kiosk-1",
		Scope:     "MAIN",
		Label:     fmt.Sprintf("3100000%07d", n),
		ClaimedAt: at,
		TouchedAt: at,
		Since:     1796133569,
		Request:   make([]byte, 360),
	}
	r.Pair = r.Key
	key := hash("token")
	copy(r.Token[:], key[:])
	return r
}

// lend is what the gate does with the store for one loan: the claim, its
// completion, and the note that the answer was delivered.
func lend(b testing.TB, s *bolt.Store, n uint64, window time.Duration) {
	ctx := b.Context()
	now := s.Clock().Now()
	r := loan(n, now)
	if standing, err := s.Insert(ctx, r, now); err != nil || standing != nil {
		b.Fatalf("Insert = %v, %v", standing, err)
	}
	r, _ = s.Get(r.Key)
	r.State, r.CompletedAt, r.Expires = dedup.Completed, now+1, now+window
	r.Answer = make([]byte, 400)
	// Written behind in the gate, and on the disk long before the next loan
	// begins; waited for here so that it is counted as such.
	r, err := s.Update(ctx, r, dedup.Synced)
	if err != nil {
		b.Fatal(err)
	}
	r.Delivered = true
	if _, err := s.Update(ctx, r, dedup.Lazy); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkLoan measures what one loan hands to pwrite, by page size and by
// how many loans are in the store and in one time slice.
func BenchmarkLoan(b *testing.B) {
	for _, pageSize := range []int{1024, 4096} {
		for _, live := range []int{50, 1000, 10000} {
			b.Run(fmt.Sprintf("page=%d/live=%d", pageSize, live), func(b *testing.B) {
				benchmarkLoan(b, pageSize, live)
			})
		}
	}
}

func benchmarkLoan(b *testing.B, pageSize, live int) {
	source := clock.NewManual("boot", 0)
	o := options(b, b.TempDir()).WithPageSize(pageSize)
	o.Source = source
	// One loan a second, and ten slices in the window.
	window := time.Duration(live) * time.Second
	o.Slice = window / 10
	s, _ := open(b, o)
	for n := range live {
		lend(b, s, uint64(n), window)
		source.Advance(time.Second)
	}
	n := uint64(live)
	began := written(b)
	for b.Loop() {
		lend(b, s, n, window)
		n++
		source.Advance(time.Second)
		if n%20 == 0 {
			if _, err := s.Sweep(b.Context(), s.Clock().Now()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(written(b)-began)/float64(n-uint64(live)), "bytes/loan")
	if fi, err := os.Stat(o.Path); err == nil {
		b.ReportMetric(float64(fi.Size()), "file-bytes")
	}
}

// BenchmarkClaim compares a durable claim with a plain durable insert of as
// many bytes into bbolt, on the same disk in the same run.
func BenchmarkClaim(b *testing.B) {
	for _, claimers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("raw/claimers=%d", claimers), func(b *testing.B) { benchmarkRaw(b, claimers) })
		b.Run(fmt.Sprintf("store/claimers=%d", claimers), func(b *testing.B) { benchmarkClaim(b, claimers) })
	}
}

func benchmarkClaim(b *testing.B, claimers int) {
	o := options(b, b.TempDir())
	s, _ := open(b, o)
	share(b, claimers, b.N, func(n uint64) error {
		_, err := s.Insert(b.Context(), loan(n, time.Duration(n)*50*time.Millisecond), 0)
		return err
	})
}

// BenchmarkClaimRatio takes turns between the two, so that whatever else the
// disk does falls on both, and reports the ratio of the medians.
func BenchmarkClaimRatio(b *testing.B) {
	s, _ := open(b, options(b, b.TempDir()))
	raw := rawInsert(b)
	var n uint64
	var claims, raws []time.Duration
	for b.Loop() {
		n++
		began := time.Now()
		if err := raw(n); err != nil {
			b.Fatal(err)
		}
		half := time.Now()
		if _, err := s.Insert(b.Context(), loan(n, time.Duration(n)*50*time.Millisecond), 0); err != nil {
			b.Fatal(err)
		}
		raws = append(raws, half.Sub(began))
		claims = append(claims, time.Since(half))
	}
	slices.Sort(raws)
	slices.Sort(claims)
	claim, plain := claims[len(claims)/2], raws[len(raws)/2]
	b.ReportMetric(float64(claim)/float64(plain), "claim/insert")
	b.ReportMetric(float64(claim), "ns/claim-p50")
	b.ReportMetric(float64(plain), "ns/insert-p50")
}

func benchmarkRaw(b *testing.B, claimers int) {
	share(b, claimers, b.N, rawInsert(b))
}

// rawInsert is a durable insert into a plain bbolt file, of as many bytes.
func rawInsert(b *testing.B) func(n uint64) error {
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "raw.db"), 0o600, &bbolt.Options{PageSize: 1024, NoFreelistSync: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	bucket := []byte("records")
	return func(n uint64) error {
		key := sha256.Sum256(binary.BigEndian.AppendUint64(nil, n))
		return db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(bucket)
			if err != nil {
				return err
			}
			return b.Put(key[:], make([]byte, 700))
		})
	}
}

// share has so many goroutines do the inserts.
func share(b *testing.B, goroutines, inserts int, insert func(n uint64) error) {
	var next atomic.Uint64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range goroutines {
		wg.Go(func() {
			for n := next.Add(1); n <= uint64(inserts); n = next.Add(1) {
				if err := insert(n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkOpen opens, and so reads and authenticates, a store that a crash
// has left.
func BenchmarkOpen(b *testing.B) {
	for _, records := range []int{100, 10000} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			dir := b.TempDir()
			o := options(b, dir)
			s, _ := open(b, o)
			share(b, 64, records, func(n uint64) error {
				_, err := s.Insert(b.Context(), loan(n, time.Duration(n)*time.Second), 0)
				return err
			})
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				s, report, err := bolt.Open(b.Context(), o)
				if err != nil || report.Records != records {
					b.Fatalf("%+v, %v", report, err)
				}
				b.StopTimer()
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
