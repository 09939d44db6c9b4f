// Package guard has the HTTP client for addresses that companies choose: those of their webhook endpoints, bots and
// language models.
package guard

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
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

// guard decides which addresses requests may connect to. A company chooses the URL, so a request may go to
// the public internet only, and to the ports of web servers.
type guard struct {
	allow  []netip.Prefix // networks of the operator: any port
	public *ssrf.Guardian
}

// publicPorts are those of HTTP and their usual alternatives. A list of allowed ports needs no list of
// dangerous ones: requests cannot scan the ports of others, or write to a mail server, a database or a cache.
var publicPorts = []uint16{80, 443, 8080, 8443}

// ErrPort means that an address was refused because of its port.
var ErrPort = errors.New("the port is not allowed: use 443, 80, 8080 or 8443")

// notPublic are addresses that the registries of IANA list as public but that are special inside a cloud:
// 168.63.129.16 is Azure's WireServer, which gives a machine its configuration and certificates. Other
// metadata services have link-local, shared or unique local addresses.
var notPublic = []netip.Prefix{netip.MustParsePrefix("168.63.129.16/32")}

// newGuard permits public addresses, and those in allow. It refuses the special-purpose addresses of IANA's
// registries: loopback, private, shared (CGNAT), link-local, multicast, reserved; for IPv6 all outside of
// global unicast, which includes IPv4-mapped addresses and NAT64, and of global unicast 6to4, Teredo and
// documentation.
func newGuard(allow []netip.Prefix) guard {
	return guard{allow: allow, public: ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(notPublic...))}
}

// check returns an error if a connection to the address is not allowed. It is the Control of a [net.Dialer].
func (g guard) check(network, address string, c syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(g.allow, func(p netip.Prefix) bool { return p.Contains(to.Addr()) }) {
		return nil
	}
	if err := g.public.Safe(network, address, c); err != nil {
		return err
	}
	if !slices.Contains(publicPorts, to.Port()) {
		return ErrPort
	}
	return nil
}

// NewClient returns a client whose connections pass the guard. The guard checks the address that is connected
// to, after name resolution, so DNS rebinding does not bypass it. The client follows no redirect and uses no
// proxy: a proxy of the environment would connect past the guard. allow has networks of the operator; a timeout of
// zero is none.
func NewClient(allow []netip.Prefix, timeout time.Duration) *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: newGuard(allow).check}
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

// Refused reports whether a request failed because its address is not allowed.
func Refused(err error) bool {
	return errors.Is(err, ErrPort) || errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork)
}

// Reason returns why a request of the client got no answer, for a company. It names no resolved address: that could be
// one of the operator's network.
func Reason(err error) string {
	type timeoutError interface {
		error
		Timeout() bool
	}
	timeout, ok := errors.AsType[timeoutError](err)
	switch {
	case errors.Is(err, ErrPort):
		return ErrPort.Error()
	case Refused(err):
		return "the address is not allowed"
	case ok && timeout.Timeout():
		return "no answer in time"
	}
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 { // the innermost error: connection refused, no such host
		text = text[i+2:]
	}
	return text
}
