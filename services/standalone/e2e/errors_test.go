package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// refusal is a request and its expected error.
type refusal struct {
	name    string
	api     *api
	method  string
	path    string
	body    any
	headers []header

	status  int
	code    string
	message string   // prefix of the message; empty: any
	fields  []string // of the details, in any order; nil: not checked
}

func (r refusal) check(t *testing.T) {
	got := wantError(t, r.status, r.api.call(t, r.method, r.path, r.body, r.headers...))
	if r.code != "" && got.Code != r.code {
		t.Errorf("got code %s (%s), want %s", got.Code, got.Message, r.code)
	}
	if !strings.HasPrefix(got.Message, r.message) {
		t.Errorf("got message %q, want %q", got.Message, r.message)
	}
	if r.fields == nil {
		return
	}
	var fields []string
	for _, d := range got.Details {
		fields = append(fields, d.Name)
	}
	slices.Sort(fields)
	slices.Sort(r.fields)
	if !slices.Equal(fields, r.fields) {
		t.Errorf("got details for %v, want %v", fields, r.fields)
	}
}

func TestRefusals(t *testing.T) {
	p := commonStandalone(t).place
	client, widget := p.clientAPI(t), p.widgetAPI(t)
	var all []refusal
	all = append(all, clientRefusals(t, p, client)...)
	all = append(all, chatRefusals(t, p, client)...)
	all = append(all, widgetRefusals(t, p, widget)...)
	all = append(all, formRefusals(client, "client", accessToken(p.AccessToken), "/message/send")...)
	all = append(all, formRefusals(widget, "widget", bearer(register(t, p, widget).token), "/message")...)
	all = append(all, formRefusals(widget, "register", header{"X-Nothing", "x"}, "/register")...)
	for _, r := range all {
		t.Run(r.name, r.check)
	}
}

// clientRefusals test the credential and the fields of the Client API.
func clientRefusals(t *testing.T, p place, client *api) []refusal {
	s := openStore(t, p)
	_, foreign, _ := putCompany(t, s)
	key, expired := accessToken(p.AccessToken), putToken(t, s, p.CompanyID, time.Now().Add(-time.Minute))
	draft := chat.MessageTemplate{ID: uuid.NewString(), CompanyID: p.CompanyID, Name: "draft", Status: "draft", Text: "x"}
	check(t, s.PutTemplate(t.Context(), draft))
	const send, push = "/message/send", "/push-message"
	post := func(name, path string, body any, status int, code, message string, fields []string, headers ...header) refusal {
		return refusal{"client: " + name, client, http.MethodPost, path, body, headers, status, code, message, fields}
	}
	phone := func(templateID string) map[string]any {
		return map[string]any{"templateId": templateID, "source": "491701234567"}
	}
	const invalid = "VALIDATION_ERROR"
	out := []refusal{
		post("send: every field at once", send, "{}", 400, invalid, "Validation failed", []string{"type", "data", "chatId"}, key),
		post("send: MULTIPLE_CHOICE_REPLY", send, map[string]any{"type": "MULTIPLE_CHOICE_REPLY", "data": map[string]any{"text": "x", "payload": "y"},
			"chatId": uuid.NewString()}, 400, invalid, "", []string{"type"}, key),
		post("send: TEMPLATE", send, map[string]any{"type": "TEMPLATE", "data": map[string]any{"text": "x"}, "chatId": uuid.NewString()},
			400, invalid, "", []string{"type"}, key),
		post("send: chatId is no UUID", send, map[string]any{"type": "TEXT", "data": map[string]any{"text": "x"}, "chatId": "42"},
			400, invalid, "", []string{"chatId"}, key),
		post("send: data is an array", send, map[string]any{"type": "TEXT", "data": []int{1}, "chatId": uuid.NewString()},
			400, invalid, "", []string{"data"}, key),
		post("send: TEXT without text", send, map[string]any{"type": "TEXT", "data": map[string]any{}, "chatId": uuid.NewString()},
			400, invalid, "", []string{"data.text"}, key),
		post("push: every field at once", push, `{"username":"ab"}`, 400, invalid, "", []string{"templateId", "source", "username"}, key),
		post("push: ten characters", push, `{"templateId":"`+p.TemplateID+`","source":"1234567890"}`, 400, invalid, "", []string{"source"}, key),
		post("push: unknown template", push, phone(uuid.NewString()), 404, "TEMPLATE_NOT_FOUND", "Template not found", nil, key),
		post("push: another company's template", push, phone(foreign.ID), 404, "TEMPLATE_NOT_FOUND", "Template not found", nil, key),
		post("push: a template that is not approved", push, phone(draft.ID), 404, "TEMPLATE_NOT_APPROVED", "Template not found", nil, key),
	}
	for name, token := range map[string]string{
		"no token": "", "malformed": "nonsense", "unknown": "pat_" + strings.Repeat("A", 43), "expired": expired, "the visitor's header": "",
	} {
		for _, path := range []string{send, push} {
			headers, code, fields := []header{accessToken(token)}, "UNAUTHORIZED", []string{}
			switch name {
			case "no token":
				code = "TOKEN_MISSING"
			case "the visitor's header":
				headers, code = []header{bearer(p.AccessToken)}, "WRONG_AUTH_SCHEME"
			case "expired":
				fields = []string{"token"}
			}
			// The credential is checked before the body: without one, no field errors are revealed.
			out = append(out, post(path+" with "+name, path, "{}", 401, code, "Unauthorized", fields, headers...))
		}
	}
	return out
}

// chatRefusals test the chat of POST /message/send.
func chatRefusals(t *testing.T, p place, client *api) []refusal {
	s := openStore(t, p)
	_, _, foreignSecret := putCompany(t, s)
	mine := openChat(t, s, p, time.Now())
	old := openChat(t, s, p, time.Now().Add(-chat.Window-time.Second))
	closed := openChat(t, s, p, time.Now())
	_, err := s.ChangeChat(t.Context(), closed.ID, store.ChatChange{ClosedAt: time.Now()})
	check(t, err)
	post := func(name, chatID, secret string, status int, code, message string) refusal {
		body := map[string]any{"type": "TEXT", "data": map[string]any{"text": "x"}, "chatId": chatID}
		return refusal{"chat: " + name, client, http.MethodPost, "/message/send", body, []header{accessToken(secret)}, status, code, message, nil}
	}
	const tooOld = "Chat is too old. Please start a new chat."
	return []refusal{
		post("unknown", uuid.NewString(), p.AccessToken, 404, "CHAT_NOT_FOUND", "Chat not found"),
		post("another company's", mine.ID, foreignSecret, 404, "CHAT_NOT_FOUND", "Chat not found"),
		post("older than 24 hours", old.ID, p.AccessToken, 400, "CHAT_TOO_OLD", tooOld),
		post("older than 24 hours, another company's", old.ID, foreignSecret, 404, "CHAT_NOT_FOUND", "Chat not found"),
		post("closed", closed.ID, p.AccessToken, 400, "CHAT_CLOSED", "Chat is closed. Please start a new chat."),
	}
}

// widgetRefusals test the fields of the Widget API.
func widgetRefusals(t *testing.T, p place, widget *api) []refusal {
	s := openStore(t, p)
	app, _, _ := putCompany(t, s)
	whatsapp := app
	whatsapp.ID, whatsapp.Provider = uuid.NewString(), "whatsapp"
	check(t, s.PutApplication(t.Context(), whatsapp))
	token := bearer(register(t, p, widget).token)
	with := func(more string) string {
		return `{"appId":"` + p.AppID + `","firstName":"Ada","email":"a@example.com"` + more + `}`
	}
	without := func(more string) string { return `{"appId":"` + p.AppID + `"` + more + `}` }
	const invalid = "VALIDATION_ERROR"
	post := func(name, path string, body any, status int, code, message string, fields []string, headers ...header) refusal {
		return refusal{"widget: " + name, widget, http.MethodPost, path, body, headers, status, code, message, fields}
	}
	get := func(name, path string, status int, code, message string, headers ...header) refusal {
		return refusal{"widget: " + name, widget, http.MethodGet, path, nil, headers, status, code, message, nil}
	}
	return []refusal{
		get("settings of an unknown application", "/settings/"+uuid.NewString(), 404, "APPLICATION_NOT_FOUND", ""),
		get("settings of no UUID", "/settings/42", 404, "APPLICATION_NOT_FOUND", ""),
		post("register: nothing", "/register", "{}", 400, invalid, "", nil),
		post("register: no identity", "/register", without(`,"firstName":"Ada"`), 400, invalid, "", nil),
		post("register: appId", "/register", `{"appId":"42","email":"a@example.com"}`, 400, invalid, "", []string{"appId"}),
		post("register: e-mail", "/register", without(`,"firstName":"Ada","email":"not an e-mail"`), 400, invalid, "", []string{"email"}),
		post("register: letters in the phone", "/register", with(`,"phone":"4917012345a"`), 400, invalid, "", []string{"phone"}),
		post("register: short phone", "/register", with(`,"phone":"4917012345"`), 400, invalid, "", []string{"phone"}),
		post("register: long phone", "/register", with(`,"phone":"4917012345678"`), 400, invalid, "", []string{"phone"}),
		post("register: several", "/register", `{"appId":"42","email":"x","phone":"1"}`, 400, invalid, "", []string{"appId", "email", "phone"}),
		post("register: name is a number", "/register", with(`,"lastName":7`), 400, "", "", []string{"lastName"}),
		post("register: required fields", "/register", without(`,"userId":"u"`), 400, "MISSING_REQUIRED_FIELDS",
			"Missing required fields: firstName, email", []string{"firstName", "email"}),
		post("register: required fields of another application", "/register", `{"appId":"`+app.ID+`","userId":"u"}`, 400,
			"MISSING_REQUIRED_FIELDS", "Missing required fields: phone", []string{"phone"}),
		post("register: unknown application", "/register", `{"appId":"`+uuid.NewString()+`","userId":"u"}`, 404, "", "", nil),
		post("register: not a widget's application", "/register", `{"appId":"`+whatsapp.ID+`","phone":"491701234567"}`, 404, "", "", nil),
		post("message: every field at once", "/message", "{}", 400, invalid, "", []string{"type", "data"}, token),
		post("message: a company's type", "/message", `{"type":"CAROUSEL","data":{"cards":[]}}`, 400, invalid, "", []string{"type"}, token),
		post("message: TEXT without text", "/message", `{"type":"TEXT","data":{}}`, 400, invalid, "", []string{"data.text"}, token),
		post("message: reply without payload", "/message", `{"type":"MULTIPLE_CHOICE_REPLY","data":{"text":"x"}}`, 400, invalid, "",
			[]string{"data.payload"}, token),
	}
}

// formRefusals test the form of a request, the same for every route with a body.
func formRefusals(a *api, name string, credential header, path string) []refusal {
	var out []refusal
	post := func(what string, body any, status int, code string, headers ...header) {
		headers = append([]header{credential}, headers...)
		out = append(out, refusal{
			name: name + ": " + what, api: a, method: http.MethodPost, path: path, body: body, headers: headers, status: status, code: code,
		})
	}
	for what, body := range map[string]string{
		"not JSON": "{", "empty": "", "trailing": "{} {}", "duplicate": `{"type":"TEXT","type":"TEXT"}`, "text": "hello",
		"duplicate inside": `{"data":{"a":1,"a":2}}`, "single quotes": `{'type':1}`, "bad UTF-8": "{\"type\":\"\xff\"}",
	} {
		post(what, body, 400, "MALFORMED_JSON")
	}
	for what, body := range map[string]string{"array": "[]", "null": "null", "string": `"x"`} {
		post(what, body, 400, "")
	}
	post("oversized", `{"type":"`+strings.Repeat("x", 1<<20)+`"}`, 413, "PAYLOAD_TOO_LARGE")
	post("form", "type=TEXT", 415, "UNSUPPORTED_MEDIA_TYPE", header{"Content-Type", "application/x-www-form-urlencoded"})
	post("no type", "{}", 415, "UNSUPPORTED_MEDIA_TYPE", header{"Content-Type", ""})
	out = append(out,
		refusal{name: name + ": unknown route", api: a, method: http.MethodGet, path: path + "/nothing/here", status: 404, message: "Route not found"},
		refusal{name: name + ": wrong method", api: a, method: http.MethodDelete, path: path, status: 405, code: "METHOD_NOT_ALLOWED"},
	)
	return out
}

func TestCompaniesDoNotSeeEachOther(t *testing.T) {
	p := commonStandalone(t).place
	s := openStore(t, p)
	app, _, _ := putCompany(t, s)
	a := p.widgetAPI(t)
	answer := a.call(t, http.MethodGet, "/settings/"+app.ID, nil)
	if !strings.Contains(answer.Body, string(app.WidgetConfigs)) {
		t.Errorf("settings: got %s, want the widgetConfigs as they were stored: %s", answer.Body, app.WidgetConfigs)
	}
	email := uuid.NewString() + "@example.com"
	var chats []string
	for _, id := range []string{p.AppID, app.ID} {
		body := map[string]string{"appId": id, "firstName": "Ada", "email": email, "phone": "491701234567"}
		token := want[struct{ AccessToken string }](t, 200, a.call(t, http.MethodPost, "/register", body)).AccessToken
		v := visitor{place: p, api: a, token: token}
		if id == app.ID {
			if received := v.history(t); len(received) != 0 {
				t.Errorf("history: got %s, want none: the application has no greetings", ids(received))
			}
		}
		chats = append(chats, v.write(t, "for "+id).ID)
	}
	if chats[0] == chats[1] {
		t.Error("two companies share a message")
	}
}

// One person is one visitor, however often and with whatever identity they register.
func TestRegistrationIsRemembered(t *testing.T) {
	p := commonStandalone(t).place
	v := register(t, p, p.widgetAPI(t))
	mine := v.write(t, "remember me")
	v.token = v.registerAgain(t)
	v.email = strings.ToUpper(v.email)
	v.token = v.registerAgain(t)
	for _, r := range v.history(t) {
		if r.ID == mine.ID {
			return
		}
	}
	t.Errorf("history after registering again: got %s, want %s in it", ids(v.history(t)), mine.ID)
}

func TestGetMessageWithoutAnOpenChat(t *testing.T) {
	p := commonStandalone(t).place
	s := openStore(t, p)
	c := openChat(t, s, p, time.Now())
	_, err := s.ChangeChat(t.Context(), c.ID, store.ChatChange{ClosedAt: time.Now()})
	check(t, err)
	v := visitor{place: p, api: p.widgetAPI(t), token: sign(t, p, claims(p, c.ChatUserID))}
	got := wantError(t, 404, v.api.call(t, http.MethodGet, "/message", nil, bearer(v.token)))
	if got.Message != "Chat not found" {
		t.Errorf("got %q, want Chat not found", got.Message)
	}
	mine := v.write(t, "hello again") // opens a new chat
	eventually(t, "the new chat's history", func() error {
		for _, r := range v.history(t) {
			if r.ID == mine.ID {
				return nil
			}
		}
		return fmt.Errorf("%s is missing", mine.ID)
	})
}

// A message may be sent up to the last instant of the window.
func TestAChatOfAlmostADay(t *testing.T) {
	p := commonStandalone(t).place
	s := openStore(t, p)
	c := openChat(t, s, p, time.Now().Add(-chat.Window+time.Minute))
	body := map[string]any{"type": "TEXT", "chatId": c.ID, "data": map[string]string{"text": "in time"}}
	answer := p.clientAPI(t).call(t, http.MethodPost, "/message/send", body, accessToken(p.AccessToken))
	want[sent](t, http.StatusOK, answer)
}
