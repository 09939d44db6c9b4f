package clientapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/idempotency"
	clientapi "github.com/parley-chat/parley/services/client-api"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/servicetest"
)

func document(t *testing.T) *openapi3.T {
	t.Helper()
	return httpapitest.Contract(t, clientapi.OpenAPI()).Spec()
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
	w := start(t, func(cfg *clientapi.Config) { cfg.RateToken = config.Rate{Count: 300, Per: time.Hour} })
	bodies := map[string]func(id string) string{
		"/message/send": func(id string) string { return sendBody("TEXT", `{"text":"hi"}`, id) },
		"/push-message": func(id string) string { return `{"templateId":"` + id + `","source":"989121234567"}` },
	}
	for path, there := range map[string]string{"/message/send": w.chatID, "/push-message": templateID} {
		body := bodies[path]
		w.post(path, body(there))
		w.post(path, `{}`)
		w.postAs(unknownToken(), path, body(there))
		w.post(path, body(unknownID))
		w.dead("send-in-use", path, idempotency.Fingerprint("TEXT", w.chatID, `{"text":"hi"}`), time.Now())
		w.dead("push-in-use", path, idempotency.Fingerprint(templateID, "989121234567", ""), time.Now())
		w.keyed("send-in-use", path, body(there))
		w.keyed("push-in-use", path, body(there))
		w.post(path, strings.Repeat(" ", 1<<20+1))
		_, err := w.do("POST", path, body(there), headers{"x-access-token": w.token, "Content-Type": "text/plain"})
		w.must(err)
	}
	sent := succeeded(t, w.send(`{"text":"hi"}`)).MessageID
	w.getAs(w.token, "/message/"+sent)
	w.getAs(w.token, "/message/"+sent+"?dryRun=true")
	w.getAs(w.other, "/message/"+sent)
	w.getAs(unknownToken(), "/message/"+sent)
	for _, path := range lookupPaths(w.chatID) {
		w.getAs(w.token, path)
		w.getAs(w.token, path+"?nothing=1")
		w.getAs(unknownToken(), path)
	}
	for _, path := range lookupPaths(unknownID) {
		w.getAs(w.token, path)
	}
	w.engines.NATS.Stop()
	w.getAs(w.token, "/message/"+sent)
	for path, there := range map[string]string{"/message/send": w.chatID, "/push-message": templateID} {
		w.post(path, bodies[path](there))
	}
	for range 300 {
		w.post("/message/send", `{}`)
	}
	w.post("/push-message", `{}`)
	w.getAs(w.token, "/message/"+sent)
	for _, path := range lookupPaths(w.chatID) {
		w.getAs(w.token, path)
	}
	fresh := w.addToken(companyID)
	w.engines.Store.Begin()
	for _, path := range lookupPaths(w.chatID) {
		w.getAs(fresh, path)
	}
	if unseen := w.contract.Unseen(); len(unseen) > 0 {
		t.Errorf("documented, but never answered: %q", unseen)
	}
}

// The document shows the codes of 429 that the API answers. Every test validates its responses, so none gets
// another code.
func TestCodesOfLimits(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *clientapi.Config) {
		cfg.RateToken, cfg.BytesCompany = config.Rate{Count: 20, Per: time.Hour}, config.Rate{Count: 4 << 10, Per: time.Hour}
	})
	for path, there := range map[string]string{"/message/send": w.chatID, "/push-message": templateID} {
		token, answered := w.addToken(companyID), map[string]bool{}
		body := sendBody("TEXT", `{"text":"hi"}`, there)
		if path == "/push-message" {
			body = `{"templateId":"` + there + `","source":"989121234567"}`
		}
		for range 30 {
			if a := w.postAs(token, path, body); a.Status == http.StatusTooManyRequests {
				answered[a.Problem(t).Code] = true
			}
		}
		shown := map[string]bool{}
		for _, example := range document(t).Paths.Value(path).Post.Responses.Status(http.StatusTooManyRequests).Value.Content["application/json"].Examples {
			shown[example.Value.Value.(map[string]any)["code"].(string)] = true
		}
		if !maps.Equal(answered, shown) || len(shown) != 2 {
			t.Errorf("%s: got the codes %v, and the document shows %v, want the same two", path, answered, shown)
		}
	}
}

// An unreadable body gets the documented error.
func TestUnreadableBody(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.contract.RefusesUnreadableBody(w.base, "/message/send", "x-access-token: "+w.token)
}

// Every request example in the document is accepted, and its data is published unchanged.
func TestEveryExampleIsAccepted(t *testing.T) {
	t.Parallel()
	w := start(t)
	heard := bustest.Collect(t, w.engines.NATSURL, "chat.in.>")
	tried := 0
	for path, item := range document(t).Paths.Map() {
		if item.Post == nil {
			continue
		}
		for name, example := range item.Post.RequestBody.Value.Content["application/json"].Examples {
			body, ok := example.Value.Value.(map[string]any)
			if !ok {
				t.Fatalf("%s %s: got %T, want an object", path, name, example.Value.Value)
			}
			w.point(body)
			raw, err := json.Marshal(body)
			w.must(err)
			succeeded(t, w.post(path, string(raw)))
			event := heard.Next()
			if data, err := json.Marshal(body["data"]); err != nil || path == "/message/send" && !strings.Contains(string(event.Data), string(data)) {
				t.Errorf("%s %s: got the event %s, want it to hold %s", path, name, event.Data, data)
			}
			tried++
		}
	}
	if tried < 10 {
		t.Errorf("got %d examples, want one of each of the eight types and two pushes", tried)
	}
}

// The document has a schema for every type that a company may send.
func TestDocumentHasEveryType(t *testing.T) {
	t.Parallel()
	types := []string{}
	for _, messageType := range chat.CompanyTypes() {
		types = append(types, string(messageType))
	}
	schemas := document(t).Components.Schemas
	documented := slices.Collect(maps.Keys(schemas["SendMessage"].Value.Discriminator.Mapping))
	if !slices.Equal(slices.Sorted(slices.Values(documented)), slices.Sorted(slices.Values(types))) {
		t.Errorf("got SendMessage of %v, want %v", documented, types)
	}
	for _, messageType := range append(append(chat.CompanyTypes(), chat.VisitorTypes()...), chat.Template) {
		if _, ok := schemas["Message"].Value.Discriminator.Mapping[string(messageType)]; !ok {
			t.Errorf("the schema Message has no %s", messageType)
		}
	}
}

// point replaces the ids of an example with existing ones.
func (w *world) point(body map[string]any) {
	if body["chatId"] != nil {
		body["chatId"] = w.chatID
	}
	if body["templateId"] != nil {
		body["templateId"] = templateID
	}
}

func TestDocumentAndPageAreServed(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.contract.IsServed(w.http, w.base)
}

// Schemas that both APIs share are equal.
func TestSharedSchemasAreTheSame(t *testing.T) {
	t.Parallel()
	other, err := os.ReadFile("../widget-api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if shared := httpapitest.SharedSchemas(t, clientapi.OpenAPI(), other, "SendMessage", "SendText", "SendFile"); shared < 10 {
		t.Errorf("got %d shared schemas, want those of the messages' data and the error", shared)
	}
}

// The engines of tests and standalone must not end up in the service.
func TestBinaryLinksNoEngines(t *testing.T) {
	t.Parallel()
	servicetest.LinksNoEngine(t)
}

// The page at /docs describes every field, fills in no values, and shows the version of the build.
func TestDocumentIsReadable(t *testing.T) {
	t.Parallel()
	httpapitest.Contract(t, clientapi.OpenAPI()).IsReadable()
}
