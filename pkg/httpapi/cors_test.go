package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/httpapi"
)

const shop = "https://shop.example"

func newCORSAPI() *api {
	a := newAPI(httpapi.Config{})
	a.Use(httpapi.CORS(func(origin string, _ echo.Context) bool { return origin == shop }))
	return a
}

func TestCORSOfAnAllowedOrigin(t *testing.T) {
	t.Parallel()
	a := newCORSAPI()
	for _, path := range []string{"/ok/1", "/notfound", "/unavailable", "/panic", "/unknown"} {
		h := a.do("GET", path, header("Origin", shop)).Header()
		if h.Get("Access-Control-Allow-Origin") != shop || h.Get("Vary") != "Origin" {
			t.Errorf("%s: got %v, want the origin allowed", path, h)
		}
		if got, want := h.Get("Access-Control-Expose-Headers"), "X-Request-Id, Retry-After, Link, Idempotency-Replayed, RateLimit, RateLimit-Policy, ETag, Accept-Ranges, "+
			"Content-Range, Content-Disposition, Parley-Unread, Parley-Read-Up-To, Parley-Seen-Up-To, Parley-Agents"; got != want {
			t.Errorf("%s: exposed: got %q, want %q", path, got, want)
		}
		if h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: got credentials allowed, want not", path)
		}
	}
}

func TestCORSOfAnotherOrigin(t *testing.T) {
	t.Parallel()
	a := newCORSAPI()
	for name, origin := range map[string]string{"other": "https://evil.example", "null": "null", "none": ""} {
		rec := a.do("GET", "/ok/1", header("Origin", origin))
		if rec.Code != http.StatusOK || rec.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: got %d %v, want the answer without permission", name, rec.Code, rec.Header())
		}
		if rec.Header().Get("Vary") != "Origin" {
			t.Errorf("%s: Vary: got %q, want Origin, or a cache mixes up the origins", name, rec.Header().Get("Vary"))
		}
	}
}

func TestCORSPreflight(t *testing.T) {
	t.Parallel()
	a := newCORSAPI()
	ask := header("Access-Control-Request-Method", "POST")
	rec := a.do("OPTIONS", "/ok/1", header("Origin", shop), ask, header("Access-Control-Request-Headers", "authorization,content-type"))
	h := rec.Header()
	if rec.Code != http.StatusNoContent || h.Get("Access-Control-Allow-Origin") != shop || h.Get("Access-Control-Max-Age") != "600" {
		t.Errorf("got %d %v, want 204 with permission", rec.Code, h)
	}
	if got, want := h.Get("Access-Control-Allow-Methods"), "GET, HEAD, POST"; got != want {
		t.Errorf("methods: got %q, want %q", got, want)
	}
	for _, name := range []string{"Authorization", "Content-Type", "Idempotency-Key"} {
		if !strings.Contains(h.Get("Access-Control-Allow-Headers"), name) {
			t.Errorf("headers: got %q, want %s in it", h.Get("Access-Control-Allow-Headers"), name)
		}
	}
	refused := a.do("OPTIONS", "/ok/1", header("Origin", "https://evil.example"), ask)
	if refused.Code != http.StatusNoContent || refused.Header().Get("Access-Control-Allow-Methods") != "" {
		t.Errorf("other origin: got %d %v, want 204 without permission", refused.Code, refused.Header())
	}
	plain := a.do("OPTIONS", "/ok/1", header("Origin", shop))
	if plain.Code != http.StatusNoContent || plain.Header().Get("Allow") == "" {
		t.Errorf("OPTIONS that is no preflight: got %d %v, want 204 with Allow", plain.Code, plain.Header())
	}
}
