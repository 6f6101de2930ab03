package port

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sip2gate/serialbridge/pty"
)

// tree is a made-up machine: files and links under a root of their own.
type tree struct {
	t    *testing.T
	root string
}

func newTree(t *testing.T) tree { return tree{t, t.TempDir()} }

func (f tree) path(name string) string {
	p := filepath.Join(f.root, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		f.t.Fatal(err)
	}
	return p
}

func (f tree) file(name, text string) {
	if err := os.WriteFile(f.path(name), []byte(text+"\n"), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// link makes name lead to target, both under the root, by a relative link as
// sysfs and udev make them.
func (f tree) link(name, target string) {
	rel, err := filepath.Rel(filepath.Dir(f.path(name)), f.path(target))
	if err == nil {
		err = os.Symlink(rel, f.path(name))
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f tree) dir(name string) { f.path(name + "/x") }

const bus = "sys/devices/platform/scb/fd500000.pcie/0000:01:00.0/usb1/1-1/"

// usb puts an adapter into socket (such as "1-1.2") as tty, with the given
// descriptors ("vid:pid", manufacturer, product, serial number; "" is absent).
func (f tree) usb(socket, tty, port, ids, vendor, product, serial string) {
	dev := bus + socket
	vid, pid, _ := strings.Cut(ids, ":")
	for name, text := range map[string]string{
		"idVendor": vid, "idProduct": pid, "manufacturer": vendor, "product": product, "serial": serial,
	} {
		if text != "" {
			f.file(dev+"/"+name, text)
		}
	}
	iface := dev + "/" + socket + ":1.0"
	f.file(iface+"/bInterfaceNumber", "00")
	f.file(iface+"/"+tty+"/port_number", port)
	f.dir(iface + "/" + tty + "/tty/" + tty)
	f.link(iface+"/"+tty+"/tty/"+tty+"/device", iface+"/"+tty)
	f.link("sys/class/tty/"+tty, iface+"/"+tty+"/tty/"+tty)
	f.file("dev/"+tty, "")
}

func TestList(t *testing.T) {
	f := newTree(t)
	// On the board: a PL011, with the devices that Linux 6.5 puts in between.
	uart := "sys/devices/platform/soc/fe201000.serial"
	f.link(uart+"/driver", "sys/bus/amba/drivers/uart-pl011")
	f.link(uart+"/fe201000.serial:0/driver", "sys/bus/serial-base/drivers/ctrl")
	f.link(uart+"/fe201000.serial:0/fe201000.serial:0.0/driver", "sys/bus/serial-base/drivers/port")
	tty := uart + "/fe201000.serial:0/fe201000.serial:0.0/tty/ttyAMA0"
	f.file(tty+"/type", "32")
	f.file(tty+"/console", "N")
	f.link(tty+"/device", uart+"/fe201000.serial:0/fe201000.serial:0.0")
	f.link("sys/class/tty/ttyAMA0", tty)
	// A mini UART in the older shape, with the kernel console on it.
	mini := "sys/devices/platform/soc/fe215040.serial"
	f.link(mini+"/driver", "sys/bus/platform/drivers/bcm2835-aux-uart")
	f.file(mini+"/tty/ttyS0/type", "4")
	f.file(mini+"/tty/ttyS0/console", "Y")
	f.link(mini+"/tty/ttyS0/device", mini)
	f.link("sys/class/tty/ttyS0", mini+"/tty/ttyS0")
	// An 8250 place without a chip, and terminals without hardware.
	none := "sys/devices/platform/serial8250/tty/ttyS1"
	f.file(none+"/type", "0")
	f.link(none+"/device", "sys/devices/platform/serial8250")
	f.link("sys/class/tty/ttyS1", none)
	f.dir("sys/devices/virtual/tty/tty1")
	f.link("sys/class/tty/tty1", "sys/devices/virtual/tty/tty1")

	f.usb("1-1.1", "ttyUSB0", "0", "0403:6001", "FTDI", "FT232R USB UART", "A50285BI")
	f.link("dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A50285BI-if00-port0", "dev/ttyUSB0")
	f.link("dev/serial/by-path/platform-fd500000.pcie-pci-0000:01:00.0-usb-0:1.1:1.0-port0", "dev/ttyUSB0")
	f.link("dev/serial/by-path/platform-fd500000.pcie-pci-0000:01:00.0-usbv2-0:1.1:1.0-port0", "dev/ttyUSB0")
	// Two CH340 without serial numbers: one by-id name, which the later one has.
	f.usb("1-1.2", "ttyUSB1", "0", "1a86:7523", "", "USB Serial", "")
	f.usb("1-1.3", "ttyUSB10", "0", "1a86:7523", "", "USB Serial", "")
	f.link("dev/serial/by-id/usb-1a86_USB_Serial-if00-port0", "dev/ttyUSB10")
	f.link("dev/serial/by-path/pci-usb-0:1.2:1.0-port0", "dev/ttyUSB1")
	f.link("dev/serial/by-path/pci-usb-0:1.3:1.0-port0", "dev/ttyUSB10")
	// One adapter with two ports shares its serial number but is not ambiguous.
	f.usb("1-1.4", "ttyUSB2", "0", "10c4:ea70", "Silicon Labs", "CP2105 Dual", "00D1")
	f.usb("1-1.4", "ttyUSB3", "1", "10c4:ea70", "Silicon Labs", "CP2105 Dual", "00D1")
	f.link("dev/serial/by-id/usb-Silicon_Labs_CP2105_Dual_00D1-if00-port0", "dev/ttyUSB2")
	f.link("dev/serial/by-id/usb-Silicon_Labs_CP2105_Dual_00D1-if00-port1", "dev/ttyUSB3")
	// A serial number is none if every adapter of the make has the same.
	f.usb("1-1.5", "ttyUSB4", "0", "10c4:ea60", "Silicon Labs", "CP2102", "0001")
	f.usb("1-1.6", "ttyUSB5", "0", "10c4:ea60", "Silicon Labs", "CP2102", "0001")
	f.link("dev/serial/by-id/usb-Silicon_Labs_CP2102_0001-if00-port0", "dev/ttyUSB5")
	f.link("dev/serial/by-path/pci-usb-0:1.6:1.0-port0", "dev/ttyUSB5")
	// Hostile descriptors, and no name at all.
	f.usb("1-1.7", "ttyUSB6", "0", "dead:beef", "Evil\x1b[2J", "\xff\x07Stick", "1")
	f.usb("1-1.8", "ttyUSB7", "0", "dead:0001", "", "", "")

	const id, path = "/dev/serial/by-id/", "/dev/serial/by-path/"
	want := []Info{
		{Path: "/dev/ttyAMA0", Device: "/dev/ttyAMA0", What: "PL011 UART on the board"},
		{Path: "/dev/ttyS0", Device: "/dev/ttyS0", What: "mini UART on the board (it has no parity), in use as kernel console"},
		{Path: id + "usb-FTDI_FT232R_USB_UART_A50285BI-if00-port0", Device: "/dev/ttyUSB0",
			What: "FTDI FT232R USB UART, serial A50285BI",
			ByID: id + "usb-FTDI_FT232R_USB_UART_A50285BI-if00-port0", ByPath: path + "platform-fd500000.pcie-pci-0000:01:00.0-usb-0:1.1:1.0-port0"},
		{Path: path + "pci-usb-0:1.2:1.0-port0", Device: "/dev/ttyUSB1",
			What: "USB Serial (1a86:7523), no serial number", ByPath: path + "pci-usb-0:1.2:1.0-port0", Ambiguous: true},
		{Path: id + "usb-Silicon_Labs_CP2105_Dual_00D1-if00-port0", Device: "/dev/ttyUSB2",
			What: "Silicon Labs CP2105 Dual, serial 00D1", ByID: id + "usb-Silicon_Labs_CP2105_Dual_00D1-if00-port0"},
		{Path: id + "usb-Silicon_Labs_CP2105_Dual_00D1-if00-port1", Device: "/dev/ttyUSB3",
			What: "Silicon Labs CP2105 Dual, serial 00D1, port 1", ByID: id + "usb-Silicon_Labs_CP2105_Dual_00D1-if00-port1"},
		{Path: "/dev/ttyUSB4", Device: "/dev/ttyUSB4",
			What: "Silicon Labs CP2102, serial 0001", Ambiguous: true},
		{Path: path + "pci-usb-0:1.6:1.0-port0", Device: "/dev/ttyUSB5", What: "Silicon Labs CP2102, serial 0001",
			ByID: id + "usb-Silicon_Labs_CP2102_0001-if00-port0", ByPath: path + "pci-usb-0:1.6:1.0-port0", Ambiguous: true},
		{Path: "/dev/ttyUSB6", Device: "/dev/ttyUSB6", What: "Evil[2J Stick, serial 1"},
		{Path: "/dev/ttyUSB7", Device: "/dev/ttyUSB7", What: "USB adapter (dead:0001), no serial number"},
		{Path: path + "pci-usb-0:1.3:1.0-port0", Device: "/dev/ttyUSB10", What: "USB Serial (1a86:7523), no serial number",
			ByID: id + "usb-1a86_USB_Serial-if00-port0", ByPath: path + "pci-usb-0:1.3:1.0-port0", Ambiguous: true},
	}
	got, err := list(f.root)
	if err != nil {
		t.Fatal(err)
	}
	for i := range max(len(got), len(want)) {
		var g, w Info
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("port %d:\n got %+v\nwant %+v", i, g, w)
		}
	}
}

func TestListWithoutPorts(t *testing.T) {
	if got, err := list(t.TempDir()); err != nil || len(got) != 0 {
		t.Errorf("list of a machine without sysfs = %v, %v", got, err)
	}
	if got, err := List(); err != nil || slices.ContainsFunc(got, func(p Info) bool { return p.Path == "" || p.What == "" }) {
		t.Errorf("List of this machine = %+v, %v", got, err)
	}
}

// C-075: a port list, and the question whether two names are one device, leave
// every line as it is. A pseudo-terminal tells whether anybody so much as
// opened it: its master then reads an error instead of nothing.
func TestListingDisturbsNothing(t *testing.T) {
	t.Run("C-075", func(t *testing.T) {
		idle, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer idle.Close()
		busy, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer busy.Close()
		line, err := OpenSerial(Serial{Path: busy.Path, Baud: 19200, Flow: "rtscts"})
		if err != nil {
			t.Fatal(err)
		}
		defer line.Close()
		settings := func() unix.Termios {
			var got *unix.Termios
			onFD(t, busy.Master, func(fd int) error {
				var err error
				got, err = unix.IoctlGetTermios(fd, unix.TCGETS2)
				return err
			})
			return *got
		}
		before := settings()
		if before.Ospeed != 19200 {
			t.Fatalf("the line runs at %d", before.Ospeed)
		}

		f := newTree(t)
		for i, p := range []*pty.Pair{idle, busy} {
			name := []string{"ttyS0", "ttyUSB0"}[i]
			f.usb([]string{"1-1.1", "1-1.2"}[i], "x"+name, "0", "1a86:7523", "", "USB Serial", "")
			if err := os.Remove(filepath.Join(f.root, "dev/x"+name)); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(p.Path, filepath.Join(f.root, "dev/x"+name)); err != nil {
				t.Fatal(err)
			}
			f.link("dev/serial/by-path/"+name, "dev/x"+name)
		}
		for range 10 {
			if ports, err := list(f.root); err != nil || len(ports) != 2 {
				t.Fatalf("list = %v, %v", ports, err)
			}
			if _, err := List(); err != nil {
				t.Fatal(err)
			}
			link := filepath.Join(f.root, "dev/serial/by-path/ttyS0")
			if !SameDevice(link, idle.Path) || SameDevice(link, busy.Path) {
				t.Fatal("SameDevice is wrong about a terminal")
			}
		}
		if settings() != before {
			t.Error("the settings of a running line changed")
		}
		if err := peek(t, idle); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("somebody opened a port: its other end reads %v", err)
		}
		// The proof of the proof: this is what one opening would have done.
		file, err := os.OpenFile(idle.Path, os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
		if err := peek(t, idle); !errors.Is(err, unix.EIO) {
			t.Errorf("an opening leaves no trace (%v): this test proves nothing", err)
		}
	})
}

// Two nodes of one device are the same device, without any link.
func TestSameDeviceByNumber(t *testing.T) {
	p, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var st unix.Stat_t
	if err := unix.Stat(p.Path, &st); err != nil {
		t.Fatal(err)
	}
	node := filepath.Join(t.TempDir(), "node")
	if err := unix.Mknod(node, unix.S_IFCHR|0o600, int(st.Rdev)); err != nil {
		t.Skipf("cannot make a device node: %v", err)
	}
	if !SameDevice(node, p.Path) {
		t.Error("two nodes with one device number are taken for two devices")
	}
	if SameDevice(node, "/dev/null") {
		t.Error("two devices are taken for one")
	}
}

// peek returns the error of a read that does not wait.
func peek(t *testing.T, p *pty.Pair) (err error) {
	onFD(t, p.Master, func(fd int) error {
		_, err = unix.Read(fd, make([]byte, 1))
		return nil
	})
	return err
}

// onFD runs f on an open file's descriptor.
func onFD(t *testing.T, file *os.File, f func(fd int) error) {
	t.Helper()
	conn, err := file.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if cerr := conn.Control(func(fd uintptr) { err = f(int(fd)) }); cerr != nil || err != nil {
		t.Fatal(cerr, err)
	}
}
