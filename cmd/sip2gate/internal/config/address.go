package config

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

const hostPortHint = `type "host:port", such as "ils.example.org:6001"`

// hostPort takes an address to connect to.
func hostPort(to *string) func(any) *fault { return endpoint(to, false) }

// listenAt takes an address to be reached at; without a host it is every
// address of the machine.
func listenAt(to *string) func(any) *fault { return endpoint(to, true) }

func endpoint(to *string, hostOptional bool) func(any) *fault {
	return func(v any) *fault {
		s := v.(string)
		if f := plain(new(string))(s); f != nil {
			return f
		}
		if _, rest, ok := strings.Cut(s, "://"); ok {
			return faultf(`type "`+strings.TrimRight(rest, "/")+`"`, "%q has a scheme in front: only host and port stand here", s)
		}
		host, port, err := net.SplitHostPort(s)
		if err != nil {
			return faultf(addressHint(s), "%q is not an address with a port", s)
		}
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || port[0] == '+' {
			return faultf("a port is a number from 1 to 65535", "%q has no valid port", s)
		}
		if host == "" && !hostOptional {
			return faultf(hostPortHint, "%q has no host", s)
		}
		if host != "" && !validHost(host) {
			return faultf(hostPortHint, "%q is not a host name or an address", host)
		}
		*to = s
		return nil
	}
}

func addressHint(s string) string {
	if a, err := netip.ParseAddr(s); err == nil && a.Is6() {
		return `type "[` + s + `]:6001"`
	}
	if validHost(s) {
		return `type "` + s + `:6001", with the port of yours`
	}
	return hostPortHint
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
