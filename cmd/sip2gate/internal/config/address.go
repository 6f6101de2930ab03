package config

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// hostPort takes an address to connect to.
func hostPort(to *string, example string) func(any) *fault {
	return endpoint{to: to, example: example}.take
}

// listenAt takes an address to be reached at; without a host it is every
// address of the machine.
func listenAt(to *string, example string) func(any) *fault {
	return endpoint{to, example, true}.take
}

// endpoint is a key whose value is a host and a port.
type endpoint struct {
	to      *string
	example string // host:port
	ours    bool   // an address of this machine
}

func (e endpoint) take(v any) *fault {
	s := v.(string)
	if f := plain(new(string))(s); f != nil {
		return f
	}
	if _, rest, ok := strings.Cut(s, "://"); ok {
		return faultf(`type "`+strings.TrimRight(rest, "/")+`"`, "%q has a scheme in front: only host and port stand here", s)
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return faultf(e.hint(s), "%q is not an address with a port", s)
	}
	if !validPort(port) {
		return faultf("a port is a number from 1 to 65535", "%q has no valid port", s)
	}
	if host == "" && !e.ours {
		return faultf(e.usual(), "%q has no host", s)
	}
	if host != "" && !validHost(host) {
		hint := e.usual()
		if e.ours {
			hint = everyAddress(port)
		}
		return faultf(hint, "%q is not a host name or an address", host)
	}
	*e.to = s
	return nil
}

func (e endpoint) usual() string { return `type "host:port", such as "` + e.example + `"` }

func everyAddress(port string) string {
	return `type "0.0.0.0:` + port + `" for every address of this machine`
}

// hint guesses what an address without a port, or a port without an address,
// is meant to be.
func (e endpoint) hint(s string) string {
	_, port, _ := strings.Cut(e.example, ":")
	if a, err := netip.ParseAddr(s); err == nil && a.Is6() {
		return `type "[` + s + `]:` + port + `"`
	}
	switch {
	case e.ours && validPort(s):
		return everyAddress(s)
	case validHost(s):
		return `type "` + s + `:` + port + `", with the port of yours`
	}
	return e.usual()
}

func validPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 1 && n <= 65535 && s[0] != '+'
}

func validHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	numeric := true
	for label := range strings.SplitSeq(strings.TrimSuffix(host, "."), ".") {
		if label == "" || len(label) > 63 || label[0] == '-' {
			return false
		}
		for _, r := range label {
			if !isBare(r) {
				return false
			}
			numeric = numeric && r >= '0' && r <= '9'
		}
	}
	return len(host) <= 253 && !numeric // 10.0.0.300 is no name
}

// overlap says whether two listening addresses cannot both be had. Both are
// valid.
func overlap(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(a)
	hostB, portB, _ := net.SplitHostPort(b)
	numA, _ := strconv.Atoi(portA)
	numB, _ := strconv.Atoi(portB)
	return numA == numB && (everywhere(hostA) || everywhere(hostB) || sameHost(hostA, hostB))
}

func everywhere(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "" || err == nil && a.IsUnspecified()
}

func sameHost(a, b string) bool {
	pa, errA := netip.ParseAddr(a)
	pb, errB := netip.ParseAddr(b)
	if errA == nil && errB == nil {
		return pa.Unmap() == pb.Unmap()
	}
	return strings.EqualFold(a, b) || loopback(a) && loopback(b)
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && a.IsLoopback()
}

// samePort says whether two addresses to connect to are one. Both are valid.
func samePort(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(a)
	hostB, portB, _ := net.SplitHostPort(b)
	return sameHost(hostA, hostB) && strings.TrimLeft(portA, "0") == strings.TrimLeft(portB, "0")
}

// reaches says whether a connection to the address dial ends at this
// machine's own listening address. Both are valid.
func reaches(dial, listen string) bool {
	host, _, _ := net.SplitHostPort(dial)
	at, _, _ := net.SplitHostPort(listen)
	if loopback(host) {
		return overlap(dial, listen)
	}
	return !everywhere(at) && samePort(dial, listen)
}
