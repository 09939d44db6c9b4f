package socketgateway_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/testkit/bustest"
)

const (
	shop      = "https://shop.example.com"
	elsewhere = "https://evil.example"
)

// widgetAPI stands in for the Widget APIs: it knows what applications allow.
type widgetAPI struct {
	mu      sync.Mutex
	origins map[string][]string
	asked   int
}

func (w *world) startWidgetAPI(origins map[string][]string) (api *widgetAPI, stop func()) {
	w.t.Helper()
	api = &widgetAPI{origins: origins}
	stop, err := w.bus.RPC().HandleOrigins(api.find)
	if err != nil {
		w.t.Fatal(err)
	}
	stop = sync.OnceFunc(stop)
	w.t.Cleanup(stop)
	bustest.AwaitReady(w.t, w.bus)
	return api, stop
}

func (a *widgetAPI) find(_ context.Context, appID string) ([]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	origins, ok := a.origins[appID]
	if !ok {
		return nil, apperr.New(apperr.NotFound, "", "")
	}
	return origins, nil
}

func (a *widgetAPI) set(appID string, origins ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.origins[appID] = origins
}

func (a *widgetAPI) questions() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

func TestSocketsOfOtherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	guarded, open, gone := w.visitor(), w.visitor(), w.visitor()
	api, _ := w.startWidgetAPI(map[string][]string{guarded.appID: {shop, "https://*.shop.example.com"}, open.appID: nil})
	g := w.start()
	const refused = `Origin is not allowed {"code":"ORIGIN_NOT_ALLOWED"}`
	for _, test := range []struct {
		name   string
		who    visitor
		origin string
		want   string // empty: connected
	}{
		{"the page of the list", guarded, shop, ""},
		{"a page below it", guarded, "https://a.shop.example.com", ""},
		{"no page", guarded, "", ""},
		{"another page", guarded, elsewhere, refused},
		{"another scheme", guarded, "http://shop.example.com", refused},
		{"another port", guarded, shop + ":8443", refused},
		{"null", guarded, "null", refused},
		{"any page, without a list", open, elsewhere, ""},
		{"null, without a list", open, "null", ""},
		{"an application that is gone", gone, shop, `Unauthorized {"code":"UNAUTHORIZED"}`},
		{"no page, and an application that is gone", gone, "", ""},
		{"a wrong token first", visitor{token: "nonsense"}, elsewhere, `Unauthorized {"code":"UNAUTHORIZED"}`},
	} {
		h := connectFrom(t, g.url, test.who.token, test.origin).next()
		got := ""
		if h.Event != "connect" {
			got = h.Message + " " + string(h.Data)
		}
		if got != test.want {
			t.Errorf("%s: got %s %q, want %q", test.name, h.Event, got, test.want)
		}
	}
	if asked := api.questions(); asked != 3 {
		t.Errorf("asked %d times, want once for each application", asked)
	}
}

// A change of the list reaches every gateway with the word that the application has changed.
func TestOriginsChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor()
	api, stop := w.startWidgetAPI(map[string][]string{v.appID: {shop}})
	gateways := []*gateway{w.start(), w.start()}
	for _, g := range gateways {
		connectFrom(t, g.url, v.token, shop).await("connect")
		connectFrom(t, g.url, v.token, elsewhere).await("connect_error")
	}
	api.set(v.appID, elsewhere)
	if err := w.bus.RPC().Invalidate(t.Context(), "application", v.appID); err != nil {
		t.Fatal(err)
	}
	for _, g := range gateways {
		w.awaitEntry(g, v, elsewhere)
		connectFrom(t, g.url, v.token, shop).await("connect_error")
	}
	// Without the Widget API, cached origins stay valid; unknown applications are refused.
	stop()
	if err := w.bus.RPC().Invalidate(t.Context(), "application", v.appID); err != nil {
		t.Fatal(err)
	}
	other := w.visitor()
	for _, g := range gateways {
		connectFrom(t, g.url, v.token, elsewhere).await("connect")
		connectFrom(t, g.url, v.token, shop).await("connect_error")
		connectFrom(t, g.url, other.token, "").await("connect")
		if h := connectFrom(t, g.url, other.token, shop).await("connect_error"); string(h.Data) != `{"code":"SERVICE_UNAVAILABLE"}` {
			t.Errorf("with nobody to ask: got %s, want it unavailable", h.Data)
		}
	}
}

// awaitEntry returns when a page of that origin gets in.
func (w *world) awaitEntry(g *gateway, v visitor, origin string) {
	w.t.Helper()
	for range 1000 {
		if connectFrom(w.t, g.url, v.token, origin).next().Event == "connect" {
			return
		}
	}
	w.t.Fatalf("got no connection from a page of %s, want one", origin)
}

func TestLegacySocketsOfOtherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor()
	w.startWidgetAPI(map[string][]string{v.appID: {shop}})
	g := w.start(withLegacy)
	awaitLegacy(t, g.url)
	for origin, want := range map[string]string{
		shop: "40/message", "": "40/message",
		elsewhere: `44/message,{"message":"Origin is not allowed","data":{"code":"ORIGIN_NOT_ALLOWED"}}`,
	} {
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		if got := legacyAnswer(t, g.url, v.token, header); !strings.Contains(got, want) {
			t.Errorf("a page of %q: got %q, want %q in it", origin, got, want)
		}
	}
}

// legacyAnswer is what an old client hears of the namespace, over polling.
func legacyAnswer(t *testing.T, baseURL, token string, header http.Header) string {
	t.Helper()
	target := baseURL + "/socket.io/?EIO=3&transport=polling&b64=1&token=" + token
	_, _, body := request(t, http.MethodGet, target, header.Clone())
	target += "&sid=" + between(body, `"sid":"`, `"`)
	request(t, http.MethodGet, target, header.Clone()) // the root's CONNECT
	header.Set("Content-Type", "text/plain;charset=UTF-8")
	if status, _, body := request(t, http.MethodPost, target, header.Clone(), "11:40/message,"); status != http.StatusOK {
		t.Fatalf("joining the namespace: got %d %s", status, body)
	}
	for all := ""; ; {
		_, _, body := request(t, http.MethodGet, target, header.Clone())
		if all += body; strings.Contains(all, "/message") {
			return all
		}
	}
}
