package widgetapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// Origins of pages: one that the guarded application allows, and one that it does not.
const (
	pageOrigin    = "https://shop.example.com"
	foreignOrigin = "https://evil.example"
)

// requests returns every request that concerns an application, from a page of that origin.
func (w *world) requests(origin, app, token string) map[string]httpapitest.Response {
	w.t.Helper()
	answers := make(map[string]httpapitest.Response)
	for _, ask := range []struct{ method, path, body, token string }{
		{http.MethodGet, "/settings/" + app, "", ""},
		{http.MethodPost, "/register", `{"appId":"` + app + `","email":"o@example.com"}`, ""},
		{http.MethodGet, "/message", "", token},
		{http.MethodPost, "/message", hello, token},
		{http.MethodPost, "/message/:id/read", "{}", token},
	} {
		header := headers{"Origin": origin}
		if ask.body != "" {
			header["Content-Type"] = "application/json"
		}
		if ask.token != "" {
			header["Authorization"] = "Bearer " + ask.token
		}
		path := strings.Replace(ask.path, ":id", idOf(answers[http.MethodPost+" /message"]), 1)
		a, err := w.do(ask.method, path, ask.body, header)
		w.must(err)
		answers[ask.method+" "+ask.path] = a
	}
	return answers
}

// idOf returns the message id in an answer, or an unknown one.
func idOf(a httpapitest.Response) string {
	var m struct{ ID string }
	if json.Unmarshal([]byte(a.Body), &m) != nil || m.ID == "" {
		return unknownID
	}
	return m.ID
}

func (w *world) fromElsewhere(token string) map[string]httpapitest.Response {
	w.t.Helper()
	return w.requests(foreignOrigin, guardedApp, token)
}

func TestPagesOfOtherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(guardedApp, `"email":"o@example.com"`)
	before := len(w.history(token))
	for _, origin := range []string{foreignOrigin, "null", "http://shop.example.com", "https://shop.example.com:8443", "https://shop.example.com.evil.example", "https://evilshop.example.com"} {
		for ask, got := range w.requests(origin, guardedApp, token) {
			if got.Status != http.StatusForbidden || got.Problem(t).Code != "ORIGIN_NOT_ALLOWED" {
				t.Errorf("%s from %s: got %d %s, want 403 ORIGIN_NOT_ALLOWED", ask, origin, got.Status, got.Body)
			}
			// The page may read the reason, and nothing else.
			if h := got.Header; h.Get("Access-Control-Allow-Origin") != origin || h.Get("Access-Control-Expose-Headers") != "" || h.Get("Vary") == "" {
				t.Errorf("%s from %s: got %v, want a readable error without exposed headers, varying by origin", ask, origin, h)
			}
		}
	}
	if after := len(w.history(token)); after != before {
		t.Errorf("got %d messages, want %d as before: a refused page must not write", after, before)
	}
}

func TestAllowedOriginsAndNonBrowsersPass(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(guardedApp, `"email":"o@example.com"`)
	for _, origin := range []string{"https://shop.example.com", "https://a.shop.example.com", ""} {
		for ask, got := range w.requests(origin, guardedApp, token) {
			if got.Status >= 300 || got.Header.Get("Access-Control-Allow-Origin") != origin {
				t.Errorf("%s from %q: got %d %s %v, want it to pass", ask, origin, got.Status, got.Body, got.Header)
			}
		}
	}
	open := w.register(appID, `"email":"o@example.com"`)
	for _, origin := range []string{foreignOrigin, "null"} {
		for ask, got := range w.requests(origin, appID, open) {
			if got.Status >= 300 || got.Header.Get("Access-Control-Allow-Origin") != origin {
				t.Errorf("%s from %q, of an application without a list: got %d %s, want it to pass", ask, origin, got.Status, got.Body)
			}
		}
	}
}

// A preflight has neither application nor token, so every page may ask; the actual request is refused.
func TestPreflightsPass(t *testing.T) {
	t.Parallel()
	w := start(t)
	for _, path := range []string{"/settings/" + guardedApp, "/register", "/message"} {
		got, err := w.do(http.MethodOptions, path, "", headers{
			"Origin": foreignOrigin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type",
		})
		w.must(err)
		if got.Status != http.StatusNoContent || got.Header.Get("Access-Control-Allow-Origin") != foreignOrigin || got.Header.Get("Access-Control-Allow-Headers") == "" {
			t.Errorf("OPTIONS %s: got %d %v, want 204 with permission", path, got.Status, got.Header)
		}
	}
}

// Errors found before the application is known come first, and the page can read them.
func TestErrorsBeforeTheOriginCheck(t *testing.T) {
	t.Parallel()
	w := start(t)
	for _, test := range []struct {
		method, path, body, token string
		status                    int
	}{
		{http.MethodPost, "/register", `{`, "", http.StatusBadRequest},
		{http.MethodPost, "/register", `{"appId":"` + unknownID + `","email":"a@example.com"}`, "", http.StatusNotFound},
		{http.MethodGet, "/settings/" + unknownID, ``, "", http.StatusNotFound},
		{http.MethodGet, "/message", ``, "nonsense", http.StatusUnauthorized},
	} {
		got, err := w.do(test.method, test.path, test.body, headers{
			"Origin": foreignOrigin, "Content-Type": "application/json", "Authorization": "Bearer " + test.token,
		})
		w.must(err)
		if got.Status != test.status || got.Header.Get("Access-Control-Allow-Origin") != foreignOrigin {
			t.Errorf("%s %s: got %d %v, want %d that the page can read", test.method, test.path, got.Status, got.Header, test.status)
		}
	}
}

// A changed list takes effect at once on every replica, and in the answers to gateways.
func TestTheListChanges(t *testing.T) {
	t.Parallel()
	believing := func(cfg *widgetapi.Config) { cfg.CacheTTL = time.Hour }
	w := start(t, believing)
	first := w.base
	w.run(believing)
	token := w.register(guardedApp, `"email":"o@example.com"`)
	b := bustest.Open(t, w.engines.NATSURL)
	ask := func(base string) int { w.base = base; return w.fromElsewhere(token)["GET /message"].Status }
	replicas := []string{first, w.base}
	for _, base := range replicas {
		if got := ask(base); got != http.StatusForbidden {
			t.Fatalf("before: got %d, want 403", got)
		}
	}
	origins, found, err := b.RPC().AllowedOrigins(t.Context(), guardedApp)
	if err != nil || !found || chat.Origins(origins).Allow(foreignOrigin) || !chat.Origins(origins).Allow("https://shop.example.com") {
		t.Errorf("asked over NATS: got %v, %v, %v, want the list", origins, found, err)
	}
	app, err := w.store.Application(t.Context(), guardedApp)
	w.must(err)
	app.AllowedOrigins = append(app.AllowedOrigins, foreignOrigin)
	w.must(w.store.PutApplication(t.Context(), app))
	w.must(b.RPC().Invalidate(t.Context(), store.CachedApplication, guardedApp))
	for _, base := range replicas {
		timetest.Until(t, "the change reaching "+base, func() bool { return ask(base) == http.StatusOK })
	}
	timetest.Until(t, "the change reaching gateways over NATS", func() bool {
		origins, _, err := b.RPC().AllowedOrigins(t.Context(), guardedApp)
		return err == nil && chat.Origins(origins).Allow(foreignOrigin)
	})
	if _, found, err := b.RPC().AllowedOrigins(t.Context(), unknownID); err != nil || found {
		t.Errorf("of an unknown application: got %v, %v, want none", found, err)
	}
}
