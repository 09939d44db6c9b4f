package peer

import "net"

// AdvertiseAddr is the address under which the others reach a listener of this host: the listener's own or, if that is
// every address of the host, the host's first.
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

// hostAddr prefers an IPv4 address: a network that has both routes it everywhere.
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

// CanonicalAddr writes an address without brackets that its host does not need: [10.0.0.1]:80 is what a manifest makes that has to
// hold for IPv6 too, and no URL.
func CanonicalAddr(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return net.JoinHostPort(host, port)
}
