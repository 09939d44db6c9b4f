package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
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

// probes lists, for each operation of the documents, requests of one company for the other's records. of has
// the ids: the other company's, or unknown ones. An operation without ids gets tokens of the wrong kind. nil:
// it answers the same to everyone. The name of the API precedes an operation that both have.
func probes(me tenant) map[string]func(of tenant) []probe {
	asCompany, asVisitor := accessToken(me.token), bearer(me.visitor)
	return map[string]func(of tenant) []probe{
		"POST /message/send": func(of tenant) []probe {
			body := `{"type":"TEXT","data":{"text":"x"},"chatId":"` + of.chatID + `"}`
			return []probe{
				{"a chat", "/message/send", body, []header{asCompany}, 404},
				{"a chat, dry run", "/message/send?dryRun=true", body, []header{asCompany}, 404},
				{"a chat by a visitor's token", "/message/send", body, []header{accessToken(of.visitor)}, 401},
			}
		},
		"POST /push-message": func(of tenant) []probe {
			body := `{"templateId":"` + of.template + `","source":"491701234567"}`
			return []probe{
				{"a template", "/push-message", body, []header{asCompany}, 404},
				{"a template, dry run", "/push-message?dryRun=true", body, []header{asCompany}, 404},
				{"a template by a visitor's token", "/push-message", body, []header{accessToken(of.visitor)}, 401},
			}
		},
		"GET /message": func(of tenant) []probe {
			return []probe{
				{"a page before a message", "/message?limit=5&before=" + of.message, "", []header{asVisitor}, 400},
				{"a history by a company's token", "/message", "", []header{bearer(of.token)}, 401},
			}
		},
		"POST /message": func(of tenant) []probe {
			return []probe{{"a chat by a company's token", "/message", `{"type":"TEXT","data":{"text":"x"}}`, []header{bearer(of.token)}, 401}}
		},
		"GET /message/{id}": func(of tenant) []probe {
			return []probe{
				{"a message", "/message/" + of.sent, "", []header{asCompany}, 404},
				{"a message by a visitor's token", "/message/" + of.sent, "", []header{accessToken(of.visitor)}, 401},
			}
		},
		"Client API: GET /chats": func(of tenant) []probe {
			return []probe{
				{"chats of an application", "/chats?appId=" + of.app.ID, "", []header{asCompany}, 200},
				{"chats by a visitor's token", "/chats", "", []header{accessToken(of.visitor)}, 401},
			}
		},
		"GET /chats/{id}": func(of tenant) []probe {
			return []probe{
				{"a chat", "/chats/" + of.chatID, "", []header{asCompany}, 404},
				{"a chat by a visitor's token", "/chats/" + of.chatID, "", []header{accessToken(of.visitor)}, 401},
			}
		},
		"Client API: GET /chats/{id}/messages": func(of tenant) []probe {
			return []probe{
				{"a history", "/chats/" + of.chatID + "/messages", "", []header{asCompany}, 404},
				{"a page before a message", "/chats/" + me.chatID + "/messages?before=" + of.message, "", []header{asCompany}, 400},
				{"a history by a visitor's token", "/chats/" + of.chatID + "/messages", "", []header{accessToken(of.visitor)}, 401},
			}
		},
		"GET /templates": func(of tenant) []probe {
			return []probe{{"templates by a visitor's token", "/templates", "", []header{accessToken(of.visitor)}, 401}}
		},
		// Public to all visitors of a site, or needs only an application's id.
		"GET /settings/{id}": nil, "POST /register": nil,
		"GET /.well-known/jwks.json": nil, "GET /openapi.json": nil, "GET /docs": nil,
		"GET /widget.js": nil, "GET /widget/limits.json": nil, "GET /widget/{file}": nil, // the same for everyone
		"POST /message/{id}/read": func(of tenant) []probe {
			return []probe{
				{"a message", "/message/" + of.message + "/read", "", []header{asVisitor}, 404},
				{"a message by a company's token", "/message/" + of.message + "/read", "", []header{bearer(of.token)}, 401},
			}
		},
		"POST /message/{id}/stop": func(of tenant) []probe {
			return []probe{
				{"a message", "/message/" + of.message + "/stop", "", []header{asVisitor}, 404},
				{"a message by a company's token", "/message/" + of.message + "/stop", "", []header{bearer(of.token)}, 401},
			}
		},
		"GET /chat": func(of tenant) []probe {
			return []probe{{"a chat by a company's token", "/chat", "", []header{bearer(of.token)}, 401}}
		},
		"Widget API: GET /chats": func(of tenant) []probe {
			return []probe{
				{"a page after a chat", "/chats?after=" + of.chatID, "", []header{asVisitor}, 400},
				{"chats by a company's token", "/chats", "", []header{bearer(of.token)}, 401},
			}
		},
		"Widget API: GET /chats/{id}/messages": func(of tenant) []probe {
			return []probe{
				{"a history", "/chats/" + of.chatID + "/messages", "", []header{asVisitor}, 404},
				{"a page before a message", "/chats/" + me.chatID + "/messages?before=" + of.message, "", []header{asVisitor}, 400},
				{"a history by a company's token", "/chats/" + of.chatID + "/messages", "", []header{bearer(of.token)}, 401},
			}
		},
		"POST /chat/handover": func(of tenant) []probe {
			return []probe{{"a chat by a company's token", "/chat/handover", "", []header{bearer(of.token)}, 401}}
		},
		"POST /chat/offline-message": func(of tenant) []probe {
			return []probe{{"a chat by a company's token", "/chat/offline-message", `{"email":"a@example.com","message":"x"}`, []header{bearer(of.token)}, 401}}
		},
		"POST /chat/{id}/rating": func(of tenant) []probe {
			return []probe{
				{"a chat", "/chat/" + of.chatID + "/rating", `{"score":5}`, []header{asVisitor}, 404},
				{"a chat by a company's token", "/chat/" + of.chatID + "/rating", `{"score":5}`, []header{bearer(of.token)}, 401},
			}
		},
		// The path contains a secret, and links are meant to be shared.
		"GET /files/{id}/{name}": nil,
	}
}

// Every operation of both documents is called with the ids and the tokens of another company: the response
// equals that for unknown ids, byte for byte. An operation that this test does not list fails it.
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
			for method := range item.Operations() {
				operation := method + " " + path
				try, ok := known[one.name+": "+operation]
				if !ok {
					try, ok = known[operation]
				}
				if !ok {
					t.Errorf("%s: no probe with another company's ids", operation)
					continue
				}
				if try == nil {
					continue
				}
				foreign, absent, mine := try(other), try(nobody), try(me)
				for i := range foreign {
					got := send(t, one.api, method, foreign[i])
					like := send(t, one.api, method, absent[i])
					if got.Status != foreign[i].status || got.Status != like.Status || withoutRequestID(got) != withoutRequestID(like) {
						t.Errorf("%s, another company's %s: got %d %s, want %d and the same as for an unknown id, %d %s",
							operation, foreign[i].what, got.Status, got.Body, foreign[i].status, like.Status, like.Body)
					}
					tried++
					if mine[i].status == http.StatusUnauthorized {
						continue
					}
					// otherwise the errors above would prove nothing
					eventually(t, operation+", one's own "+mine[i].what, func() error {
						if own := send(t, one.api, method, mine[i]); own.Status >= 300 && own.Status != http.StatusConflict {
							return fmt.Errorf("got %d %s", own.Status, own.Body)
						}
						return nil
					})
				}
			}
		}
	}
	if tried < 8 {
		t.Errorf("tried %d requests, want all that are listed", tried)
	}
	// The other company's chat is unchanged, and two people with one name are two visitors.
	history := widget.call(t, http.MethodGet, "/message", nil, bearer(other.visitor)).Body
	if strings.Contains(history, me.app.ID) || !strings.Contains(history, other.app.ID) || strings.Contains(history, `"text":"x"`) {
		t.Errorf("the other visitor's history: got %s, want theirs and nothing else", history)
	}
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
