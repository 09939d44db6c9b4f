package config_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/config"
)

func TestRate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.Rate{
		"0": {}, "600/1m": {600, time.Minute}, "100/s": {100, time.Second}, "5/10s": {5, 10 * time.Second}, "1000000/1s": {1_000_000, time.Second},
		"16MiB/24h": {16 << 20, 24 * time.Hour}, "1KiB/s": {1024, time.Second}, "1GiB/168h": {1 << 30, 168 * time.Hour},
	} {
		var got config.Rate
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "/s", "5/", "-1/s", "0/s", "5/0s", "5/10ms", "five/s", "5/s/s", "5/1", "2000000000/1s", "5/-1s", "MiB/s", "1TiB/s", "-1KiB/s", "9999999999GiB/1s", "1 MiB/s"} {
		var got config.Rate
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%s: got %+v, want an error", text, got)
		}
	}
}

// limited is a Config with networks and a rate.
type limited struct {
	config.Callers
	Tokens config.Rate `env:"TOKENS"`
}

func TestNetworksAndRatesFromTheEnvironment(t *testing.T) {
	t.Setenv("TRUSTED_PROXIES", "10.1.2.3/8, 192.0.2.1,fd00::/8")
	t.Setenv("TOKENS", "7/1m")
	got, err := config.Load[limited]()
	if want := "[10.0.0.0/8 192.0.2.1/32 fd00::/8]"; err != nil || fmt.Sprint(got.TrustedProxies) != want || got.Tokens.Count != 7 {
		t.Errorf("got %+v, %v, want the networks %s and 7", got, err, want)
	}
	t.Setenv("TRUSTED_PROXIES", "10.0.0.0/33")
	t.Setenv("TOKENS", "7")
	_, err = config.Load[limited]()
	const want = "configuration: TRUSTED_PROXIES must be networks such as 10.0.0.0/8, separated by commas; TOKENS must be a rate such as 600/1m, or 0"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestCallersDefaults(t *testing.T) {
	t.Parallel()
	var edge config.Callers
	if err := config.SetDefaults(&edge); err != nil || edge.RateAuth != (config.Rate{Count: 60, Per: time.Minute}) || edge.TrustedProxies != nil {
		t.Errorf("got %+v, %v, want 60 a minute and no trusted proxies", edge, err)
	}
}

func TestNetworksThatCoverAPrivateOne(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"10.0.0.0/8": true, "172.16.0.0/12": true, "192.168.0.0/16": true, "0.0.0.0/0": true, "8.0.0.0/5": true, "fc00::/7": true, "::/0": true,
		"10.244.0.0/16": false, "172.16.0.0/13": false, "127.0.0.0/8": false, "192.0.2.1/32": false, "fd00::/8": false,
	} {
		if got := config.CoversPrivate(netip.MustParsePrefix(text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}
