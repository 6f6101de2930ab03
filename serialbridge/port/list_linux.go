package port

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// List returns the serial ports of this machine, sorted by device. It reads
// sysfs and the links under /dev/serial and opens no port, since opening one
// changes its speed: a running line is not disturbed. No port at all is an
// empty list, not an error.
func List() ([]Info, error) { return list("/") }

// list is List under another root directory.
func list(root string) ([]Info, error) {
	class := filepath.Join(root, "sys/class/tty")
	entries, err := os.ReadDir(class)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	byID := links(filepath.Join(root, "dev/serial/by-id"))
	byPath := links(filepath.Join(root, "dev/serial/by-path"))

	var ports []Info
	var ids []string          // the identity of each port, beside ports
	count := map[string]int{} // ports by identity
	for _, e := range entries {
		dir, ok := hardware(filepath.Join(class, e.Name()))
		if !ok {
			continue
		}
		p := Info{Device: "/dev/" + e.Name(), ByID: byID[e.Name()], ByPath: byPath[e.Name()]}
		u, isUSB := readUSB(dir, filepath.Join(root, "sys"))
		id := ""
		if isUSB {
			id = u.identity()
			p.What = u.words()
			p.Path = cmp.Or(p.ByPath, p.ByID, p.Device)
			if u.serial != "" {
				p.Path = cmp.Or(p.ByID, p.ByPath, p.Device)
			}
			count[id]++
		} else {
			p.What = onBoard(dir)
			p.Path = p.Device
		}
		if readAttr(filepath.Join(class, e.Name()), "console") == "Y" {
			p.What += ", in use as kernel console"
		}
		ports, ids = append(ports, p), append(ids, id)
	}
	for i := range ports {
		if p := &ports[i]; count[ids[i]] > 1 {
			p.Ambiguous = true
			p.Path = cmp.Or(p.ByPath, p.Device)
		}
	}
	slices.SortFunc(ports, func(a, b Info) int { return natural(a.Device, b.Device) })
	return ports, nil
}

// hardware returns the real directory of the device behind a tty class entry;
// false for virtual terminals and for the places the kernel keeps for 8250
// ports that are not fitted.
func hardware(entry string) (dir string, ok bool) {
	dir, err := filepath.EvalSymlinks(filepath.Join(entry, "device"))
	if err != nil || readAttr(entry, "type") == "0" { // PORT_UNKNOWN
		return "", false
	}
	return dir, true
}

// links reads a directory of links to devices: kernel name to the link's path
// as seen on the machine. Of several links to one device the shortest is taken;
// newer versions of udev add longer ones that name the USB version.
func links(dir string) map[string]string {
	m := map[string]string{}
	entries, _ := os.ReadDir(dir) // without udev there is no such directory
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		name := filepath.Base(target)
		link := "/dev/serial/" + filepath.Base(dir) + "/" + e.Name()
		if old := m[name]; old == "" || len(link) < len(old) {
			m[name] = link
		}
	}
	return m
}

// usb is what sysfs knows of a USB serial adapter.
type usb struct {
	vendor, product, serial string // as in the descriptors; may all be empty
	vid, pid                string
	iface, port             string // which of the adapter's ports this is
}

// readUSB looks for the USB device that the tty's device directory belongs to.
func readUSB(dir, sys string) (usb, bool) {
	u := usb{port: readAttr(dir, "port_number")}
	if sys, err := filepath.EvalSymlinks(sys); err == nil {
		for ; len(dir) > len(sys); dir = filepath.Dir(dir) {
			if u.iface == "" {
				u.iface = readAttr(dir, "bInterfaceNumber")
			}
			if vid := readAttr(dir, "idVendor"); vid != "" {
				u.vid, u.pid = vid, readAttr(dir, "idProduct")
				u.vendor, u.product = readAttr(dir, "manufacturer"), readAttr(dir, "product")
				u.serial = readAttr(dir, "serial")
				return u, true
			}
		}
	}
	return usb{}, false
}

// identity is all that udev makes a by-id name of.
func (u usb) identity() string {
	return strings.Join([]string{u.vid, u.pid, u.vendor, u.product, u.serial, u.iface, u.port}, "\x00")
}

func (u usb) words() string {
	name := u.product
	if !strings.HasPrefix(name, u.vendor) {
		name = u.vendor + " " + name
	}
	if name = strings.TrimSpace(name); name == "" {
		name = "USB adapter"
	}
	if u.serial == "" {
		name += " (" + u.vid + ":" + u.pid + "), no serial number"
	} else {
		name += ", serial " + u.serial
	}
	if u.port != "" && u.port != "0" {
		name += ", port " + u.port
	} else if u.iface != "" && u.iface != "00" {
		name += ", interface " + u.iface
	}
	return name
}

// onBoard names a port that is not on USB by its driver.
func onBoard(dir string) string {
	// Since Linux 6.5 a "port" and a "ctrl" device stand between tty and UART.
	for range 4 {
		driver, err := os.Readlink(filepath.Join(dir, "driver"))
		switch name := filepath.Base(driver); {
		case err != nil || name == "port" || name == "ctrl":
			dir = filepath.Dir(dir)
		case name == "uart-pl011":
			return "PL011 UART on the board"
		case name == "bcm2835-aux-uart":
			return "mini UART on the board (it has no parity)"
		default:
			return "serial port, driver " + printable(name)
		}
	}
	return "serial port"
}

// readAttr reads a one-line attribute; empty if there is none.
func readAttr(dir, name string) string {
	b, _ := os.ReadFile(filepath.Join(dir, name))
	return printable(strings.TrimSpace(string(b)))
}

// printable drops what could upset a terminal: descriptors are foreign text.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return -1
	}, s)
}

// natural orders names so that ttyUSB2 comes before ttyUSB10.
func natural(a, b string) int {
	pa, pb := strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")
	return cmp.Or(cmp.Compare(pa, pb), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
