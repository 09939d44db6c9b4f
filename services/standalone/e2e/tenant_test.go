package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	clientapi "github.com/parley-chat/parley/services/client-api"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
	"github.com/parley-chat/parley/testkit/httpapitest"
)

// tenant is a company with one record of every kind.
type tenant struct {
	token    string // of the company
	app      chat.Application
	template string
	chatID   string
	visitor  string // a visitor's token
	message  string // the id of a message in the visitor's chat
	sent     string // the id of a message that the company has sent into it
}

func newTenant(t *testing.T, client, widget *api, s store.Store) tenant {
	t.Helper()
	app, template, secret := putCompany(t, s)
	app.WidgetConfigs = json.RawMessage(`{}`)
	check(t, s.PutApplication(t.Context(), app))
	// The same name as the other's visitor, so that only the application separates them.
	v := want[struct{ AccessToken string }](t, http.StatusOK, widget.call(t, http.MethodPost, "/register",
		map[string]string{"appId": app.ID, "email": "same@example.com", "userId": "same"}))
	sent := want[struct{ ID string }](t, http.StatusCreated, widget.call(t, http.MethodPost, "/message",
		`{"type":"TEXT","data":{"text":"only for `+app.ID+`"}}`, bearer(v.AccessToken)))
	id, err := s.FindVisitor(t.Context(), store.Identity{Scope: app.ID, Kind: store.KindUserID, Value: "same"})
	check(t, err)
	who, err := s.Visitor(t.Context(), id)
	check(t, err)
	c, err := store.CurrentChat(t.Context(), s, who, time.Now())
	check(t, err)
	company := want[struct{ MessageID string }](t, http.StatusOK, client.call(t, http.MethodPost, "/message/send",
		`{"type":"TEXT","data":{"text":"only for `+app.ID+`"},"chatId":"`+c.ID+`"}`, accessToken(secret)))
	return tenant{
		token: secret, app: app, template: template.ID, chatID: c.ID, visitor: v.AccessToken, message: sent.ID, sent: company.MessageID,
	}
}

// probe is a request of one company with ids of the other, or unknown ones.
type probe struct {
	what    string
	path    string
	body    string
	headers []header
	status  int
}

// probes lists the requests of one company for the other's records that [probesOf] cannot derive from the documents: an
// id is in the query. of has the ids: the other company's, or unknown ones. The name of the API precedes an operation that
// both have.
func probes(me tenant) map[string]func(of tenant) []probe {
	asCompany, asVisitor := accessToken(me.token), bearer(me.visitor)
	return map[string]func(of tenant) []probe{
		"GET /message": func(of tenant) []probe {
			return []probe{{"a page before a message", "/message?limit=5&before=" + of.message, "", []header{asVisitor}, 400}}
		},
		"Client API: GET /chats": func(of tenant) []probe {
			return []probe{{"chats of an application", "/chats?appId=" + of.app.ID, "", []header{asCompany}, 200}}
		},
		"Client API: GET /chats/{id}/messages": func(of tenant) []probe {
			path := "/chats/" + me.chatID + "/messages?before=" + of.message
			return []probe{{"a page before a message", path, "", []header{asCompany}, 400}}
		},
		// "after" is compared with the company's own templates, not looked up.
		"GET /templates": func(tenant) []probe { return nil },
		"Widget API: GET /chats": func(of tenant) []probe {
			return []probe{{"a page after a chat", "/chats?after=" + of.chatID, "", []header{asVisitor}, 400}}
		},
		"Widget API: GET /chats/{id}/messages": func(of tenant) []probe {
			path := "/chats/" + me.chatID + "/messages?before=" + of.message
			return []probe{{"a page before a message", path, "", []header{asVisitor}, 400}}
		},
		// registers a visitor of the application in the body: anybody may
		"POST /register": func(tenant) []probe { return nil },
	}
}

// probed is an operation of a document.
type probed struct {
	api          *api
	document     *openapi3.T
	method, path string
	*openapi3.Operation
}

// public reports whether anybody may call the operation. What such a path names is the same for everyone, or has a
// secret in it.
func (o probed) public() bool {
	required := o.document.Security
	if o.Security != nil {
		required = *o.Security
	}
	return len(required) == 0
}

// takesIDs reports whether an id is in the query of the operation.
func (o probed) takesIDs() bool {
	return slices.ContainsFunc(o.Parameters, func(p *openapi3.ParameterRef) bool {
		return p.Value.In == "query" && isID(p.Value.Schema)
	})
}

// isID reports whether a schema is that of an id.
func isID(s *openapi3.SchemaRef) bool { return s != nil && s.Value != nil && s.Value.Format == "uuid" }

// body returns the smallest example of the operation's body with the ids of a tenant, or "", and whether there are any.
func (o probed) body(t *testing.T, of tenant) (body string, named bool) {
	t.Helper()
	if o.RequestBody == nil {
		return "", false
	}
	var members map[string]any
	examples := o.RequestBody.Value.Content["application/json"].Examples
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		example := examples[name].Value.Value.(map[string]any)
		if members == nil || len(example) < len(members) {
			members = maps.Clone(example)
		}
	}
	if members == nil {
		t.Errorf("%s %s: no example of the body", o.method, o.path)
		return "", false
	}
	ids := map[string]string{"chatId": of.chatID, "templateId": of.template}
	for name := range members {
		if !isID(o.member(name)) {
			continue
		}
		if ids[name] == "" {
			t.Errorf("%s %s: which id of a tenant is %s?", o.method, o.path, name)
		}
		members[name], named = ids[name], true
	}
	raw, err := json.Marshal(members)
	check(t, err)
	return string(raw), named
}

// member returns the schema of a member of the body, whose form may depend on its type.
func (o probed) member(name string) *openapi3.SchemaRef {
	schema := o.RequestBody.Value.Content["application/json"].Schema.Value
	for _, form := range append(openapi3.SchemaRefs{{Value: schema}}, schema.OneOf...) {
		if member := form.Value.Properties[name]; member != nil {
			return member
		}
	}
	return nil
}

// probesOf returns the requests with an id of the other company in the path or in the body, and those with a token of the
// wrong kind.
func (o probed) probesOf(t *testing.T, me tenant, ofVisitors bool) func(of tenant) []probe {
	return func(of tenant) []probe {
		body, named := o.body(t, of)
		own, wrong := accessToken(me.token), accessToken(of.visitor)
		ids := map[string]string{"chats": of.chatID, "message": of.sent}
		if ofVisitors {
			own, wrong = bearer(me.visitor), bearer(of.token)
			ids = map[string]string{"chats": of.chatID, "chat": of.chatID, "message": of.message}
		}
		resource, _, _ := strings.Cut(strings.TrimPrefix(o.path, "/"), "/")
		path := strings.ReplaceAll(o.path, "{id}", ids[resource])
		if strings.Contains(path, "{") || strings.Contains(o.path, "{id}") && ids[resource] == "" {
			t.Errorf("%s %s: which id of a tenant is in the path?", o.method, o.path)
		}
		all := []probe{{"record by a token of the wrong kind", path, body, []header{wrong}, 401}}
		if path != o.path || named {
			all = append(all, probe{"record", path, body, []header{own}, 404})
		}
		if named && o.Parameters.GetByInAndName("query", "dryRun") != nil {
			all = append(all, probe{"record, dry run", path + "?dryRun=true", body, []header{own}, 404})
		}
		return all
	}
}

// Every operation of both documents is called with the ids and the tokens of another company: the response
// equals that for unknown ids, byte for byte. An operation with an id in its query that [probes] does not list
// fails it.
func TestCompaniesNeverMeet(t *testing.T) {
	p := commonStandalone(t).place
	s := openStore(t, p)
	client, widget := p.clientAPI(t), p.widgetAPI(t)
	me, other := newTenant(t, client, widget, s), newTenant(t, client, widget, s)
	const none = "99999999-9999-4999-8999-999999999999"
	nobody := tenant{app: chat.Application{ID: none}, token: "pat_" + strings.Repeat("A", 43), template: none, chatID: none, visitor: "none", message: none, sent: none}
	known := probes(me)
	tried := 0
	for _, one := range []struct {
		name     string
		api      *api
		document []byte
	}{{"Client API", client, clientapi.OpenAPI()}, {"Widget API", widget, widgetapi.OpenAPI()}} {
		document, err := openapi3.NewLoader().LoadFromData(one.document)
		check(t, err)
		for path, item := range document.Paths.Map() {
			for method, operation := range item.Operations() {
				o := probed{one.api, document, method, path, operation}
				if o.public() {
					continue
				}
				listed, ok := known[one.name+": "+method+" "+path]
				if !ok {
					listed, ok = known[method+" "+path]
				}
				if !ok && o.takesIDs() {
					t.Errorf("%s %s: no probe with another company's ids", method, path)
				}
				if ok {
					tried += o.try(t, listed, me, other, nobody)
				}
				if path != "/register" { // takes a token, but needs none
					tried += o.try(t, o.probesOf(t, me, one.api == widget), me, other, nobody)
				}
			}
		}
	}
	if tried < 20 {
		t.Errorf("tried %d requests, want those of all operations", tried)
	}
	// The other company's chat has no message of the probes, the example of a file, and two people with one name are two visitors.
	history := widget.call(t, http.MethodGet, "/message", nil, bearer(other.visitor)).Body
	if strings.Contains(history, me.app.ID) || !strings.Contains(history, other.app.ID) || strings.Contains(history, "cdn.example.com") {
		t.Errorf("the other visitor's history: got %s, want theirs and nothing else", history)
	}
}

// try sends probes with the ids of another company, of nobody and, so that the errors prove something, one's own.
func (o probed) try(t *testing.T, probes func(of tenant) []probe, me, other, nobody tenant) (tried int) {
	t.Helper()
	operation := o.method + " " + o.path
	foreign, absent, mine := probes(other), probes(nobody), probes(me)
	for i := range foreign {
		got := send(t, o.api, o.method, foreign[i])
		like := send(t, o.api, o.method, absent[i])
		if got.Status != foreign[i].status || got.Status != like.Status || withoutRequestID(got) != withoutRequestID(like) {
			t.Errorf("%s, another company's %s: got %d %s, want %d and the same as for an unknown id, %d %s",
				operation, foreign[i].what, got.Status, got.Body, foreign[i].status, like.Status, like.Body)
		}
		if mine[i].status == http.StatusUnauthorized {
			continue
		}
		eventually(t, operation+", one's own "+mine[i].what, func() error {
			if own := send(t, o.api, o.method, mine[i]); own.Status >= 300 && own.Status != http.StatusConflict {
				return fmt.Errorf("got %d %s", own.Status, own.Body)
			}
			return nil
		})
	}
	return len(foreign)
}

func send(t *testing.T, a *api, method string, p probe) httpapitest.Response {
	t.Helper()
	var body any
	if p.body != "" {
		body = p.body
	}
	return a.call(t, method, p.path, body, p.headers...)
}

// withoutRequestID returns a body without the parts that differ from request to request.
func withoutRequestID(a httpapitest.Response) string {
	before, _, _ := strings.Cut(a.Body, `"requestId"`)
	return before
}
