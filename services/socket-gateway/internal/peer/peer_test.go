package peer

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	logging.Disable()
	goleak.VerifyTestMain(m)
}

func TestSessionIDsNameTheirGateway(t *testing.T) {
	t.Parallel()
	id := NewID()
	first, second := id.SessionID(), id.SessionID()
	if got, ok := holderOf(first); !ok || got != id || first == second || !strings.HasPrefix(first, id.Prefix()) {
		t.Errorf("got holder %q of %s, want %s", got, first, id)
	}
	if secret := strings.TrimPrefix(first, id.Prefix()); len(secret) < 22 {
		t.Errorf("got %d characters that cannot be guessed, want 128 bits", len(secret))
	}
	for _, sid := range []string{"", ".", "abc.def", "AAAAAAAAA.x", "AAAAAAA:.x", "../../..", "AAAAAAAA", strings.Repeat("A", 1000) + ".x"} {
		if got, ok := holderOf(sid); ok {
			t.Errorf("got holder %q of %.20q, want none", got, sid)
		}
	}
}

func newRedis(t *testing.T) (*miniredis.Miniredis, redis.UniversalClient) {
	t.Helper()
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	return server, client
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	server, client := newRedis(t)
	here, there := NewID(), NewID()
	mine, theirs := NewRegistry(client, here, slog.New(slog.DiscardHandler)), NewRegistry(client, there, slog.New(slog.DiscardHandler))
	if _, ok := mine.Lookup(t.Context(), there); ok {
		t.Error("got an address before it is registered, want none")
	}
	mine = NewRegistry(client, here, slog.New(slog.DiscardHandler)) // with an empty cache
	if err := theirs.Register(t.Context(), "10.0.0.7:8080"); err != nil {
		t.Fatal(err)
	}
	if addr, ok := mine.Lookup(t.Context(), there); !ok || addr != "10.0.0.7:8080" {
		t.Errorf("got %q, want the address", addr)
	}
	if left := server.TTL(keyPrefix + string(there)); left <= 0 || left > expiry {
		t.Errorf("got %s until it expires, want at most %s", left, expiry)
	}
	server.Close() // cached entries stay valid
	mine.known[there] = entry{addr: "10.0.0.7:8080", at: time.Now().Add(-time.Hour)}
	if addr, ok := mine.Lookup(t.Context(), there); !ok || addr != "10.0.0.7:8080" {
		t.Errorf("got %q while Redis is not connected, want the last known address", addr)
	}
}

func TestRegistryIsLeft(t *testing.T) {
	t.Parallel()
	server, client := newRedis(t)
	id := NewID()
	r := NewRegistry(client, id, slog.New(slog.DiscardHandler))
	if err := r.Register(t.Context(), "10.0.0.7:8080"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Run(ctx, "10.0.0.7:8080")
	if server.Exists(keyPrefix + string(id)) {
		t.Error("got a stopped gateway in the registry, want it removed")
	}
}

func TestRegistryForgetsInventedIDs(t *testing.T) {
	t.Parallel()
	_, client := newRedis(t)
	r := NewRegistry(client, NewID(), slog.New(slog.DiscardHandler))
	for range 2 * maxKnown {
		r.remember(NewID(), "")
	}
	if len(r.known) > maxKnown {
		t.Errorf("got %d remembered ids, want at most %d", len(r.known), maxKnown)
	}
}

// Only what a gateway has registered is dialled, whatever a client sends.
func TestUnregisteredAddressesAreNotDialled(t *testing.T) {
	t.Parallel()
	_, client := newRedis(t)
	id := NewID()
	f, err := NewForwarder(id, NewRegistry(client, id, slog.New(slog.DiscardHandler)), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	served := 0
	h := f.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	targets := []string{"/?sid=" + id.SessionID(), "/?sid=" + NewID().SessionID(), "/?sid=127.0.0.1:1.x", "/?sid=http://127.0.0.1:1/.x", "/"}
	for _, target := range targets {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil))
	}
	if served != len(targets) {
		t.Errorf("got %d requests served here, want all %d", served, len(targets))
	}
}

// forwarderTo returns a forwarder beside a gateway, and the path of a session of that gateway.
func forwarderTo(t *testing.T, gateway http.HandlerFunc) (f *Forwarder, path string) {
	t.Helper()
	_, client := newRedis(t)
	id, other := NewID(), NewID()
	log := slog.New(slog.DiscardHandler)
	holder := httptest.NewServer(gateway)
	t.Cleanup(holder.Close)
	if err := NewRegistry(client, other, log).Register(t.Context(), holder.Listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	f, err := NewForwarder(id, NewRegistry(client, id, log), nil, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f, "/?sid=" + other.SessionID()
}

// The gateway that holds a session sees the client's address past trusted gateways and proxies.
func TestForwardedRequestsKeepTheAddress(t *testing.T) {
	t.Parallel()
	var got string
	f, path := forwarderTo(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("X-Forwarded-For") })
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.RemoteAddr = "192.0.2.1:40000"
	r.Header.Set("X-Forwarded-For", "203.0.113.9")
	f.Handler(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), r)
	if want := "203.0.113.9, 192.0.2.1"; got != want {
		t.Errorf("got X-Forwarded-For %q, want %q", got, want)
	}
}

// A gateway that drains still forwards polls, and no upgrades: it would cut their WebSockets.
func TestADrainingForwarderRefusesUpgrades(t *testing.T) {
	t.Parallel()
	f, path := forwarderTo(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	f.Drain()
	for upgrade, want := range map[string]int{"": http.StatusTeapot, "websocket": http.StatusNotFound} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Upgrade", upgrade)
		w := httptest.NewRecorder()
		f.Handler(http.NotFoundHandler()).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("upgrade %q: got %d, want %d", upgrade, w.Code, want)
		}
	}
}

func TestClosedForwarderServesHere(t *testing.T) {
	t.Parallel()
	_, client := newRedis(t)
	id, other := NewID(), NewID()
	log := slog.New(slog.DiscardHandler)
	if err := NewRegistry(client, other, log).Register(t.Context(), "127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	f, err := NewForwarder(id, NewRegistry(client, id, log), nil, log)
	if err != nil {
		t.Fatal(err)
	}
	served := 0
	h := f.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	ask := func() {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/?sid="+other.SessionID(), nil))
	}
	ask() // nothing listens at the address
	f.Close()
	f.Close()
	ask()
	if served != 2 {
		t.Errorf("got %d requests served here, want 2", served)
	}
}

func TestAdvertiseAddr(t *testing.T) {
	t.Parallel()
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}
	if got := AdvertiseAddr(loopback); got != "127.0.0.1:80" {
		t.Errorf("got %s, want the listener's address", got)
	}
	for _, any := range []net.IP{net.IPv4zero, net.IPv6unspecified} {
		host, port, err := net.SplitHostPort(AdvertiseAddr(&net.TCPAddr{IP: any, Port: 80}))
		if ip := net.ParseIP(host); err != nil || ip == nil || ip.IsUnspecified() || port != "80" {
			t.Errorf("got %s:%s for %s, want an address of this host", host, port, any)
		}
	}
}

func TestCanonicalAddr(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"[10.0.0.1]:8080": "10.0.0.1:8080", "[fd00::1]:8080": "[fd00::1]:8080", "10.0.0.1:8080": "10.0.0.1:8080", "gateway:80": "gateway:80", "": "",
	} {
		got := CanonicalAddr(addr)
		if got != want {
			t.Errorf("%q: got %q, want %q", addr, got, want)
		}
		if _, err := url.Parse("http://" + got + "/socket.io/"); err != nil {
			t.Errorf("%q: got %v, want an address that stands in a URL", addr, err)
		}
	}
}
