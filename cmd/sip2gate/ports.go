package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"sip2gate/serialbridge/port"
)

// runPorts lists the serial ports, each as a line to paste into the settings.
func runPorts(_ context.Context, t *terminal, args []string) int {
	return listPorts(t, args, port.List)
}

func listPorts(t *terminal, args []string, list func() ([]port.Info, error)) int {
	flags := t.flags()
	asJSON := flags.Bool("json", false, "print one JSON array")
	if _, code, ok := t.parse(flags, args, 0, 0); !ok {
		return code
	}
	ports, err := list()
	if errors.Is(err, errors.ErrUnsupported) {
		t.complain("ports can be listed on Linux only", "look them up in the system's device manager")
		return exitUnwell
	}
	if err != nil {
		t.complain("list the serial ports: "+err.Error(), "")
		return exitUnwell
	}
	if *asJSON {
		t.json(portRecords(ports))
		return exitOK
	}
	if len(ports) == 0 {
		t.complain("there is no serial port", "plug the adapter in; dmesg tells whether the system has seen it")
		return exitOK
	}
	table := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	for _, p := range ports {
		fmt.Fprintf(table, "serial = %q\t# %s\n", p.Path, describePort(p))
	}
	if err := table.Flush(); err != nil {
		t.complain("write the list: "+err.Error(), "")
		return exitUnwell
	}
	return exitOK
}

// describePort says what a line of the list is about. Which of two equal
// adapters is which only the socket tells.
func describePort(p port.Info) string {
	s := p.What
	if p.Path != p.Device {
		if s != "" {
			s += ", "
		}
		s += "now " + p.Device
	}
	if p.Ambiguous {
		s += "; another adapter has the same name, so this is the socket"
	}
	return s
}

// portRecord is one port in JSON.
type portRecord struct {
	Serial    string `json:"serial"` // the value for the settings
	Device    string `json:"device"`
	What      string `json:"what"`
	ByID      string `json:"by_id,omitempty"`
	ByPath    string `json:"by_path,omitempty"`
	Ambiguous bool   `json:"ambiguous,omitempty"`
}

func portRecords(ports []port.Info) []portRecord {
	all := []portRecord{} // prints [] where there is none, not null
	for _, p := range ports {
		all = append(all, portRecord{p.Path, p.Device, p.What, p.ByID, p.ByPath, p.Ambiguous})
	}
	return all
}
