package peer

import "net"

// AdvertiseAddr returns the address at which other hosts reach a listener: the listener's own or, if it listens on all
// interfaces, the host's first.
func AdvertiseAddr(listening net.Addr) string {
	host, port, err := net.SplitHostPort(listening.String())
	if err != nil {
		return listening.String()
	}
	if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
		return listening.String()
	}
	return net.JoinHostPort(hostAddr(), port)
}

// hostAddr returns the host's first global unicast address. It prefers IPv4, which dual-stack networks route
// everywhere.
func hostAddr() string {
	best := "127.0.0.1"
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return best
	}
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || !n.IP.IsGlobalUnicast() {
			continue
		}
		if n.IP.To4() != nil {
			return n.IP.String()
		}
		if best == "127.0.0.1" {
			best = n.IP.String()
		}
	}
	return best
}

// CanonicalAddr removes superfluous brackets from the host of addr. A manifest that must support IPv6 too
// yields [10.0.0.1]:80, which is not valid in a URL.
func CanonicalAddr(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return net.JoinHostPort(host, port)
}
