package widgetapi_test

import (
	"encoding/json"
	"maps"
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
	"github.com/parley-chat/parley/testkit/storetest"
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
	guarded := w.register(guardedApp, `"email":"a@example.com"`)
	mine := w.visitorOperations(w.chatOf(w.get("/chat", token)).ChatID, w.history(token)[0].ID)
	for i, unknown := range w.visitorOperations(unknownID, unknownID) {
		w.request(mine[i], token, pageOrigin)
		w.request(mine[i], "", pageOrigin)
		w.request(mine[i], guarded, foreignOrigin)
		w.request(unknown, token, pageOrigin)
		unknown.path += "?nothing=1"
		w.request(unknown, token, pageOrigin)
		if unknown.body != "" {
			w.requestWrongly(mine[i], token)
		} else {
			w.request(mine[i], closed, pageOrigin) // a body would open another chat
		}
		w.requestKeyed(mine[i], token, mine[i].body)
		w.requestKeyed(mine[i], token, strings.Replace(mine[i].body, `"}`, `x"}`, 1)) // another body
	}
	w.stopped(token)
	w.fromElsewhere(guarded)
	storetest.Unanswer(t, w.store)
	for _, o := range mine {
		w.requestKeyed(o, token, o.body)
	}
	w.post("/register", "", `{"appId":"`+unknownID+`","email":"a@example.com"}`)
	w.requestWrongly(operation{method: http.MethodPost, path: "/register", body: form}, "")
	w.showFiles(token)
	w.showAgents(token, closed)
	w.removeWidget()
	w.get("/chats", token)
	w.post("/message", token, hello)
	w.post("/chat/offline-message", token, offline)
	w.engines.Store.Begin()
	timetest.Until(t, "the cache has expired", func() bool { return w.get("/settings/"+appID, "").Status == http.StatusServiceUnavailable })
	w.requestAll(mine, token)
	w.post("/register", "", form)
	w.engines.NATS.Stop()
	w.get("/files/zzzzzzz-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/a.txt", "")
	for range 300 {
		w.get("/.well-known/jwks.json", "")
	}
	w.get("/settings/"+appID, "")
	w.requestAll(mine, "")
	w.post("/register", "", form)
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

// operation is a request that the document describes. body is its first example in JSON, or empty; keyed: it takes an
// Idempotency-Key.
type operation struct {
	method, path, body string
	keyed              bool
}

// visitorOperations returns a request of each operation that takes a visitor's token, with these ids in the path: of a
// message in the history, else of a chat.
func (w *world) visitorOperations(chatID, messageID string) (all []operation) {
	w.t.Helper()
	for path, item := range document(w.t).Paths.Map() {
		id := chatID
		if strings.HasPrefix(path, "/message/") {
			id = messageID
		}
		for method, described := range item.Operations() {
			if described.Security == nil || len(*described.Security) != 1 {
				continue // needs no token
			}
			o := operation{method: method, path: strings.Replace(path, "{id}", id, 1)}
			o.keyed = described.Parameters.GetByInAndName("header", "Idempotency-Key") != nil
			if described.RequestBody != nil {
				examples := described.RequestBody.Value.Content["application/json"].Examples
				first := slices.Min(slices.Collect(maps.Keys(examples)))
				raw, err := json.Marshal(examples[first].Value.Value)
				w.must(err)
				o.body = string(raw)
			}
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	return all
}

func (w *world) request(o operation, token, origin string) {
	w.t.Helper()
	header := headers{"Content-Type": "application/json", "Origin": origin}
	if token != "" {
		header["Authorization"] = "Bearer " + token
	}
	_, err := w.do(o.method, o.path, o.body, header)
	w.must(err)
}

func (w *world) requestAll(all []operation, token string) {
	w.t.Helper()
	for _, o := range all {
		w.request(o, token, pageOrigin)
	}
}

// requestKeyed sends a body with the key of the test, if the operation takes one.
func (w *world) requestKeyed(o operation, token, body string) {
	w.t.Helper()
	if !o.keyed {
		return
	}
	_, err := w.do(o.method, o.path, body, headers{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Origin": pageOrigin, "Idempotency-Key": "status",
	})
	w.must(err)
}

// requestWrongly sends what a write refuses: nothing, too much, another media type.
func (w *world) requestWrongly(o operation, token string) {
	w.t.Helper()
	w.post(o.path, token, `{}`)
	w.post(o.path, token, strings.Repeat(" ", 128<<10+1))
	_, err := w.do(o.method, o.path, o.body, headers{"Authorization": "Bearer " + token, "Content-Type": "text/plain"})
	w.must(err)
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
