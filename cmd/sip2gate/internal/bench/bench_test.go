package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// BenchmarkPass is the round trip of a request that is not gated, from a
// kiosk on a socket to an ILS that answers at once, and back.
func BenchmarkPass(b *testing.B) {
	ils := startILS(b)
	b.Run("direct", func(b *testing.B) { pass(b, ils) })
	b.Run("socat", func(b *testing.B) {
		socat, err := exec.LookPath("socat")
		if err != nil {
			b.Skip("socat is not installed")
		}
		addr := freePorts(b, 1)[0]
		_, port, _ := net.SplitHostPort(addr)
		start(b, addr, exec.Command(socat, "TCP-LISTEN:"+port+",bind=127.0.0.1,reuseaddr,fork,nodelay", "TCP:"+ils+",nodelay"))
		pass(b, addr)
	})
	b.Run("gate", func(b *testing.B) { pass(b, startGate(b, ils, 1)[0]) })
}

func pass(b *testing.B, addr string) {
	k := connect(b, addr)
	frame := []byte("1720261130    101520AOMAIN|AB31234000000022|AC|AY4AZF416\r")
	k.exchange(b, frame) // connects the rest of the way
	b.ReportAllocs()
	for b.Loop() {
		k.exchange(b, frame)
	}
}

// BenchmarkCheckout is a first checkout, each of another item: claimed on the
// disk, forwarded, answered. Beside it stand one durable insert of a record of
// the same size into bbolt with its own defaults on the same disk, and what a
// repeat costs.
func BenchmarkCheckout(b *testing.B) {
	ils := startILS(b)
	b.Run("bbolt-insert", func(b *testing.B) {
		db, err := bbolt.Open(filepath.Join(diskDir(b), "raw.db"), 0o600, nil)
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		value := bytes.Repeat([]byte{1}, 700)
		n := 0
		for b.Loop() {
			breathe(b)
			n++
			key := fmt.Appendf(nil, "%032d", n)
			err := db.Update(func(tx *bbolt.Tx) error {
				bucket, err := tx.CreateBucketIfNotExists([]byte("claims"))
				if err != nil {
					return err
				}
				return bucket.Put(key, value)
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("first", func(b *testing.B) {
		k := connect(b, startGate(b, ils, 1)[0])
		n := 0
		for b.Loop() {
			breathe(b)
			n++
			k.exchange(b, checkout(n))
		}
	})
	b.Run("repeat", func(b *testing.B) {
		k := connect(b, startGate(b, ils, 1)[0])
		k.exchange(b, checkout(1))
		for b.Loop() {
			k.exchange(b, checkout(1))
		}
	})
	b.Run("64-stations", func(b *testing.B) {
		addrs := startGate(b, ils, 64)
		kiosks := make([]*kiosk, len(addrs))
		for i, a := range addrs {
			kiosks[i] = connect(b, a)
		}
		next, mu := 0, sync.Mutex{}
		take := func() int { mu.Lock(); defer mu.Unlock(); next++; return next }
		b.ResetTimer()
		var wg sync.WaitGroup
		for _, k := range kiosks {
			wg.Go(func() {
				for n := take(); n <= b.N; n = take() {
					k.exchange(b, checkout(n))
				}
			})
		}
		wg.Wait()
	})
}

// breathe is the pause between two scans, not counted: a patron takes longer
// than the disk needs for what nobody waits for.
func breathe(b *testing.B) {
	b.StopTimer()
	<-time.After(10 * time.Millisecond)
	b.StartTimer()
}

func checkout(n int) []byte {
	return fmt.Appendf(nil, "11YN20261130    101500                  AOMAIN|AA21234000000011|AB%014d|AC|BON|BIN|\r", n)
}

type kiosk struct {
	conn net.Conn
	in   *bufio.Reader
}

func connect(b *testing.B, addr string) *kiosk {
	b.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return &kiosk{conn, bufio.NewReader(conn)}
}

func (k *kiosk) exchange(b *testing.B, frame []byte) {
	if _, err := k.conn.Write(frame); err != nil {
		b.Error(err)
		return
	}
	answer, err := k.in.ReadSlice('\r')
	if err != nil {
		b.Error(err)
		return
	}
	if frame[0] == '1' && frame[1] == '1' && !bytes.HasPrefix(answer, []byte("121")) {
		b.Errorf("the answer to a checkout was %q", answer)
	}
}

// startILS answers each 17 and 11 at once, with next to no work.
func startILS(b *testing.B) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serveILS(c)
		}
	}()
	return l.Addr().String()
}

func serveILS(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	item := []byte("1804000120261130    101521CF0|AH20261221    235900|AB31234000000022|AJThe Long Rain|AY4AZEB21\r")
	var out []byte
	for {
		frame, err := in.ReadSlice('\r')
		if err != nil {
			return
		}
		out = append(out[:0], item...)
		if i := bytes.Index(frame, []byte("|AB")); bytes.HasPrefix(frame, []byte("11")) && i > 0 {
			out = fmt.Appendf(out[:0], "121NNY20261130    101501AOMAIN|AA21234000000011|AB%s|AJThe Long Rain|AH20261221    235900|\r", frame[i+3:i+17])
		}
		if _, err := c.Write(out); err != nil {
			return
		}
	}
}

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sip2gate-bench-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sip2gate")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "sip2gate/cmd/sip2gate")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the gate: %w: %s", err, out)
	}
	return path, nil
})

// diskDir is a folder on the disk that the benchmark was started on; the
// system's temporary folder may be in memory.
func diskDir(b *testing.B) string {
	dir, err := os.MkdirTemp(".", "bench-state-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// startGate runs the built gate with n listening stations.
func startGate(b *testing.B, ils string, n int) []string {
	b.Helper()
	path, err := build()
	if err != nil {
		b.Fatal(err)
	}
	dir := diskDir(b)
	var file strings.Builder
	fmt.Fprintf(&file, "[ils]\naddress = %q\n[log]\nlevel = \"warn\"\n", ils)
	addrs := freePorts(b, n)
	for i := range addrs {
		fmt.Fprintf(&file, "[[station]]\nname = \"k%d\"\nlisten = %q\n", i+1, addrs[i])
	}
	toml := filepath.Join(dir, "gate.toml")
	if err := os.WriteFile(toml, []byte(file.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	start(b, addrs[n-1], exec.Command(path, "run", toml))
	for _, a := range addrs {
		await(b, a)
	}
	return addrs
}

func start(b *testing.B, addr string, cmd *exec.Cmd) {
	b.Helper()
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill() // its exit says nothing of the figures
		_ = cmd.Wait()
		if b.Failed() {
			b.Logf("%s said: %s", cmd.Path, stderr.String())
		}
	})
	await(b, addr)
}

// await returns when something accepts connections at addr.
func await(b *testing.B, addr string) {
	b.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-tick.C {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return
		}
	}
	b.Fatalf("nothing listens at %s", addr)
}

// freePorts finds n ports that are free, all different.
func freePorts(b *testing.B, n int) []string {
	addrs := make([]string, n)
	for i := range addrs {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		addrs[i] = l.Addr().String()
	}
	return addrs
}
