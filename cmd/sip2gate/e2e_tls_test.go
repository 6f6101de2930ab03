package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sip2gate/serialbridge/sim"
)

// authority is a certificate authority of a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // PEM
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "library CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key, file}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// certificate is one for a server of this name, valid till then.
func (a *authority) certificate(t *testing.T, name string, till time.Time) tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: till,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// front stands before an ILS and ends TLS. It keeps what came over the wire.
type front struct {
	ln      net.Listener
	mu      sync.Mutex
	wire    bytes.Buffer // as it came, before TLS
	pipes   sync.WaitGroup
	version uint16 // of the last handshake
}

// newFront serves TLS, or, without a configuration, plain text.
func newFront(t *testing.T, ils *sim.ILS, c *tls.Config) *front {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &front{ln: ln}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			raw, err := ln.Accept()
			if err != nil {
				return
			}
			f.pipes.Go(func() { f.serve(raw, ils.Addr(), c) })
		}
	})
	t.Cleanup(func() { // after the gate's, which closes its connections
		ln.Close()
		accepting.Wait()
		ils.Close()
		f.pipes.Wait()
	})
	return f
}

func (f *front) serve(raw net.Conn, target string, c *tls.Config) {
	defer raw.Close()
	var near net.Conn = &tapped{raw, f}
	if c != nil {
		t := tls.Server(near, c)
		if t.Handshake() != nil {
			return
		}
		f.mu.Lock()
		f.version = t.ConnectionState().Version
		f.mu.Unlock()
		near = t
	}
	far, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer far.Close()
	f.pipes.Go(func() {
		_, _ = io.Copy(near, far)
		raw.Close()
	})
	_, _ = io.Copy(far, near)
}

// tapped keeps what is read.
type tapped struct {
	net.Conn
	f *front
}

func (c *tapped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.f.wire.Write(b[:n])
	return n, err
}

func (f *front) received() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return bytes.Clone(f.wire.Bytes())
}

func TestTLSToTheILS(t *testing.T) {
	t.Parallel()
	const name = "ils.library.example"
	soon := time.Now().Add(time.Hour)
	for _, tt := range []struct {
		name   string
		cert   func(t *testing.T, own, foreign *authority) tls.Certificate
		server func(c *tls.Config)
		plain  bool   // the ILS speaks no TLS
		noName bool   // server_name is not set: the host of the address counts
		down   string // in the error of ils_down; empty: it works
	}{
		{name: "own CA", cert: func(t *testing.T, own, _ *authority) tls.Certificate { return own.certificate(t, name, soon) }},
		{name: "TLS 1.2", cert: func(t *testing.T, own, _ *authority) tls.Certificate { return own.certificate(t, name, soon) },
			server: func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }},
		{name: "TLS 1.1", cert: func(t *testing.T, own, _ *authority) tls.Certificate { return own.certificate(t, name, soon) },
			server: func(c *tls.Config) { c.MaxVersion = tls.VersionTLS11 }, down: "protocol version"},
		{name: "other CA", cert: func(t *testing.T, _, foreign *authority) tls.Certificate { return foreign.certificate(t, name, soon) },
			down: "certificate signed by unknown authority"},
		{name: "other name", cert: func(t *testing.T, own, _ *authority) tls.Certificate {
			return own.certificate(t, "other.example", soon)
		},
			down: "not " + name},
		{name: "name of the address", noName: true,
			cert: func(t *testing.T, own, _ *authority) tls.Certificate { return own.certificate(t, name, soon) },
			down: "127.0.0.1"},
		{name: "expired", cert: func(t *testing.T, own, _ *authority) tls.Certificate {
			return own.certificate(t, name, time.Now().Add(-time.Hour))
		}, down: "certificate has expired"},
		{name: "ILS without TLS", plain: true, down: "TLS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ils := startILS(t, people(sim.Koha))
			own, foreign := newAuthority(t), newAuthority(t)
			var c *tls.Config
			if !tt.plain {
				c = &tls.Config{Certificates: []tls.Certificate{tt.cert(t, own, foreign)}, MinVersion: tls.VersionTLS10}
				if tt.server != nil {
					tt.server(c)
				}
			}
			f := newFront(t, ils, c)
			link := fmt.Sprintf("tls = true\nca_file = %q\n", own.file)
			if !tt.noName {
				link += fmt.Sprintf("server_name = %q\n", name)
			}
			addr := freePort(t)
			g := startGate(t, setup{ils: f.ln.Addr().String(), link: link + "timeout = \"2s\"", stations: []string{listen(addr)}})
			k := connect(t, addr)
			frame := k.CheckoutFrame(reader1, item1, base(0))
			first := k.ask(frame)
			if wire := f.received(); leaks(wire) != nil || bytes.Contains(wire, []byte(item1)) {
				t.Errorf("plain text on the wire: %q", wire)
			} else if len(wire) == 0 || wire[0] != 22 { // a TLS record with a handshake
				t.Errorf("this is not how TLS begins: %q", wire)
			}
			if tt.down == "" {
				if !lent(answer(first)) {
					t.Errorf("over TLS: %q", first)
				}
				same(t, k.ask(frame), first)
				wantCount(t, ils, item1, oneLoan)
				return
			}
			if !refused(answer(first)) {
				t.Errorf("without a link: %q", first)
			}
			e := g.event("ils_down")
			if !strings.Contains(e.text("error"), tt.down) {
				t.Errorf("the event does not say %q: %v", tt.down, e)
			}
			if ils.Received("11") != 0 {
				t.Error("the ILS was sent a checkout")
			}
			wantCount(t, ils, item1, count{})
		})
	}
}
