package widgetapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/servicetest"
	"github.com/parley-chat/parley/testkit/timetest"
)

func document(t *testing.T) *openapi3.T {
	t.Helper()
	return httpapitest.Contract(t, widgetapi.OpenAPI()).Spec()
}

// The document lists exactly the routes that the API serves.
func TestDocumentListsEveryRoute(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.contract.ListsRoutes(w.handler)
}

// Each documented status occurs and matches its schema.
func TestEveryDocumentedStatusOccurs(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *widgetapi.Config) {
		cfg.CacheTTL, cfg.RateAddress = time.Millisecond, config.Rate{Count: 300, Per: time.Hour}
	})
	const form = `{"appId":"` + appID + `","email":"a@example.com"}`
	token, closed := w.register(appID, `"email":"a@example.com"`), w.register(appID, `"email":"b@example.com"`)
	w.closeChat(closed)
	tag := w.get("/settings/"+appID, "").Header.Get("ETag")
	_, err := w.do("GET", "/settings/"+appID, "", headers{"If-None-Match": tag})
	w.must(err)
	w.get("/settings/"+unknownID, "")
	w.get("/.well-known/jwks.json", "")
	w.get("/message", token)
	w.get("/message", "")
	w.get("/message", closed)
	w.get("/message?limit=0", token)
	w.post("/message", token, hello)
	w.post("/message", "", hello)
	read := "/message/" + w.history(token)[0].ID + "/read"
	w.post(read+"?all=true", token, "")
	w.post(read, token, "")
	w.post(read, "", "")
	w.post(read, closed, "")
	stop := strings.TrimSuffix(read, "read") + "stop" // of a complete message
	w.post(stop+"?all=true", token, "")
	w.post(stop, token, "")
	w.post(stop, "", "")
	w.post(stop, closed, "")
	w.stopped(token)
	guarded := w.register(guardedApp, `"email":"a@example.com"`)
	w.fromElsewhere(guarded)
	_, err = w.do("POST", "/message/"+unknownID+"/stop", "", headers{"Authorization": "Bearer " + guarded, "Origin": foreignOrigin})
	w.must(err)
	w.inProgress("k", token, `{"text":"hi"}`, time.Now())
	w.keyed("k", token, hello)
	w.keyed("k", token, strings.Replace(hello, "hi", "ho", 1))
	w.post("/register", "", `{"appId":"`+unknownID+`","email":"a@example.com"}`)
	for _, path := range []string{"/register", "/message"} {
		w.post(path, token, `{}`)
		w.post(path, token, strings.Repeat(" ", 128<<10+1))
		_, err := w.do("POST", path, form, headers{"Authorization": "Bearer " + token, "Content-Type": "text/plain"})
		w.must(err)
	}
	w.showFiles(token)
	w.showAgents(token, closed)
	w.removeWidget()
	w.get("/chats", token)
	w.post("/message", token, hello)
	w.post("/chat/offline-message", token, offline)
	w.engines.Store.Begin()
	timetest.Until(t, "the cache has expired", func() bool { return w.get("/settings/"+appID, "").Status == http.StatusServiceUnavailable })
	w.get("/message", token)
	w.post(read, token, "")
	w.post(stop, token, "")
	w.post("/message", token, hello)
	w.post("/register", "", form)
	w.askAgents(token)
	w.engines.NATS.Stop()
	w.get("/files/zzzzzzz-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/a.txt", "")
	for range 300 {
		w.get("/.well-known/jwks.json", "")
	}
	w.get("/settings/"+appID, "")
	w.get("/message", "")
	w.post("/message", "", hello)
	w.post(read, "", "")
	w.post(stop, "", "")
	w.post("/register", "", form)
	w.askAgents("")
	w.get("/files/zzzzzzz-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/a.txt", "")
	unseen := slices.DeleteFunc(w.contract.Unseen(), func(exchange string) bool {
		// TestSlowUploadIsCutOff tests the first; internal/web tests the others, which depend on whether the
		// widget has been built.
		return exchange == "POST /message 408" || strings.HasPrefix(exchange, "GET /widget")
	})
	if len(unseen) > 0 {
		t.Errorf("documented, but never answered: %q", unseen)
	}
}

// Documented error codes that no other test gets.
func TestRemainingErrorCodes(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"a@example.com"`)
	got, err := w.do("GET", "/message", "", headers{"Authorization": "Basic " + token})
	w.must(err)
	if code := got.Problem(t).Code; code != "WRONG_AUTH_SCHEME" {
		t.Errorf("got %s, want WRONG_AUTH_SCHEME", code)
	}
	w.contract.RefusesUnreadableBody(w.base, "/message", "Authorization: Bearer "+token)
}

// showFiles gets every documented answer about files.
func (w *world) showFiles(token string) {
	w.t.Helper()
	_, d := w.uploaded(token, filePart("a.txt", "", "words"))
	tag := w.fetch(http.MethodGet, d.URL, nil).Header.Get("ETag")
	for _, header := range []headers{{"Range": "bytes=1-2"}, {"Range": "bytes=9-"}, {"If-None-Match": tag}, {"If-Match": `"x"`}} {
		w.fetch(http.MethodGet, d.URL, header)
	}
	w.get("/files/x/a.txt", "")
}

// Every request example in the document is accepted.
func TestEveryExampleIsAccepted(t *testing.T) {
	t.Parallel()
	w := start(t, uncached)
	token, closed := w.register(appID, `"email":"a@example.com"`), w.register(appID, `"email":"b@example.com"`)
	w.served(appID, chat.Support{HandoverButton: true, Rating: true})
	rated := w.chatOf(w.get("/chat", closed)).ChatID
	w.closeChat(closed)
	tried := 0
	for path, item := range document(t).Paths.Map() {
		if item.Post == nil || item.Post.RequestBody == nil {
			continue
		}
		for name, example := range item.Post.RequestBody.Value.Content["application/json"].Examples {
			body, ok := example.Value.Value.(map[string]any)
			if !ok {
				t.Fatalf("%s %s: got %T, want an object", path, name, example.Value.Value)
			}
			if body["appId"] != nil {
				body["appId"] = appID
			}
			raw, err := json.Marshal(body)
			w.must(err)
			by := token
			if strings.HasSuffix(path, "/rating") {
				by = closed
			}
			if got := w.post(strings.Replace(path, "{id}", rated, 1), by, string(raw)); got.Status >= 300 {
				t.Errorf("%s %s: got %d %s, want it accepted", path, name, got.Status, got.Body)
			}
			tried++
		}
	}
	if tried < 5 {
		t.Errorf("got %d examples, want three registrations and two messages", tried)
	}
}

func TestDocumentAndPageAreServed(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.contract.IsServed(w.http, w.base)
}

// The engines of tests and standalone must not end up in the service.
func TestBinaryLinksNoEngines(t *testing.T) {
	t.Parallel()
	servicetest.LinksNoEngine(t)
}

// The page at /docs describes every field, fills in no values, and shows the version of the build.
func TestDocumentIsReadable(t *testing.T) {
	t.Parallel()
	httpapitest.Contract(t, widgetapi.OpenAPI()).IsReadable()
}
