package httpapi_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/httpapi"
)

func TestClientAddress(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for name, test := range map[string]struct {
		proxies   []netip.Prefix
		peer      string
		forwarded []string
		want      string
	}{
		"direct":                         {nil, "192.0.2.1:5", nil, "192.0.2.1"},
		"no trusted proxy":               {nil, "10.0.0.1:5", []string{"198.51.100.7"}, "10.0.0.1"},
		"an untrusted peer":              {proxies, "192.0.2.1:5", []string{"198.51.100.7"}, "192.0.2.1"},
		"a proxy":                        {proxies, "10.0.0.1:5", []string{"198.51.100.7"}, "198.51.100.7"},
		"two proxies":                    {proxies, "10.0.0.1:5", []string{"198.51.100.7, 10.0.0.2"}, "198.51.100.7"},
		"what the caller invents":        {proxies, "10.0.0.1:5", []string{"203.0.113.9, 198.51.100.7"}, "198.51.100.7"},
		"a proxy that the caller claims": {proxies, "10.0.0.1:5", []string{"203.0.113.9, 10.9.9.9, 198.51.100.7"}, "198.51.100.7"},
		"several lines":                  {proxies, "10.0.0.1:5", []string{"203.0.113.9", "198.51.100.7", "10.0.0.2"}, "198.51.100.7"},
		"with a port":                    {proxies, "10.0.0.1:5", []string{"198.51.100.7:443"}, "198.51.100.7"},
		"only proxies":                   {proxies, "10.0.0.1:5", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"nothing forwarded":              {proxies, "10.0.0.1:5", nil, "10.0.0.1"},
		"garbage":                        {proxies, "10.0.0.1:5", []string{"198.51.100.7, unknown"}, "10.0.0.1"},
		"empty":                          {proxies, "10.0.0.1:5", []string{""}, "10.0.0.1"},
		"IPv6":                           {proxies, "[2001:db8:1:2:3:4:5:6]:5", nil, "2001:db8:1:2::/64"},
		"IPv6 behind a proxy":            {proxies, "[fd00::1]:5", []string{"[2001:db8:1:2::9]:80"}, "2001:db8:1:2::/64"},
		"IPv4 within IPv6":               {proxies, "[::ffff:10.0.0.1]:5", []string{"::ffff:198.51.100.7"}, "198.51.100.7"},
		"a zone":                         {nil, "[fe80::1%eth0]:5", nil, "fe80::/64"},
	} {
		e := httpapi.New(httpapi.Config{Proxies: test.proxies, Logger: slog.New(slog.DiscardHandler)})
		e.GET("/", func(c echo.Context) error { return c.String(http.StatusOK, httpapi.ClientAddress(c)) })
		req := httptest.NewRequest(http.MethodGet, "/", nil)
		req.RemoteAddr = test.peer
		req.Header["X-Forwarded-For"] = test.forwarded
		w := httptest.NewRecorder()
		if e.ServeHTTP(w, req); w.Body.String() != test.want {
			t.Errorf("%s: got %s, want %s", name, w.Body, test.want)
		}
		if got := httpapi.AddressOf(test.proxies)(req); got != test.want {
			t.Errorf("%s: got %s without an API, want %s", name, got, test.want)
		}
	}
}

// An untrusted peer cannot change its address with forwarded headers.
func FuzzClientAddress(f *testing.F) {
	for _, seed := range []string{"", ",", "1.2.3.4", "[::1]:5, 10.0.0.1", "::ffff:1.2.3.4%x"} {
		f.Add(seed)
	}
	e := httpapi.New(httpapi.Config{Logger: slog.New(slog.DiscardHandler), Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	e.GET("/", func(c echo.Context) error { return c.String(http.StatusOK, httpapi.ClientAddress(c)) })
	f.Fuzz(func(t *testing.T, forwarded string) {
		for peer, check := range map[string]func(string) bool{
			"192.0.2.1:5": func(got string) bool { return got == "192.0.2.1" },
			"10.0.0.1:5":  func(got string) bool { return got != "" },
		} {
			req := httptest.NewRequest(http.MethodGet, "/", nil)
			req.RemoteAddr = peer
			req.Header["X-Forwarded-For"] = []string{forwarded}
			w := httptest.NewRecorder()
			if e.ServeHTTP(w, req); !check(w.Body.String()) {
				t.Errorf("%s forwarding %q: got %q", peer, forwarded, w.Body)
			}
		}
	})
}

// TestWideProxiesAreReported logs a network that is too large to be an edge's.
func TestWideProxiesAreReported(t *testing.T) {
	t.Parallel()
	for text, wide := range map[string]bool{"10.0.0.0/8": true, "10.244.0.0/16": false} {
		var log bytes.Buffer
		httpapi.New(httpapi.Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), Proxies: []netip.Prefix{netip.MustParsePrefix(text)}})
		if got := strings.Contains(log.String(), "TRUSTED_PROXIES"); got != wide {
			t.Errorf("%s: got the log %q, want a warning: %v", text, log.String(), wide)
		}
	}
}
