package widgetapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/config"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
)

// tooMany checks a 429: it says when to come back, and of which limit; also to a page of another site.
func (a answer) tooMany(t *testing.T, limit string) {
	t.Helper()
	if a.status != http.StatusTooManyRequests || a.problem(t).Code != "TOO_MANY_REQUESTS" || a.header.Get("Retry-After") == "" {
		t.Errorf("got %d %s, want 429 with Retry-After", a.status, a.body)
	}
	if all := strings.Join(a.header.Values("RateLimit"), ", "); !strings.Contains(all, `"`+limit+`";r=0;`) {
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
	slow.tooMany(t, "visitor")
	if slow.header.Get("Access-Control-Allow-Origin") == "" || !strings.Contains(slow.header.Get("Access-Control-Expose-Headers"), "RateLimit") {
		t.Errorf("got %v, want that a page can read it", slow.header)
	}
	if a := w.post("/message", two, hello); a.status != http.StatusCreated {
		t.Errorf("another visitor: got %d %s, want 201", a.status, a.body)
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
		if a := w.post("/register", "", form); a.status != http.StatusOK {
			t.Errorf("got %d, want 200", a.status)
		}
	}
	w.post("/register", "", form).tooMany(t, "register")
	w.get("/message", "wrong")
	w.post("/message", "", hello)
	w.get("/message", "wrong").tooMany(t, "auth-failures")
	if a := w.get("/settings/"+bareApp, ""); a.status != http.StatusOK {
		t.Errorf("got %d, want 200: that is no guess", a.status)
	}
	w.get("/settings/"+bareApp, "").tooMany(t, "address")
	w.get("/.well-known/jwks.json", "").tooMany(t, "address")
}
