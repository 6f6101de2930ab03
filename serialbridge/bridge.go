// Package serialbridge carries SIP2 between self-check stations and the
// library system, one loop per station, and asks the gate what becomes of each
// checkout.
package serialbridge

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"sip2gate/dedup"
	"sip2gate/serialbridge/ils"
	"sip2gate/serialbridge/port"
	"sip2gate/serialbridge/sip2"
)

// Gate is what the bridge needs of a *dedup.Gate.
type Gate interface {
	Now() time.Duration
	Keys() *dedup.Keyer
	Store() dedup.Store
	Admit(ctx context.Context, r *dedup.Request) (dedup.Verdict, error)
	BeginChange(ctx context.Context, object []byte) (*dedup.Change, error)
	Settle(ctx context.Context, seen dedup.Record, rd dedup.Reading) (dedup.Settled, dedup.Record, error)
	Delivered(ctx context.Context, r dedup.Record)
	Touch(ctx context.Context, r *dedup.Request)
	Answer(r *dedup.Record) ([]byte, error)
	Request(r *dedup.Record) ([]byte, error)
	Doubts() []dedup.Record
	NegativeFrom(r dedup.Record) time.Duration
	Sweep(ctx context.Context) (int, error)
}

// WANDown says what stations get while the ILS cannot be reached.
type WANDown string

const (
	Answer WANDown = "answer" // well-formed refusals, and a 98 that says so
	Silent WANDown = "silent" // nothing: it starts a kiosk's offline mode
	Close  WANDown = "close"  // the connection is closed
)

// Checksum says how trailers of stations are judged.
type Checksum string

const (
	ChecksumAuto   Checksum = "auto"   // once a station has sent a right one
	ChecksumStrict Checksum = "strict" // from the first frame
	ChecksumOff    Checksum = "off"
)

// Messages are the gate's own texts for the patron, in the station's charset.
type Messages struct{ Down, Doubt, Conflict, Lent []byte }

// Station is one configured station. Exactly one of Open and Listen is set.
type Station struct {
	Name string
	// Open opens the line of a serial or dial station.
	Open func(ctx context.Context) (port.Conn, error)
	// Listen opens the port of a station whose kiosks connect.
	Listen func() (Listener, error)
	// MaxConnections bounds the kiosks on one port; default 32.
	MaxConnections int
	// WireTime is how long n bytes take on the line; nil: no time.
	WireTime func(n int) time.Duration

	Timeout    time.Duration // the kiosk's own; default 15 s
	Retries    int           // the kiosk's own
	Delimiter  byte          // default '|'
	Terminator sip2.Terminator
	Messages   Messages
}

// Listener hands out connections of kiosks. *port.Listener is one.
type Listener interface {
	Accept(ctx context.Context) (net.Conn, error)
	Addr() net.Addr
	Close() error
}

// Login is the account for stations whose kiosks don't log in.
type Login struct{ User, Password, Location string }

// Config is all that a bridge needs.
type Config struct {
	Stations []Station
	WANDown  WANDown
	Checksum Checksum
	Login    Login
	Target   dedup.Digest // which ILS this is; as given to the gate
	Logger   *slog.Logger
	// Clock is the wall clock, and whether it is known to be right; nil: it
	// is not. It goes into no decision.
	Clock func() (now time.Time, right bool)
}

// Bridge runs all stations.
type Bridge struct {
	cfg      Config
	gate     Gate
	srv      *ils.Server
	log      *slog.Logger
	stations []*station
	hearts   hearts
}

// New makes a bridge; it starts nothing.
func New(cfg Config, gate Gate, srv *ils.Server) *Bridge {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	b := &Bridge{cfg: cfg, gate: gate, srv: srv, log: cfg.Logger}
	for _, sc := range cfg.Stations {
		b.stations = append(b.stations, newStation(b, sc))
	}
	return b
}

// Run serves all stations until ctx ends, and returns when all have ended:
// what is owed by the ILS has been read and stored by then, or the ILS timeout
// has passed. A station that fails never ends the others.
func (b *Bridge) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, st := range b.stations {
		wg.Go(func() { st.run(ctx) })
		wg.Go(func() { st.settleDoubts(ctx) })
	}
	wg.Go(func() { b.sweep(ctx) })
	wg.Wait()
	return nil
}

// sweepEvery is shorter than stuckAfter: a sweep that hangs is noticed.
const sweepEvery = 20 * time.Second

func (b *Bridge) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	heart := b.hearts.start("the store's sweep")
	defer heart.stop()
	for {
		heart.beat() // a sweep goes through the store's writer
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := b.gate.Sweep(ctx); err != nil && ctx.Err() == nil {
				b.log.Error("sweep_failed", "error", err.Error())
			}
			for _, st := range b.stations {
				st.forget(b.gate.Now(), st.horizon())
			}
		}
	}
}

// StationState is what a station shows of itself.
type StationState struct {
	Name    string
	Open    bool   // the port is open
	Why     string // why not
	LinkBad bool   // a link's last attempt failed
}

// Stations reports on every station, for health and status.
func (b *Bridge) Stations() []StationState {
	out := make([]StationState, len(b.stations))
	for i, st := range b.stations {
		out[i] = st.state()
	}
	return out
}

// WaitOpen returns when every station has opened its port or failed to once.
func (b *Bridge) WaitOpen(ctx context.Context) error {
	for _, st := range b.stations {
		select {
		case <-st.tried:
		case <-ctx.Done():
			return fmt.Errorf("wait for the ports: %w", context.Cause(ctx))
		}
	}
	return nil
}
