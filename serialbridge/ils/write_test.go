package ils_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"sip2gate/serialbridge/ils"
)

// C-055: a peer that stops reading. The write ends at its deadline and the
// link with it; only what may have left is in doubt.
func TestC055WriteEndsAtItsDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		takes int // bytes that still fit into the socket
		sent  bool
	}{"some bytes fit": {40, true}, "none fits": {0, false}} {
		t.Run("C-055 "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there := net.Pipe()
				srv := ils.NewServer(ils.Config{Address: "ils:6001", Timeout: 10 * time.Second,
					DialContext: func(context.Context, string, string) (net.Conn, error) { return here, nil }})
				link := srv.NewLink('|', ils.Hooks{}, nil)
				defer link.Close(t.Context())
				if c.takes > 0 {
					go func() { _, _ = there.Read(make([]byte, c.takes)) }()
				}
				begin := time.Now()
				_, err := link.Do(t.Context(), ils.Request{Frame: []byte("11YN20261130    101500                  AOMAIN|AAx|ABy|AC|")})
				if err == nil || ils.Sent(err) != c.sent {
					t.Errorf("got %v, sent %v; want an error, sent %v", err, ils.Sent(err), c.sent)
				}
				if d := time.Since(begin); d != 10*time.Second {
					t.Errorf("it ended after %v", d)
				}
				if link.Up() {
					t.Error("the link is still up")
				}
				if _, err := there.Read(make([]byte, 1)); err == nil {
					t.Error("the connection is still open")
				}
			})
		})
	}
}
