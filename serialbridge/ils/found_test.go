package ils

import (
	"context"
	"io"
	"net"
	"testing"
	"time"
)

// A deadline that passes before the call stands must still end it.
func TestFoundTinyTimeout(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(io.Discard, c)
		}
	}()
	srv := NewServer(Config{Address: l.Addr().String(), Timeout: 10 * time.Second})
	frame := []byte("9900802.00")
	hang := 0
	for i := 0; i < 6000 && hang == 0; i++ {
		link := srv.NewLink('|', Hooks{}, nil)
		c, err := link.ensure(context.Background(), ReplayNone)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { defer close(done); link.exchange(c, frame, time.Duration(1+i%40)*time.Microsecond) }()
		select {
		case <-done:
		case <-time.After(2 * time.Second):
			hang++
			t.Errorf("round %d, timeout %d µs: the exchange has not ended after 2 s", i, 1+i%40)
			c.abort()
			<-done
		}
		link.Close(context.Background())
	}
}
