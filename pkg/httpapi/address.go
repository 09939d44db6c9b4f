package httpapi

import (
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/config"
)

// v6Site is the prefix length that identifies an IPv6 caller: every household and every server has at least a /64.
const v6Site = 64

// ClientAddress returns the address of a request's caller, for limits by address: an IPv4 address, or the /64 network
// of an IPv6 one. Behind a trusted proxy it is the address that connected to the proxy, and so on through all trusted
// proxies. Entries further left in X-Forwarded-For were written by the caller and are ignored.
func ClientAddress(c echo.Context) string { return site(c.RealIP()) }

// AddressOf returns a function like ClientAddress for requests outside an API.
func AddressOf(proxies []netip.Prefix) func(*http.Request) string {
	extract := addressBehind(proxies)
	return func(r *http.Request) string { return site(extract(r)) }
}

// site returns the part of an address that identifies a caller.
func site(text string) string {
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Is4() {
		return text
	}
	network, _ := addr.Prefix(v6Site)
	return network.String()
}

func addressBehind(proxies []netip.Prefix) echo.IPExtractor {
	return func(req *http.Request) string {
		addr, ok := parseAddress(req.RemoteAddr)
		if !ok {
			return req.RemoteAddr // not TCP
		}
		hops := req.Header["X-Forwarded-For"]
		for trusts(proxies, addr) {
			var hop string
			hop, hops = lastHop(hops)
			if hop == "" {
				break
			}
			next, ok := parseAddress(hop)
			if !ok {
				break
			}
			addr = next
		}
		return addr.String()
	}
}

// warnOfProxies logs the networks of proxies that are too large to be those of an edge.
func warnOfProxies(logger *slog.Logger, proxies []netip.Prefix) {
	for _, p := range proxies {
		if config.CoversPrivate(p) {
			logger.Warn(
				"TRUSTED_PROXIES has a whole private network: callers may be able to forge their address; "+
					"list the edge's network",
				"network",
				p,
			)
		}
	}
}

func trusts(proxies []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// lastHop removes the rightmost element from the header's lines.
func lastHop(lines []string) (hop string, rest []string) {
	if len(lines) == 0 {
		return "", nil
	}
	last := len(lines) - 1
	i := strings.LastIndexByte(lines[last], ',')
	if i < 0 {
		return strings.TrimSpace(lines[last]), lines[:last]
	}
	rest = append(slices.Clone(lines[:last]), lines[last][:i])
	return strings.TrimSpace(lines[last][i+1:]), rest
}

// parseAddress parses an address with or without a port.
func parseAddress(s string) (netip.Addr, bool) {
	if withPort, err := netip.ParseAddrPort(s); err == nil {
		return withPort.Addr().Unmap().WithZone(""), true
	}
	addr, err := netip.ParseAddr(strings.Trim(s, "[]"))
	return addr.Unmap().WithZone(""), err == nil
}
