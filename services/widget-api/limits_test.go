package widgetapi_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/store"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/httpapitest"
)

// tooMany checks for a 429 with Retry-After and the name of the limit, readable by pages of another origin.
func tooMany(t *testing.T, a httpapitest.Response, limit string) {
	t.Helper()
	if a.Status != http.StatusTooManyRequests || a.Problem(t).Code != "TOO_MANY_REQUESTS" || a.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %s, want 429 with Retry-After", a.Status, a.Body)
	}
	if all := strings.Join(a.Header.Values("RateLimit"), ", "); !strings.Contains(all, `"`+limit+`";r=0;`) {
		t.Errorf("got %q, want nothing left of %q", all, limit)
	}
}

func TestVisitorsAreLimitedByThemselves(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *widgetapi.Config) { cfg.RateVisitor = config.Rate{Count: 3, Per: time.Hour} })
	one, two := w.register(bareApp, `"email":"a@example.com"`), w.register(bareApp, `"email":"b@example.com"`)
	w.post("/message", one, hello)
	w.get("/message", one)
	again := w.register(bareApp, `"email":"a@example.com"`) // another token of the same visitor
	w.get("/message", again)
	slow := w.post("/message", again, hello)
	tooMany(t, slow, "visitor")
	if slow.Header.Get("Access-Control-Allow-Origin") == "" || !strings.Contains(slow.Header.Get("Access-Control-Expose-Headers"), "RateLimit") {
		t.Errorf("got %v, want that a page can read it", slow.Header)
	}
	if a := w.post("/message", two, hello); a.Status != http.StatusCreated {
		t.Errorf("another visitor: got %d %s, want 201", a.Status, a.Body)
	}
}

func TestAnAddressIsLimited(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *widgetapi.Config) {
		cfg.RateAddress, cfg.RateRegister = config.Rate{Count: 8, Per: time.Hour}, config.Rate{Count: 3, Per: time.Hour}
		cfg.RateAuth = config.Rate{Count: 2, Per: time.Hour}
	})
	const form = `{"appId":"` + bareApp + `","email":"a@example.com"}`
	for range 3 {
		if a := w.post("/register", "", form); a.Status != http.StatusOK {
			t.Errorf("got %d, want 200", a.Status)
		}
	}
	tooMany(t, w.post("/register", "", form), "register")
	w.get("/message", "wrong")
	w.post("/message", "", hello)
	tooMany(t, w.get("/message", "wrong"), "auth-failures")
	if a := w.get("/settings/"+bareApp, ""); a.Status != http.StatusOK {
		t.Errorf("got %d, want 200: a valid token is no guess", a.Status)
	}
	tooMany(t, w.get("/settings/"+bareApp, ""), "address")
	tooMany(t, w.get("/.well-known/jwks.json", ""), "address")
}

// A valid token passes regardless of the authentication failures of its address.
func TestFailuresDoNotLockOutVisitors(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *widgetapi.Config) { cfg.RateAuth = config.Rate{Count: 2, Per: time.Hour} })
	token := w.register(bareApp, `"email":"a@example.com"`)
	for range 5 {
		w.get("/message", "wrong")
	}
	tooMany(t, w.get("/message", "wrong"), "auth-failures")
	if a := w.get("/message", token); a.Status != http.StatusOK {
		t.Errorf("a valid token: got %d %s, want 200", a.Status, a.Body)
	}
}

func TestMessageDataIsLimited(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(bareApp, `"email":"a@example.com"`)
	data := func(size int) string {
		const around = len(`{"text":"x","more":""}`)
		return `{"type":"TEXT","data":{"text":"x","more":"` + strings.Repeat("y", size-around) + `"}}`
	}
	if a := w.post("/message", token, data(8<<10)); a.Status != http.StatusCreated {
		t.Errorf("8 KiB: got %d %s, want 201", a.Status, a.Body)
	}
	if a := w.post("/message", token, data(8<<10+1)); a.Status != http.StatusBadRequest || a.Details(t) != "data must have at most 8192 bytes" {
		t.Errorf("one byte more: got %d %s, want 400", a.Status, a.Body)
	}
}

// A flooding application reaches its own limit: the stream keeps room, and all sends of the other tenants succeed.
func TestAFloodingApplicationReachesItsOwnLimit(t *testing.T) {
	t.Parallel()
	const stream = 1 << 20
	w := start(t, func(cfg *widgetapi.Config) {
		cfg.BytesApplication = config.Rate{Count: stream, Per: 168 * time.Hour} // an eighth of it in an hour
	})
	bustest.Declare(t, w.engines.NATSURL, bus.StreamSettings{MaxAge: time.Hour, MaxBytes: stream, FilesMaxBytes: 1 << 30})
	big := `{"type":"TEXT","data":{"text":"x","more":"` + strings.Repeat("y", 8000) + `"}}`
	var others []string
	for i := range 5 {
		others = append(others, w.register(otherApp, fmt.Sprintf(`"email":"o%d@example.com"`, i)))
	}
	var tokens []string
	for i := range 8 {
		tokens = append(tokens, w.register(appID, fmt.Sprintf(`"email":"f%d@example.com"`, i)))
	}
	var flood sync.WaitGroup
	var refused, wrong atomic.Int64
	for _, token := range tokens {
		flood.Go(func() {
			for range 40 {
				a, err := w.do(http.MethodPost, "/message", big, headers{"Content-Type": "application/json", "Authorization": "Bearer " + token})
				switch {
				case err != nil || a.Status != http.StatusCreated && a.Status != http.StatusTooManyRequests:
					wrong.Add(1)
				case a.Status == http.StatusTooManyRequests:
					refused.Add(1)
				}
			}
		})
	}
	for n := range 40 {
		if a := w.post("/message", others[n%len(others)], hello); a.Status != http.StatusCreated {
			t.Errorf("another tenant's message %d: got %d %s, want 201", n, a.Status, a.Body)
		}
	}
	flood.Wait()
	if refused.Load() < 200 || wrong.Load() > 0 {
		t.Errorf("got %d refusals and %d other answers for the flood of 320, want most refused with 429", refused.Load(), wrong.Load())
	}
	late := w.post("/message", w.register(otherApp, `"email":"late@example.com"`), big)
	if late.Status != http.StatusCreated {
		t.Errorf("a large message of another tenant after the flood: got %d %s, want 201", late.Status, late.Body)
	}
	token := w.register(otherApp, `"email":"f0@example.com"`)
	if a := w.post("/message", token, hello); a.Status != http.StatusCreated {
		t.Errorf("the same visitor at another application: got %d %s, want 201", a.Status, a.Body)
	}
}

// A registration pays for the greetings that its new chat stores.
func TestGreetingsAreCharged(t *testing.T) {
	t.Parallel()
	w := start(t, uncached, func(cfg *widgetapi.Config) { cfg.BytesAddress = config.Rate{Count: 300 << 10, Per: 168 * time.Hour} })
	greeting := `{"content":"` + strings.Repeat("x", 4096) + `"}`
	w.must(w.store.PutApplication(t.Context(), chat.Application{
		ID: appID, CompanyID: companyID, Provider: chat.ProviderWidget,
		WidgetConfigs: []byte(`{"greetingMessages":[` + strings.Repeat(greeting+",", 49) + greeting + `]}`),
	}))
	w.register(appID, `"email":"a@example.com"`)
	a := w.tryRegister(appID, `"email":"b@example.com"`)
	if a.Status != http.StatusTooManyRequests || a.Problem(t).Code != "BYTE_BUDGET_EXCEEDED" {
		t.Errorf("400 KiB of greetings with a budget of 300: got %d %s, want 429 BYTE_BUDGET_EXCEEDED", a.Status, a.Body)
	}
}

// A rating is an event like a message, so it counts like one.
func TestRatingsAreCharged(t *testing.T) {
	t.Parallel()
	w := start(t, uncached, func(cfg *widgetapi.Config) { cfg.BytesVisitor = config.Rate{Count: 20 << 10, Per: 168 * time.Hour} })
	w.served(appID, chat.Support{Rating: true})
	token := w.register(appID, `"email":"a@example.com"`)
	c := w.chatOf(w.get("/chat", token))
	_, err := w.store.ChangeChat(t.Context(), c.ChatID, store.ChatChange{ClosedAt: time.Now().UTC()})
	w.must(err)
	body := `{"score":5,"comment":"` + strings.Repeat("x", 1000) + `"}`
	accepted := 0
	for range 30 {
		a := w.post("/chat/"+c.ChatID+"/rating", token, body)
		if a.Status == http.StatusTooManyRequests && a.Problem(t).Code == "BYTE_BUDGET_EXCEEDED" {
			break
		}
		if a.Status != http.StatusOK {
			t.Fatalf("got %d %s, want 200", a.Status, a.Body)
		}
		accepted++
	}
	if accepted < 5 || accepted > 15 {
		t.Errorf("got %d ratings of 1 KB accepted, want as many as 20 KiB of events", accepted)
	}
}

func TestByteBudgets(t *testing.T) {
	t.Parallel()
	budget := config.Rate{Count: 20 << 10, Per: 168 * time.Hour}
	ofHour := config.Rate{Count: 8 * budget.Count, Per: budget.Per} // an eighth of it in an hour
	for name, set := range map[string]func(*widgetapi.Config){
		"bytes-visitor":          func(c *widgetapi.Config) { c.BytesVisitor = budget },
		"bytes-address":          func(c *widgetapi.Config) { c.BytesAddress = budget },
		"bytes-application":      func(c *widgetapi.Config) { c.BytesApplication = ofHour },
		"bytes-company-visitors": func(c *widgetapi.Config) { c.BytesCompany = ofHour },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, set)
			one, other := w.register(appID, `"email":"a@example.com"`), w.register(bareApp, `"email":"b@example.com"`)
			for range 30 {
				if a := w.post("/message", one, hello); a.Status == http.StatusTooManyRequests {
					break
				}
			}
			a := w.post("/message", one, hello)
			if a.Status != http.StatusTooManyRequests || a.Problem(t).Code != "BYTE_BUDGET_EXCEEDED" || a.Header.Get("Retry-After") == "" {
				t.Errorf("got %d %v %s, want 429 of %s", a.Status, a.Header, a.Body, name)
			}
			want := http.StatusCreated // of another visitor at another application of the same company from the same address
			if name == "bytes-address" || name == "bytes-company-visitors" {
				want = http.StatusTooManyRequests
			}
			if a := w.post("/message", other, hello); a.Status != want {
				t.Errorf("another application's visitor: got %d %s, want %d", a.Status, a.Body, want)
			}
		})
	}
}

// A visitor, a network and an application have a number of idempotency keys. A retry of a stored request costs none,
// and is answered when none is left.
func TestIdempotencyKeysAreLimited(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *widgetapi.Config) {
		cfg.RateKeys = config.Rate{Count: 2, Per: time.Hour} // one of a visitor, and one of a network
		cfg.TrustedProxies = config.Prefixes{netip.MustParsePrefix("127.0.0.0/8")}
	})
	visitors := map[string]string{"other": w.register(bareApp, `"email":"o@example.com"`)}
	for _, name := range []string{"ada", "bob", "eve"} {
		visitors[name] = w.register(appID, `"email":"`+name+`@example.com"`)
	}
	for _, c := range []struct {
		visitor, address, key string
		want                  int
	}{
		{"ada", "192.0.2.1", "k1", 201},
		{"ada", "192.0.2.2", "k2", 429}, // the visitor's
		{"ada", "192.0.2.2", "k1", 201}, // a retry
		{"bob", "192.0.2.1", "k1", 429}, // the network's
		{"bob", "192.0.2.3", "k1", 201},
		{"eve", "192.0.2.4", "k1", 429}, // the application's
		{"other", "192.0.2.5", "k1", 201},
		{"eve", "192.0.2.6", "", 201},
	} {
		header := headers{
			"Content-Type": "application/json", "Authorization": "Bearer " + visitors[c.visitor], "X-Forwarded-For": c.address,
		}
		if c.key != "" {
			header["Idempotency-Key"] = c.key
		}
		if a, err := w.do(http.MethodPost, "/message", hello, header); err != nil || a.Status != c.want {
			t.Errorf("%s with key %q from %s: got %d %s %v, want %d", c.visitor, c.key, c.address, a.Status, a.Body, err, c.want)
		}
	}
}
