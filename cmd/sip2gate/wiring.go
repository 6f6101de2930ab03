package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"sip2gate/cmd/sip2gate/internal/config"
	"sip2gate/serialbridge"
	"sip2gate/serialbridge/ils"
	"sip2gate/serialbridge/port"
	"sip2gate/serialbridge/sip2"
)

// earliest is a time that has surely passed: a clock that is behind it is
// wrong, and certificates are not judged by it.
var earliest = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

// wallSeconds is the wall clock for staff lists; 0 where it cannot be right.
func wallSeconds() int64 {
	if now := time.Now(); now.After(earliest) {
		return now.Unix()
	}
	return 0
}

// passingSecret is one for this run only, where none can be kept.
func passingSecret() []byte {
	b := make([]byte, 32)
	rand.Read(b) // never fails since Go 1.24
	return b
}

var terminators = map[string]sip2.Terminator{
	"auto": sip2.TerminatorAuto, "cr": sip2.TerminatorCR,
	"crlf": sip2.TerminatorCRLF, "lf": sip2.TerminatorLF,
}

// newBridge wires a checked file to the rooms below.
func newBridge(c *config.Config, g *openedGate, times *timekeeper, log *slog.Logger) (*serialbridge.Bridge, error) {
	server := ils.Config{
		Address: c.ILS.Address, Timeout: c.ILS.Timeout, Resolve: c.ILS.Resolve,
		Terminator: terminators[c.ILS.Terminator], Logger: log,
	}
	if c.ILS.TLS {
		t, err := tlsConfig(c.ILS, times.now)
		if err != nil {
			return nil, err
		}
		server.TLS = t
	}
	password, err := c.ILS.LoginPassword()
	if err != nil {
		return nil, fmt.Errorf("read the login password: %w", err)
	}
	bc := serialbridge.Config{
		WANDown:  serialbridge.WANDown(c.ILS.WANDown),
		Checksum: serialbridge.Checksum(c.Gate.Checksum),
		Login:    serialbridge.Login{User: c.ILS.LoginUser, Password: password, Location: c.ILS.Location},
		Target:   g.target,
		Logger:   log,
		Clock:    trustedClock,
	}
	for i := range c.Stations {
		s, err := station(&c.Stations[i], c.Messages)
		if err != nil {
			return nil, err
		}
		bc.Stations = append(bc.Stations, s)
	}
	return serialbridge.New(bc, g.Gate, ils.NewServer(server)), nil
}

func station(c *config.Station, m config.Messages) (serialbridge.Station, error) {
	s := serialbridge.Station{
		Name: c.Name, Timeout: c.Timeout, Retries: c.Retries, MaxConnections: c.MaxConnections,
		Delimiter: c.Delimiter, Terminator: terminators[c.Terminator],
	}
	for _, text := range []struct {
		to   *[]byte
		from string
	}{
		{&s.Messages.Down, m.Down}, {&s.Messages.Doubt, m.Doubt},
		{&s.Messages.Conflict, m.Conflict}, {&s.Messages.Lent, m.Lent},
	} {
		b, err := config.Encode(c.Charset, text.from)
		if err != nil {
			return s, fmt.Errorf("station %s: a message in its charset: %w", c.Name, err)
		}
		*text.to = b
	}
	switch {
	case c.Serial != "":
		line := port.Serial{Path: c.Serial, Baud: c.Baud, DataBits: c.DataBits,
			Parity: c.Parity, StopBits: c.StopBits, Flow: c.Flow}
		s.Open = func(context.Context) (port.Conn, error) {
			conn, err := port.OpenSerial(line)
			if err != nil {
				return nil, serialHelp(err)
			}
			return conn, nil
		}
		s.WireTime = line.WireTime
	case c.Dial != "":
		addr := c.Dial
		s.Open = func(ctx context.Context) (port.Conn, error) { return port.Dial(ctx, addr) }
	default:
		addr, allow := c.Listen, c.Allow
		s.Listen = func() (serialbridge.Listener, error) {
			l, err := port.Listen(addr, allow)
			if err != nil {
				return nil, listenHelp(err)
			}
			return l, nil
		}
	}
	return s, nil
}

// tlsConfig judges certificates by the time that now gives.
func tlsConfig(c config.ILS, now func() time.Time) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName, Time: now}
	if t.ServerName == "" {
		host, _, err := net.SplitHostPort(c.Address)
		if err != nil {
			return nil, fmt.Errorf("the ILS address: %w", err)
		}
		t.ServerName = host
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the certificate authority: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read the certificate authority %s: no certificate in it", c.CAFile)
		}
	}
	return t, nil
}
