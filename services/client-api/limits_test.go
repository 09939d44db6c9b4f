package clientapi_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	clientapi "github.com/parley-chat/parley/services/client-api"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/httpapitest"
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
func tooMany(t *testing.T, a httpapitest.Response, limit string) {
	t.Helper()
	if a.Status != http.StatusTooManyRequests || a.Problem(t).Code != "TOO_MANY_REQUESTS" || a.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %s, want 429 with Retry-After", a.Status, a.Body)
	}
	if !strings.HasPrefix(a.Header.Get("RateLimit"), `"`+limit+`";r=0;`) || !strings.HasPrefix(a.Header.Get("RateLimit-Policy"), `"`+limit+`";q=`) {
		t.Errorf("got %q of %q, want nothing left of %q", a.Header.Get("RateLimit"), a.Header.Get("RateLimit-Policy"), limit)
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
		succeeded(t, sent)
		if got := sent.Header.Get("RateLimit-Policy"); got != `"token";q=10;w=3600` {
			t.Errorf("got the policy %q", got)
		}
	}
	tooMany(t, w.send(`{"text":"hi"}`), "token")
	tooMany(t, replica.post("/push-message", pushBody("989121234567")), "token")
	if a := w.postAs(w.addToken(companyID), "/push-message", pushBody("989121234567")); a.Status != http.StatusOK {
		t.Errorf("another token: got %d %s, want 200", a.Status, a.Body)
	}
	if n := len(w.storedIDs()); n != 11 {
		t.Errorf("got %d events, want 11", n)
	}
}

// One number gets few pushes of a company, and one chat few of its messages, however they are written. A dry run, a
// request that is refused for another reason and a replay cost nothing, and a replay is answered when nothing is left.
func TestANumberAndAChatAreLimited(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *clientapi.Config) {
		cfg.RateNumber, cfg.RateChat = config.Rate{Count: 2, Per: time.Hour}, config.Rate{Count: 2, Per: time.Hour}
	})
	_, otherChat := w.openChat("b@example.com", time.Now())
	draft := `{"templateId":"` + draftTemplate + `","source":"989121234567"}`
	for path, test := range map[string]struct{ limit, invalid, first, second, other string }{
		"/push-message": {
			"pushes-number", draft,
			pushBody("989121234567"), pushBody("+98 912 123-4567"), pushBody("989121234568"),
		},
		"/message/send": {
			"messages-chat", sendBody("TEXT", `{"text":"a"}`, unknownID),
			sendBody("TEXT", `{"text":"a"}`, w.chatID), sendBody("TEXT", `{"text":"b"}`, strings.ToUpper(w.chatID)),
			sendBody("TEXT", `{"text":"a"}`, otherChat),
		},
	} {
		once := headers{"x-access-token": w.token, "Content-Type": "application/json", "Idempotency-Key": "key"}
		for _, after := range []string{test.first, test.second} {
			for range 3 {
				succeeded(t, w.post(path+"?dryRun=true", after))
				if a := w.post(path, test.invalid); a.Status != http.StatusNotFound {
					t.Errorf("%s: got %d %s, want 404", path, a.Status, a.Body)
				}
				a, err := w.do(http.MethodPost, path, test.first, once)
				w.must(err)
				succeeded(t, a)
			}
			if after == test.first {
				succeeded(t, w.post(path, test.second))
			}
			tooMany(t, w.post(path, after), test.limit)
		}
		succeeded(t, w.post(path, test.other))
	}
}

// Authentication failures are limited by address; a valid token passes from any address.
func TestGuessingTokensIsLimited(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *clientapi.Config) { cfg.RateAuth = config.Rate{Count: 5, Per: time.Hour} })
	for range 5 {
		if a := w.postAs(unknownToken(), "/message/send", `{}`); a.Status != http.StatusUnauthorized {
			t.Errorf("got %d, want 401", a.Status)
		}
	}
	tooMany(t, w.postAs(unknownToken(), "/message/send", `{}`), "auth-failures")
	header := headers{"x-access-token": unknownToken(), "X-Forwarded-For": "198.51.100.7"}
	lied, err := w.do(http.MethodPost, "/message/send", `{}`, header)
	w.must(err)
	tooMany(t, lied, "auth-failures")
	succeeded(t, w.send(`{"text":"hi"}`))
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
		case a.Status == http.StatusOK:
			accepted++
		case a.Status != http.StatusTooManyRequests || a.Problem(t).Code != "BYTE_BUDGET_EXCEEDED" || a.Header.Get("Retry-After") == "":
			t.Fatalf("got %d %s, want 429 BYTE_BUDGET_EXCEEDED", a.Status, a.Body)
		}
	}
	if accepted < 20 || accepted > 60 {
		t.Errorf("got %d accepted, want about a quarter of the stream", accepted)
	}
	other := w.addToken(otherCompanyID)
	for n := range 20 {
		if a := w.postAs(other, "/push-message", pushBody("989121234567")); a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable {
			t.Errorf("the other company's push %d: got %d %s, want it served", n, a.Status, a.Body)
		}
	}
}

// A push pays for the message that its recipient gets, not for the short request that names the template.
func TestAPushPaysForItsMessage(t *testing.T) {
	t.Parallel()
	const messages = 20
	text := strings.Repeat("\U0001F600", 4096) // 16 KiB
	w := start(t, func(cfg *clientapi.Config) {
		cfg.BytesCompany = config.Rate{Count: messages * len(text), Per: 168 * time.Hour}
	})
	w.must(w.store.PutTemplate(t.Context(), chat.MessageTemplate{
		ID: templateID, CompanyID: companyID, Name: "long", Status: chat.TemplateApproved, Text: text,
	}))
	for n := range messages + 1 {
		a := w.post("/push-message", pushBody("989121234567"))
		if a.Status == http.StatusOK {
			continue
		}
		if a.Problem(t).Code != "BYTE_BUDGET_EXCEEDED" || n < messages/2 {
			t.Errorf("push %d: got %d %s, want the budget to last for about %d", n, a.Status, a.Body, messages)
		}
		return
	}
	t.Errorf("got more than %d messages of %d bytes accepted, want their budget used up", messages, len(text))
}

func TestIdempotencyKeysAreLimitedByCompany(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *clientapi.Config) { cfg.RateKeys = config.Rate{Count: 2, Per: time.Hour} })
	token := w.addToken(companyID)
	send := func(key string) int {
		a, err := w.do(http.MethodPost, "/push-message", pushBody("989121234567"), headers{"x-access-token": token, "Content-Type": "application/json", "Idempotency-Key": key})
		w.must(err)
		return a.Status
	}
	if a, b, c := send("k1"), send("k2"), send("k3"); a != 200 || b != 200 || c != 429 {
		t.Errorf("got %d, %d, %d, want 200, 200, 429", a, b, c)
	}
	succeeded(t, w.send(`{"text":"without a key"}`))
}

func TestBehindAProxyTheClientIsLimited(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *clientapi.Config) {
		cfg.RateAuth = config.Rate{Count: 2, Per: time.Hour}
		cfg.TrustedProxies = config.Prefixes{netip.MustParsePrefix("127.0.0.0/8")}
	})
	guess := func(forwarded string) httpapitest.Response {
		a, err := w.do(http.MethodPost, "/message/send", `{}`, headers{"x-access-token": unknownToken(), "X-Forwarded-For": forwarded})
		w.must(err)
		return a
	}
	guess("198.51.100.7")
	guess("203.0.113.1, 198.51.100.7")
	tooMany(t, guess("203.0.113.2, 198.51.100.7"), "auth-failures")
	if a := guess("198.51.100.8"); a.Status != http.StatusUnauthorized {
		t.Errorf("another client: got %d, want 401", a.Status)
	}
}
