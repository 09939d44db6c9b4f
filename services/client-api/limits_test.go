package clientapi_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	clientapi "github.com/parley-chat/parley/services/client-api"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/redistest"
)

func startRedis(t *testing.T) string {
	t.Helper()
	server, err := redistest.Start("127.0.0.1:0")
	if err != nil {
		t.Fatalf("starting Redis: %v", err)
	}
	t.Cleanup(server.Stop)
	return server.URL()
}

// tooMany checks for a 429 with Retry-After and the name of the limit.
func (a answer) tooMany(t *testing.T, limit string) {
	t.Helper()
	if a.status != http.StatusTooManyRequests || a.problem(t).Code != "TOO_MANY_REQUESTS" || a.header.Get("Retry-After") == "" {
		t.Errorf("got %d %s, want 429 with Retry-After", a.status, a.body)
	}
	if !strings.HasPrefix(a.header.Get("RateLimit"), `"`+limit+`";r=0;`) || !strings.HasPrefix(a.header.Get("RateLimit-Policy"), `"`+limit+`";q=`) {
		t.Errorf("got %q of %q, want nothing left of %q", a.header.Get("RateLimit"), a.header.Get("RateLimit-Policy"), limit)
	}
}

// Two replicas share a token's count; the company's other token and other companies have their own.
func TestATokenIsLimited(t *testing.T) {
	t.Parallel()
	limited := func(cfg *clientapi.Config) { cfg.RateToken = config.Rate{Count: 10, Per: time.Hour} }
	url := startRedis(t)
	shared := func(cfg *clientapi.Config) { cfg.RedisURL = url }
	w := start(t, limited, shared)
	replica := w.replica(limited, shared)
	for i := range 10 {
		sent := []*world{w, replica}[i%2].send(`{"text":"hi"}`)
		sent.success(t)
		if got := sent.header.Get("RateLimit-Policy"); got != `"token";q=10;w=3600` {
			t.Errorf("got the policy %q", got)
		}
	}
	w.send(`{"text":"hi"}`).tooMany(t, "token")
	replica.post("/push-message", pushBody("989121234567")).tooMany(t, "token")
	if a := w.postAs(w.addToken(companyID), "/push-message", pushBody("989121234567")); a.status != http.StatusOK {
		t.Errorf("another token: got %d %s, want 200", a.status, a.body)
	}
	if n := len(w.storedIDs()); n != 11 {
		t.Errorf("got %d events, want 11", n)
	}
}

// Authentication failures are limited by address; a valid token passes from any address.
func TestGuessingTokensIsLimited(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *clientapi.Config) { cfg.RateAuth = config.Rate{Count: 5, Per: time.Hour} })
	for range 5 {
		if a := w.postAs(unknownToken(), "/message/send", `{}`); a.status != http.StatusUnauthorized {
			t.Errorf("got %d, want 401", a.status)
		}
	}
	w.postAs(unknownToken(), "/message/send", `{}`).tooMany(t, "auth-failures")
	header := headers{"x-access-token": unknownToken(), "X-Forwarded-For": "198.51.100.7"}
	lied, err := w.do(http.MethodPost, "/message/send", `{}`, header)
	w.must(err)
	lied.tooMany(t, "auth-failures")
	w.send(`{"text":"hi"}`).success(t)
}

// A company that floods reaches its own limit: the stream keeps room, and all sends of the other company succeed.
func TestAFloodingCompanyReachesItsOwnLimit(t *testing.T) {
	t.Parallel()
	const stream = 1 << 20
	w := start(t, func(cfg *clientapi.Config) {
		cfg.BytesCompany = config.Rate{Count: stream / 4, Per: 168 * time.Hour}
	})
	bustest.Declare(t, w.engines.NATSURL, bus.StreamSettings{MaxAge: time.Hour, MaxBytes: stream})
	big := `{"text":"` + strings.Repeat("x", 4000) + `"}`
	accepted := 0
	for range 300 {
		a := w.send(big)
		switch {
		case a.status == http.StatusOK:
			accepted++
		case a.status != http.StatusTooManyRequests || a.problem(t).Code != "BYTE_BUDGET_EXCEEDED" || a.header.Get("Retry-After") == "":
			t.Fatalf("got %d %s, want 429 BYTE_BUDGET_EXCEEDED", a.status, a.body)
		}
	}
	if accepted < 20 || accepted > 60 {
		t.Errorf("got %d accepted, want about a quarter of the stream", accepted)
	}
	other := w.addToken(otherCompanyID)
	for n := range 20 {
		if a := w.postAs(other, "/push-message", pushBody("989121234567")); a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable {
			t.Errorf("the other company's push %d: got %d %s, want it served", n, a.status, a.body)
		}
	}
}

func TestIdempotencyKeysAreLimitedByCompany(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *clientapi.Config) { cfg.RateKeys = config.Rate{Count: 2, Per: time.Hour} })
	token := w.addToken(companyID)
	send := func(key string) int {
		a, err := w.do(http.MethodPost, "/push-message", pushBody("989121234567"), headers{"x-access-token": token, "Content-Type": "application/json", "Idempotency-Key": key})
		w.must(err)
		return a.status
	}
	if a, b, c := send("k1"), send("k2"), send("k3"); a != 200 || b != 200 || c != 429 {
		t.Errorf("got %d, %d, %d, want 200, 200, 429", a, b, c)
	}
	w.send(`{"text":"without a key"}`).success(t)
}

func TestBehindAProxyTheClientIsLimited(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *clientapi.Config) {
		cfg.RateAuth = config.Rate{Count: 2, Per: time.Hour}
		cfg.TrustedProxies = config.Prefixes{netip.MustParsePrefix("127.0.0.0/8")}
	})
	guess := func(forwarded string) answer {
		a, err := w.do(http.MethodPost, "/message/send", `{}`, headers{"x-access-token": unknownToken(), "X-Forwarded-For": forwarded})
		w.must(err)
		return a
	}
	guess("198.51.100.7")
	guess("203.0.113.1, 198.51.100.7")
	guess("203.0.113.2, 198.51.100.7").tooMany(t, "auth-failures")
	if a := guess("198.51.100.8"); a.status != http.StatusUnauthorized {
		t.Errorf("another client: got %d, want 401", a.status)
	}
}
