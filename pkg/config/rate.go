package config

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Rate limits a number of events or bytes: a token bucket of size Count that refills at Count per Per. The zero Rate is
// no limit.
type Rate struct {
	Count int
	Per   time.Duration
}

var errRate = errors.New("not a rate")

// UnmarshalText reads a rate such as 600/1m, 100/s or 16MiB/24h; 0 is no limit.
func (r *Rate) UnmarshalText(text []byte) error {
	*r = Rate{}
	if string(text) == "0" {
		return nil
	}
	number, per, ok := strings.Cut(string(text), "/")
	if ok && per != "" && (per[0] < '0' || per[0] > '9') {
		per = "1" + per
	}
	number, unit := cutUnit(number)
	count, err := strconv.Atoi(number)
	duration, err2 := time.ParseDuration(per)
	if !ok || err != nil || err2 != nil || count <= 0 || duration < time.Second ||
		time.Duration(count) > duration/time.Duration(unit) {
		return errRate
	}
	*r = Rate{Count: count * unit, Per: duration}
	return nil
}

// Part returns n of that many equal parts of a rate, at least one permit. An unlimited rate has unlimited parts.
func (r Rate) Part(n, of int) Rate {
	if r.Count > 0 {
		r.Count = max(r.Count/of*n, 1)
	}
	return r
}

// cutUnit removes the byte unit from a number.
func cutUnit(s string) (number string, unit int) {
	for suffix, size := range map[string]int{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if number, ok := strings.CutSuffix(s, suffix); ok {
			return number, size
		}
	}
	return s, 1
}

// Prefixes is a list of networks.
type Prefixes []netip.Prefix

// UnmarshalText reads networks such as 10.0.0.0/8, or addresses, separated by commas.
func (p *Prefixes) UnmarshalText(text []byte) error {
	*p = nil
	for part := range strings.SplitSeq(string(text), ",") {
		prefix, err := parsePrefix(strings.TrimSpace(part))
		if err != nil {
			return err
		}
		*p = append(*p, prefix.Masked())
	}
	return nil
}

func parsePrefix(s string) (netip.Prefix, error) {
	if strings.Contains(s, "/") {
		return netip.ParsePrefix(s)
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	return addr.Prefix(addr.BitLen())
}

// privateNetworks are the networks for private use (RFC 1918, RFC 4193).
var privateNetworks = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("fc00::/7"),
}

// CoversPrivate reports whether a network of proxies has all addresses of a private network. Trusting it lets
// callers choose their address if a proxy in front appends to X-Forwarded-For: the proxy's own peer, which it
// appends, then is a trusted proxy too, and the caller wrote the entry before.
func CoversPrivate(proxies netip.Prefix) bool {
	return slices.ContainsFunc(privateNetworks, func(private netip.Prefix) bool {
		return proxies.Bits() <= private.Bits() && proxies.Contains(private.Addr())
	})
}

// Callers configures how an API determines and limits its callers' addresses, and where replicas share their counts.
type Callers struct {
	RedisURL       string   `env:"REDIS_URL" doc:"redis:// or rediss:// URL; several for a cluster, separated by commas; required by the socket-gateway, used for rate limits by the APIs"`
	TrustedProxies Prefixes `env:"TRUSTED_PROXIES" doc:"networks, separated by commas, whose X-Forwarded-For is trusted: the load balancers in front of the API"`
	RateAuth       Rate     `env:"-" none:"0" constant:"60/1m" doc:"requests of one address with an invalid or missing token"`
}

// Validate returns the problems of the block; see [Check].
func (c Callers) Validate() []string { return Redis{RedisURL: c.RedisURL}.Validate() }

// Budgets limits the bytes that each tenant may have in the streams, which all of them share: a company a quarter of a
// stream, an application an eighth, within the stream's age. pkg/budget says which event counts where.
type Budgets struct {
	BytesVisitor     Rate `env:"-" none:"0" small:"4MiB/168h" medium:"16MiB/168h" large:"16MiB/168h" doc:"bytes of one visitor's events, and, counted apart, of the bot's answers to one visitor"`
	BytesAddress     Rate `env:"-" none:"0" small:"16MiB/168h" medium:"64MiB/168h" large:"64MiB/168h" doc:"bytes of the visitors' events from one address (an IPv6 /64), and, counted apart, of one agent's"`
	BytesApplication Rate `env:"-" none:"0" small:"32MiB/168h" medium:"128MiB/168h" large:"1536MiB/72h" doc:"bytes of the events of one application's visitors, and, counted apart, of its bot; an eighth of it in an hour"`
	BytesCompany     Rate `env:"-" none:"0" small:"64MiB/168h" medium:"256MiB/168h" large:"3072MiB/72h" doc:"bytes of events that one company's systems publish, and, counted apart, its visitors (an eighth of their part in an hour), and its agents and bots"`
}

// Keys limits the idempotency keys that are stored.
type Keys struct {
	RateKeys Rate `env:"-" none:"0" small:"250000/24h" medium:"1000000/24h" large:"4000000/24h" doc:"idempotency keys of one company, and, counted apart, of the visitors of one application and of the agents of one company; one visitor or agent may add a 64th, one network a 16th"`
}
