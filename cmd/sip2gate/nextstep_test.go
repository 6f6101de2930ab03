package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"sip2gate/cmd/sip2gate/internal/config"
)

// TestPortInUse: the event of the log is made of the error, so the error says
// what to do.
func TestPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s, err := station(&config.Station{Name: "k", Listen: taken.Addr().String(), Charset: "ascii"}, config.Messages{})
	if err != nil {
		t.Fatal(err)
	}
	if l, err := s.Listen(); l != nil || err == nil || !strings.Contains(err.Error(), "another program has this port") {
		t.Errorf("%v, %v", l, err)
	}
	s, err = station(&config.Station{Name: "k", Serial: "/dev/none/ttyUSB0", Charset: "ascii"}, config.Messages{})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := s.Open(t.Context()); c != nil || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "sip2gate ports") {
		t.Errorf("%v, %v", c, err)
	}
}

func TestNextSteps(t *testing.T) {
	for _, tt := range []struct {
		help  func(error) error
		errno syscall.Errno
		want  string // empty: nothing is added
	}{
		{listenHelp, syscall.EADDRNOTAVAIL, "write 0.0.0.0"},
		{listenHelp, syscall.EACCES, "choose a higher one"},
		{listenHelp, syscall.EMFILE, ""},
		{serialHelp, syscall.EACCES, "usermod -a -G dialout"},
		{serialHelp, syscall.EBUSY, ""},
	} {
		inner := fmt.Errorf("open: %w", os.NewSyscallError("bind", tt.errno))
		err := tt.help(inner)
		if !errors.Is(err, tt.errno) || !strings.HasPrefix(err.Error(), inner.Error()) || !strings.Contains(err.Error(), tt.want) ||
			(err.Error() == inner.Error()) != (tt.want == "") {
			t.Errorf("%v", err)
		}
	}
}
