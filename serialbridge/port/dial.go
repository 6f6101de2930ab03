package port

import (
	"context"
	"net"
	"time"
)

// A peer that has lost its power or its cable says nothing; the kernel asks it,
// and ends the connection after keepAliveIdle plus keepAliveCount questions
// without an answer. One that has restarted denies the connection at the first
// question. Data on its way is given up after the same time (peerSilence).
const (
	keepAliveIdle     = 10 * time.Second
	keepAliveInterval = 5 * time.Second
	keepAliveCount    = 6
	peerSilence       = keepAliveIdle + keepAliveCount*keepAliveInterval
)

// dialTimeout bounds a connect, name look-up included, whatever the context
// allows: a terminal server on the LAN answers sooner or not at all.
const dialTimeout = 10 * time.Second

var keepAlive = net.KeepAliveConfig{
	Enable:   true,
	Idle:     keepAliveIdle,
	Interval: keepAliveInterval,
	Count:    keepAliveCount,
}

// Dial connects to a terminal server (ser2net, Moxa, Digi) in TCP server mode
// at addr, "host:port". The name is resolved anew and all its addresses are
// tried; ctx, or ten seconds, bounds all of it. Bytes are sent without delay
// (TCP_NODELAY), and a peer that has fallen silent is found by keep-alive. The
// error names the address.
func Dial(ctx context.Context, addr string) (Conn, error) {
	d := net.Dialer{Timeout: dialTimeout, KeepAliveConfig: keepAlive, Control: limitSilence}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return c, nil
}
