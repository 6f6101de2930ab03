package port

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// limitSilence makes the kernel give up a connection whose peer has not
// acknowledged data for peerSilence: keep-alive asks only on an idle one, and
// without this the retransmissions go on for a quarter of an hour. Connections
// accepted inherit it from the listening socket.
func limitSilence(_, _ string, c syscall.RawConn) error {
	var err error
	cerr := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(peerSilence.Milliseconds()))
	})
	if cerr != nil {
		return cerr
	}
	return err
}
