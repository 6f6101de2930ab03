package main

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// listenHelp adds to the error of a port that cannot be listened on what a
// technician can do about it.
func listenHelp(err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: another program has this port; end it (sudo ss -ltnp tells which), or give the station another port", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: this machine has no such address now; for all of its addresses write 0.0.0.0 in place of the host", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: a port below 1024 is for root alone; choose a higher one, such as 6101, also on the kiosk", err)
	}
	return err
}

// serialHelp does so for a serial port.
func serialHelp(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: the user that runs sip2gate must be in the group of the serial ports: sudo usermod -a -G dialout %s, then log in again or restart the service", err, thisUser())
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: plug the adapter in; sip2gate ports prints the names that there are", err)
	}
	return err
}
