package pty

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

func open() (*Pair, error) {
	// O_NONBLOCK puts the file into the runtime's poller: deadlines work.
	m, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	n, err := prepare(m)
	if err != nil {
		m.Close()
		return nil, err
	}
	return &Pair{Master: m, Path: "/dev/pts/" + strconv.Itoa(n)}, nil
}

// prepare unlocks the far end, makes it raw and returns its number.
func prepare(m *os.File) (n int, err error) {
	conn, err := m.SyscallConn()
	if err != nil {
		return 0, err
	}
	cerr := conn.Control(func(fd uintptr) { n, err = prepareFD(int(fd)) })
	if err == nil {
		err = cerr
	}
	return n, err
}

func prepareFD(fd int) (int, error) {
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return 0, fmt.Errorf("unlock: %w", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return 0, fmt.Errorf("number: %w", err)
	}
	// On the master these act on the other end. Without raw mode it would echo
	// what a kiosk sends before the gate has opened it.
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return 0, fmt.Errorf("get settings: %w", err)
	}
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, t); err != nil {
		return 0, fmt.Errorf("set raw mode: %w", err)
	}
	return n, nil
}
