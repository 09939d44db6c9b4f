package webhook

import (
	"net"
	"net/http"
	"net/netip"
	"time"

	"code.dny.dev/ssrf"
)

const (
	dialTimeout = 5 * time.Second
	// idlePerEndpoint bounds the idle connections to one host, idleConnections all of them.
	idlePerEndpoint = 4
	idleConnections = 512
	idleTimeout     = 60 * time.Second
	maxHeaderBytes  = 64 << 10
)

// newGuard refuses addresses outside the public internet: loopback, private, shared (CGNAT), link-local with the metadata
// services of clouds, multicast, reserved; for IPv6 all outside of global unicast, which includes IPv4-mapped addresses and
// NAT64. Prefixes in allow are permitted.
func newGuard(allow []netip.Prefix) *ssrf.Guardian {
	var v4, v6 []netip.Prefix
	for _, p := range allow {
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
}

// newClient returns a client whose connections pass the guard. The guard checks the address that is connected to, after name
// resolution, so DNS rebinding does not bypass it. The client follows no redirect and uses no proxy: a proxy of the environment
// would connect past the guard.
func newClient(allow []netip.Prefix, timeout time.Duration) *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: newGuard(allow).Safe}
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: dialTimeout,
			MaxIdleConns: idleConnections, MaxIdleConnsPerHost: idlePerEndpoint, IdleConnTimeout: idleTimeout,
			MaxResponseHeaderBytes: maxHeaderBytes, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
