package guard

import (
	"net"
	"net/netip"
	"strconv"
	"testing"
)

// connect returns the guard's error for an address and a port.
func (g guard) connect(address string, port int) error {
	network := "tcp6"
	if netip.MustParseAddr(address).Is4() {
		network = "tcp4"
	}
	return g.check(network, net.JoinHostPort(address, strconv.Itoa(port)), nil)
}

func TestGuard(t *testing.T) {
	t.Parallel()
	guard := newGuard([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/32")})
	for address, allowed := range map[string]bool{
		"93.184.215.14": true, "8.8.8.8": true, "2606:4700::1111": true, "10.1.2.3": true, "fd00:1::5": true, "10.2.0.1": false, "fd00:2::5": false,
		// Metadata and similar services: AWS, Google and Azure, Azure, Oracle, Alibaba, AWS ECS, AWS and Google over IPv6.
		"169.254.169.254": false, "168.63.129.16": false, "192.0.0.192": false, "100.100.100.200": false, "169.254.170.2": false,
		"fd00:ec2::254": false, "fd20:ce::254": false, "168.63.129.15": true, "168.63.129.17": true,
		// IPv4 addresses inside IPv6: compatible, mapped, NAT64 (two prefixes), 6to4, Teredo.
		"::127.0.0.1": false, "::ffff:127.0.0.1": false, "::ffff:168.63.129.16": false, "::ffff:8.8.8.8": false, "64:ff9b::7f00:1": false,
		"64:ff9b::a9fe:a9fe": false, "64:ff9b::a83f:8110": false, "64:ff9b:1::1": false, "2002:7f00:1::": false, "2002:a83f:8110::1": false, "2001::1": false,
		"2001:0:a83f:8110::": false,
	} {
		if err := guard.connect(address, 8443); (err == nil) != allowed {
			t.Errorf("%s: got %v, want allowed: %v", address, err, allowed)
		}
	}
}

// The registries of special-purpose addresses: https://www.iana.org/assignments/iana-ipv4-special-registry,
// https://www.iana.org/assignments/iana-ipv6-special-registry, and the multicast and site-local ranges.
func TestGuardRefusesSpecialAddresses(t *testing.T) {
	t.Parallel()
	guard := newGuard(nil)
	for _, text := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32",
		"192.0.0.9/32", "192.0.0.10/32", "192.0.0.170/32", "192.0.0.171/32", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24",
		"192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32",
		"::1/128", "::/128", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001::/32", "2001:1::1/128",
		"2001:1::2/128", "2001:1::3/128", "2001:2::/48", "2001:3::/32", "2001:4:112::/48", "2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32",
		"2002::/16", "2620:4f:8000::/48", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
	} {
		prefix := netip.MustParsePrefix(text)
		for _, address := range []netip.Addr{prefix.Addr(), last(prefix)} {
			if guard.connect(address.String(), 443) == nil {
				t.Errorf("%s of %s: got it allowed, want it refused", address, prefix)
			}
		}
	}
}

// last returns the last address of a prefix.
func last(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	for bit := p.Bits(); bit < 8*len(bytes); bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	address, _ := netip.AddrFromSlice(bytes)
	return address
}

// Only the ports of web servers are allowed, and all ports in the networks of the operator.
func TestGuardPorts(t *testing.T) {
	t.Parallel()
	guard := newGuard([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")})
	for port, allowed := range map[int]bool{
		443: true, 80: true, 8080: true, 8443: true, 1: false, 22: false, 25: false, 53: false, 81: false, 587: false, 2375: false, 3306: false,
		5432: false, 6379: false, 8000: false, 9200: false, 11211: false, 27017: false, 65535: false,
	} {
		if err := guard.connect("93.184.215.14", port); (err == nil) != allowed {
			t.Errorf("port %d: got %v, want allowed: %v", port, err, allowed)
		}
		if err := guard.connect("10.1.2.3", port); err != nil {
			t.Errorf("port %d of a network of the operator: got %v, want it allowed", port, err)
		}
	}
}
