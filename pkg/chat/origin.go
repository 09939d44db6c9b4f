package chat

import (
	"net/netip"
	"strconv"
	"strings"
)

const (
	maxOrigins = 100
	maxOrigin  = 300 // characters
	maxHost    = 253
	maxLabel   = 63

	nullOrigin = "null" // sent for pages in sandboxed frames and local files (HTML standard, "opaque origin")
	wildcard   = "*."
)

// origin is a web origin (RFC 6454). The default port of http and https is empty.
type origin struct{ scheme, host, port string }

func (o origin) String() string {
	if o.port == "" {
		return o.scheme + "://" + o.host
	}
	return o.scheme + "://" + o.host + ":" + o.port
}

// CheckOrigins returns the canonical form of an application's AllowedOrigins, and their faults. A rule is an origin as
// browsers serialize it (scheme, host, and a port unless it is the scheme's default), in which the host may begin with
// "*.", which matches one or more labels; or null.
func CheckOrigins(rules []string) (checked []string, faults []DataFault) {
	if len(rules) > maxOrigins {
		return nil, []DataFault{{Field: "allowedOrigins", Message: "must have at most 100 origins"}}
	}
	for i, rule := range rules {
		canonical, problem := checkOrigin(rule)
		if problem != "" {
			faults = append(faults, DataFault{Field: "allowedOrigins[" + strconv.Itoa(i) + "]", Message: problem})
		}
		checked = append(checked, canonical)
	}
	if faults != nil {
		return nil, faults
	}
	return checked, nil
}

func checkOrigin(rule string) (canonical, problem string) {
	if rule == nullOrigin {
		return rule, ""
	}
	if rule == "*" {
		return "", "must be an origin; leave the list empty to allow any"
	}
	bare, wild := cutWildcard(rule)
	o, ok := parseOrigin(bare)
	switch {
	case !ok:
		return "", "must be an origin such as https://www.example.com, https://*.example.com or http://localhost:3000"
	case !wild:
		return o.String(), ""
	case strings.HasPrefix(o.host, "["), isNumber(o.host[strings.LastIndexByte(o.host, '.')+1:]):
		return "", "must not have a wildcard before an address"
	case !strings.Contains(o.host, ".") && o.host != "localhost":
		return "", "must have at least two labels after the wildcard"
	}
	o.host = wildcard + o.host
	return o.String(), ""
}

// cutWildcard removes the wildcard from a rule.
func cutWildcard(rule string) (bare string, wild bool) {
	scheme, rest, ok := strings.Cut(rule, "://")
	if !ok {
		return rule, false
	}
	rest, wild = strings.CutPrefix(rest, wildcard)
	return scheme + "://" + rest, wild
}

// AllowsOrigin reports whether a page with this Origin header may use the application. Without allowed origins every
// page may. An invalid origin, or null, is allowed only by an identical entry.
func (a Application) AllowsOrigin(header string) bool { return Origins(a.AllowedOrigins).Allow(header) }

// Origins are the origins that may use an application; empty: all.
type Origins []string

// Allow reports whether a page with this Origin header is allowed.
func (rules Origins) Allow(header string) bool {
	if len(rules) == 0 {
		return true
	}
	o, ok := parseOrigin(header)
	for _, rule := range rules {
		if rule == nullOrigin && header == nullOrigin || ok && o.matches(rule) {
			return true
		}
	}
	return false
}

func (o origin) matches(rule string) bool {
	bare, wild := cutWildcard(rule)
	r, ok := parseOrigin(bare)
	if !ok || r.scheme != o.scheme || r.port != o.port {
		return false
	}
	if wild {
		return strings.HasSuffix(o.host, "."+r.host)
	}
	return o.host == r.host
}

// parseOrigin parses scheme://host:port and nothing more. An internationalised host must be in its ASCII form, as
// browsers serialize it.
func parseOrigin(s string) (o origin, ok bool) {
	if len(s) > maxOrigin {
		return o, false
	}
	scheme, rest, ok := strings.Cut(strings.ToLower(s), "://")
	if !ok || !isScheme(scheme) {
		return o, false
	}
	o.scheme = scheme
	o.host, o.port, ok = cutPort(rest)
	if !ok || !isHost(o.host) {
		return o, false
	}
	if o.port, ok = portOf(scheme, o.port); !ok {
		return o, false
	}
	return o, true
}

// cutPort distinguishes a missing port from an empty one, which browsers never send.
func cutPort(s string) (host, port string, ok bool) {
	colon := strings.LastIndexByte(s, ':')
	if colon < 0 || strings.HasSuffix(s, "]") {
		return s, "", true
	}
	return s[:colon], s[colon+1:], colon+1 < len(s)
}

func portOf(scheme, port string) (string, bool) {
	if port == "" {
		return "", true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || !isNumber(port) {
		return "", false
	}
	if scheme == "https" && n == 443 || scheme == "http" && n == 80 {
		return "", true
	}
	return strconv.FormatUint(n, 10), true
}

// isScheme also accepts the schemes of apps: capacitor, tauri, chrome-extension (RFC 3986, section 3.1).
func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i]
		if letter := 'a' <= c && c <= 'z'; !letter && (i == 0 || !isDigit(c) && !strings.ContainsRune("+-.", rune(c))) {
			return false
		}
	}
	return s != ""
}

func isHost(s string) bool {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		address, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		return err == nil && address.Is6() && address.Zone() == "" && "["+address.String()+"]" == s
	}
	if s == "" || len(s) > maxHost {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > maxLabel {
			return false
		}
		for i := range len(label) {
			if c := label[i]; (c < 'a' || c > 'z') && !isDigit(c) && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
