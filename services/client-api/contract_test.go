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
	clientapi "github.com/parley-chat/parley/services/client-api"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/servicetest"
	"github.com/parley-chat/parley/testkit/storetest"
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
	sent := succeeded(t, w.send(`{"text":"hi"}`)).MessageID
	mine, unknown := w.operations(w.chatID, sent, templateID), w.operations(unknownID, unknownID, unknownID)
	for i, o := range mine {
		w.request(o, w.token)
		w.request(o, unknownToken())
		w.request(unknown[i], w.token)
		o.path += "?nothing=1"
		w.request(o, w.token)
		if o.body != "" {
			w.requestWrongly(mine[i])
		}
	}
	storetest.Unanswer(t, w.store)
	for _, o := range mine {
		if o.body != "" {
			w.keyed("in-use", o.path, o.body)
		}
	}
	w.engines.NATS.Stop()
	for _, o := range mine {
		w.request(o, w.token)
	}
	for range 300 {
		w.post("/message/send", `{}`)
	}
	for _, o := range mine {
		w.request(o, w.token)
	}
	fresh := w.addToken(companyID)
	w.engines.Store.Begin()
	for _, o := range mine {
		w.request(o, fresh)
	}
	if unseen := w.contract.Unseen(); len(unseen) > 0 {
		t.Errorf("documented, but never answered: %q", unseen)
	}
}

// operation is a request that the document describes. body is the first example, or empty for a look-up.
type operation struct{ method, path, body string }

// operations returns a request of each operation in the document that names these records. A path names the record of
// its first segment.
func (w *world) operations(chatID, messageID, templateID string) (all []operation) {
	w.t.Helper()
	ids := map[string]string{"chats": chatID, "message": messageID}
	paths := document(w.t).Paths.Map()
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		resource, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		operations := paths[path].Operations()
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			o := operation{method: method, path: strings.Replace(path, "{id}", ids[resource], 1)}
			if operations[method].RequestBody != nil {
				o.body = w.example(operations[method], map[string]string{"chatId": chatID, "templateId": templateID})
			}
			all = append(all, o)
		}
	}
	return all
}

// example returns the body of an operation's first example with these ids.
func (w *world) example(described *openapi3.Operation, ids map[string]string) string {
	w.t.Helper()
	examples := described.RequestBody.Value.Content["application/json"].Examples
	first := slices.Min(slices.Collect(maps.Keys(examples)))
	body := maps.Clone(examples[first].Value.Value.(map[string]any))
	for name, id := range ids {
		if body[name] != nil {
			body[name] = id
		}
	}
	raw, err := json.Marshal(body)
	w.must(err)
	return string(raw)
}

func (w *world) request(o operation, token string) httpapitest.Response {
	w.t.Helper()
	a, err := w.do(o.method, o.path, o.body, headers{"x-access-token": token, "Content-Type": "application/json"})
	w.must(err)
	return a
}

// requestWrongly sends what a write refuses: nothing, too much, another media type, and another body with a used key.
func (w *world) requestWrongly(o operation) {
	w.t.Helper()
	w.post(o.path, `{}`)
	w.post(o.path, strings.Repeat(" ", 1<<20+1))
	_, err := w.do(o.method, o.path, o.body, headers{"x-access-token": w.token, "Content-Type": "text/plain"})
	w.must(err)
	w.dead("another", o.path, "another body", time.Now())
	w.keyed("another", o.path, o.body)
	w.keyed("in-use", o.path, o.body)
}

// The document shows the codes of 429 that the API answers. Every test validates its responses, so none gets
// another code.
func TestCodesOfLimits(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *clientapi.Config) {
		cfg.RateToken, cfg.BytesCompany = config.Rate{Count: 20, Per: time.Hour}, config.Rate{Count: 4 << 10, Per: time.Hour}
	})
	for _, o := range w.operations(w.chatID, unknownID, templateID) {
		if o.body == "" {
			continue
		}
		token, answered := w.addToken(companyID), map[string]bool{}
		for range 30 {
			if a := w.postAs(token, o.path, o.body); a.Status == http.StatusTooManyRequests {
				answered[a.Problem(t).Code] = true
			}
		}
		shown := map[string]bool{}
		for _, example := range document(t).Paths.Value(o.path).Post.Responses.Status(http.StatusTooManyRequests).Value.Content["application/json"].Examples {
			shown[example.Value.Value.(map[string]any)["code"].(string)] = true
		}
		if !maps.Equal(answered, shown) || len(shown) == 0 {
			t.Errorf("%s: got the codes %v, and the document shows %v, want the same", o.path, answered, shown)
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
	heard := bustest.Collect(t, w.engines.NATSURL, "chat.in.message.>")
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
			tried++
			if path != "/message/send" {
				continue
			}
			event := heard.Next()
			if data, err := json.Marshal(body["data"]); err != nil || !strings.Contains(string(event.Data), string(data)) {
				t.Errorf("%s %s: got the event %s, want it to hold %s", path, name, event.Data, data)
			}
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
