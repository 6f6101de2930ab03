package port

// Info describes a serial port of this machine.
type Info struct {
	// Path is the name to put into the configuration: the most stable one there
	// is. For a USB adapter with a serial number of its own that is ByID, for
	// one without, or with one that another adapter has too, ByPath; for a port
	// on the board it is Device.
	Path string
	// Device is the kernel's name, such as /dev/ttyUSB0; for a USB adapter it
	// may be another after the next start or unplugging.
	Device string
	// What says in words what it is: "FTDI FT232R USB UART, serial A50285BI".
	What string
	// ByID and ByPath are the links that udev keeps, empty where there is none.
	// ByID goes with the adapter, ByPath with the socket it is plugged into.
	ByID, ByPath string
	// Ambiguous means that another adapter has the same by-id name: that link
	// leads to whichever was plugged in last.
	Ambiguous bool
}
