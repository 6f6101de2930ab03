// Package config reads the one TOML file of a gate: from the bytes that an
// editor left behind to plain typed values with every default filled in.
//
// It reports every problem of a file at once, each with its line and column
// and with what to type instead, because the reader is a technician in front
// of a kiosk who wants to edit the file once.
package config

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"
)

// A Config is a whole file with the defaults filled in. It is a plain value:
// nothing in it refers to the file any more.
type Config struct {
	Gate     Gate
	ILS      ILS
	Stations []Station // in file order, at least one
	Messages Messages
	Status   Status
	Log      Log
}

// Gate holds the settings of the decision: what is one transaction, for how
// long, and where that is remembered.
type Gate struct {
	Mode           string        // "enforce"
	Window         time.Duration // how long a finished checkout is remembered
	Sequence       string        // "ignore" or "match"
	Checksum       string        // "auto", "strict" or "off"
	StateDir       string        // relative to the file's own folder if not absolute there
	SecretFile     string        // in StateDir unless set
	Store          string        // "bolt"
	DoubtRetention time.Duration // how long the sealed request of a doubt is kept
}

// ILS says where the library system is and how it is spoken to.
type ILS struct {
	Address           string        // host:port
	Timeout           time.Duration // bounds each of connect, login and answer
	Settle            time.Duration // the longest an unanswered request may still be carried out
	WANDown           string        // "answer", "silent" or "close"
	Resolve           []string      // message codes of the reads that settle a doubt
	TLS               bool
	CAFile            string // PEM; empty means the system's authorities
	ServerName        string // empty means the host of Address
	LoginUser         string // empty means that the kiosks log in themselves
	LoginPasswordFile string
	Location          string
	Terminator        string // "auto", "cr", "crlf" or "lf"
}

// A Station is one kiosk, or one port that several kiosks connect to. Exactly
// one of Serial, Listen and Dial is set.
type Station struct {
	Name string

	Serial   string // device
	Baud     int
	DataBits int    // 7 or 8
	Parity   string // "none", "even" or "odd"
	StopBits int    // 1 or 2
	Flow     string // "none", "rtscts" or "xonxoff"

	Listen         string         // host:port, host may be empty
	Allow          []netip.Prefix // nil means every address
	MaxConnections int

	Dial string // host:port

	Timeout    time.Duration // as set on the kiosk
	Retries    int           // as set on the kiosk; the first attempt is not counted
	Delimiter  byte
	Charset    string // of the gate's own messages
	Terminator string // "auto", "cr", "crlf" or "lf"
}

// Horizon is how long after its first attempt the kiosk may still repeat a
// request by itself.
func (s Station) Horizon() time.Duration { return time.Duration(s.Retries+1) * s.Timeout }

// Messages are the gate's own words to the patron, one screen line each.
type Messages struct {
	Down     string // the library system cannot be reached
	Doubt    string // it is not known whether the loan was made
	Conflict string // a different request for the same loan
	Lent     string // a loan that a read has shown
}

// Status says where the status page is served.
type Status struct {
	Listen string
	Allow  []netip.Prefix // nil means every address
}

// Log says how much is logged, and in which form.
type Log struct {
	Level  string // "debug", "info", "warn" or "error"
	Format string // "json" or "text"
}

func defaults() *Config {
	return &Config{
		Gate: Gate{
			Mode:           "enforce",
			Window:         90 * time.Second,
			Sequence:       "ignore",
			Checksum:       "auto",
			StateDir:       "state",
			Store:          "bolt",
			DoubtRetention: 336 * time.Hour,
		},
		ILS: ILS{
			Timeout:    10 * time.Second,
			Settle:     60 * time.Second,
			WANDown:    "answer",
			Resolve:    []string{"63", "17"},
			Terminator: "auto",
		},
		Messages: Messages{
			Down:     "The library system cannot be reached. Please try again or ask staff.",
			Doubt:    "Your loan could not be confirmed. Please ask staff.",
			Conflict: "This request differs from one just made. Please ask staff.",
			Lent:     "Already on loan to you.",
		},
		Status: Status{Listen: "127.0.0.1:8080"},
		Log:    Log{Level: "info", Format: "json"},
	}
}

func defaultStation() Station {
	return Station{
		Baud:           9600,
		DataBits:       8,
		Parity:         "none",
		StopBits:       1,
		Flow:           "none",
		MaxConnections: 32,
		Timeout:        15 * time.Second,
		Retries:        2,
		Delimiter:      '|',
		Charset:        "ascii",
		Terminator:     "auto",
	}
}

// Summary says the values that decide how the gate works in one line, for
// check and for the log of a start.
func (c *Config) Summary() string {
	tls := "off"
	if c.ILS.TLS {
		tls = "on"
	}
	stations := "stations"
	if len(c.Stations) == 1 {
		stations = "station"
	}
	return fmt.Sprintf("ILS %s, TLS %s, window %s, sequence %s, %d %s",
		c.ILS.Address, tls, Span(c.Gate.Window), c.Gate.Sequence, len(c.Stations), stations)
}

// LoginPassword reads the password of LoginUser: the first line of its file.
// It is empty if no file is set. The password is not part of Config so that
// printing one cannot give it away.
func (i ILS) LoginPassword() (string, error) {
	if i.LoginPasswordFile == "" {
		return "", nil
	}
	data, err := os.ReadFile(i.LoginPasswordFile)
	if err != nil {
		return "", fmt.Errorf("read the login password: %w", err)
	}
	line, _, _ := strings.Cut(strings.TrimPrefix(string(data), "\ufeff"), "\n")
	line = strings.TrimSuffix(line, "\r")
	if line == "" {
		return "", fmt.Errorf("read the login password: %s: the first line is empty", i.LoginPasswordFile)
	}
	return line, nil
}

// Span prints a duration the way the file writes it: 90s, 5m, 336h.
func Span(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	if d > 0 && d < 10*time.Minute && d%time.Second == 0 && d%time.Minute != 0 {
		return fmt.Sprintf("%ds", d/time.Second) // 90s, not 1m30s
	}
	return s
}
