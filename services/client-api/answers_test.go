package clientapi_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

var mustBeAllowed = "must be one of " + strings.Trim(strings.ReplaceAll(fmt.Sprint(chat.CompanyTypes()), " ", ", "), "[]")

// Every row of the specification's error table for POST /message/send and POST /push-message, and further
// invalid requests.
func TestErrors(t *testing.T) {
	t.Parallel()
	w := start(t)
	_, oldChat := w.openChat("old@example.com", time.Now().Add(-24*time.Hour-time.Minute))
	_, closedChat := w.openChat("closed@example.com", time.Now())
	_, err := w.store.ChangeChat(t.Context(), closedChat, store.ChatChange{ClosedAt: time.Now()})
	w.must(err)
	_, oldClosed := w.openChat("old-closed@example.com", time.Now().Add(-24*time.Hour-time.Minute))
	_, err = w.store.ChangeChat(t.Context(), oldClosed, store.ChatChange{ClosedAt: time.Now()})
	w.must(err)
	expired, revoked := w.addToken(companyID), w.addToken(companyID)
	w.expire(expired)
	w.revoke(revoked)

	const text = `{"text":"hi"}`
	message := func(kind, data, chatID string) string { return sendBody(kind, data, chatID) }
	push := func(template, source string) string {
		return `{"templateId":"` + template + `","source":"` + source + `"}`
	}
	order := func(parameters string) string {
		return `{"templateId":"` + orderTemplate + `","source":"989121234567","parameters":` + parameters + `}`
	}
	const missing = "Unauthorized: the token is missing. Send one header: x-access-token: <company access token>."
	const mustBePhone = "must be a phone number of 11 to 32 characters: 7 to 15 digits, with an optional leading + and with spaces, dashes or parentheses between them"
	const tooOld = "chatId is older than 24 hours: send a template with POST /push-message, or wait until the visitor writes"
	const isClosed = "chatId is closed: the visitor's next message opens a chat with another id, which GET /chats finds; " +
		"a template with POST /push-message reaches a phone number at any time"
	const dryRunInBody = "dryRun is not a field of the body but a parameter of the query: ?dryRun=true"
	tests := []struct {
		name, path, token, body string
		status                  int
		code, message           string
		details                 string
	}{
		{"no token", "/message/send", "", message("TEXT", text, w.chatID), 401, "TOKEN_MISSING", missing, ""},
		{"no form of a token", "/message/send", "secret", message("TEXT", text, w.chatID), 401, "UNAUTHORIZED", "Unauthorized", ""},
		{"a token with a scheme", "/message/send", "Bearer " + w.token, message("TEXT", text, w.chatID), 401, "WRONG_AUTH_SCHEME",
			"Unauthorized: the token is not sent in the required form. Send one header: x-access-token: <company access token>.", ""},
		{"an unknown token", "/message/send", unknownToken(), message("TEXT", text, w.chatID), 401, "UNAUTHORIZED", "Unauthorized", ""},
		{"an expired token", "/message/send", expired, message("TEXT", text, w.chatID), 401, "UNAUTHORIZED", "Unauthorized", "token has expired"},
		{"a revoked token", "/message/send", revoked, message("TEXT", text, w.chatID), 401, "UNAUTHORIZED", "Unauthorized", "token was revoked"},
		{"401 before 400", "/message/send", unknownToken(), `{`, 401, "UNAUTHORIZED", "Unauthorized", ""},
		{"400 before 404", "/message/send", w.token, message("TEXT", `{}`, unknownID), 400, "VALIDATION_ERROR", "", "data.text is required"},
		{"404 before the window", "/message/send", w.other, message("TEXT", text, oldChat), 404, "CHAT_NOT_FOUND", "Chat not found", ""},
		{"an unknown chat", "/message/send", w.token, message("TEXT", text, unknownID), 404, "CHAT_NOT_FOUND", "Chat not found", ""},
		{"another company's chat", "/message/send", w.other, message("TEXT", text, w.chatID), 404, "CHAT_NOT_FOUND", "Chat not found", ""},
		{"a chat that is too old", "/message/send", w.token, message("TEXT", text, oldChat), 400, "CHAT_TOO_OLD", "Chat is too old. Please start a new chat.", tooOld},
		{"a closed chat", "/message/send", w.token, message("TEXT", text, closedChat), 400, "CHAT_CLOSED", "Chat is closed. Please start a new chat.", isClosed},
		{"a closed chat that is too old", "/message/send", w.token, message("TEXT", text, oldClosed), 400, "CHAT_TOO_OLD", "Chat is too old. Please start a new chat.", tooOld},
		{"another company's closed chat", "/message/send", w.other, message("TEXT", text, closedChat), 404, "CHAT_NOT_FOUND", "Chat not found", ""},
		{"nothing in it", "/message/send", w.token, `{}`, 400, "VALIDATION_ERROR", "", "type is required; data is required; chatId is required"},
		{"nulls", "/message/send", w.token, `{"type":null,"data":null,"chatId":null}`, 400, "VALIDATION_ERROR", "", "type is required; data is required; chatId is required"},
		{"wrong types", "/message/send", w.token, `{"type":1,"data":"x","chatId":[]}`, 400, "VALIDATION_ERROR", "", "type must be a string; data must be an object; chatId must be a string"},
		{"everything wrong at once", "/message/send", w.token, `{"type":"POLL","data":[],"chatId":"7"}`, 400, "VALIDATION_ERROR", "",
			"data must be an object; type " + mustBeAllowed + "; chatId must be a UUID"},
		{"several faults", "/message/send", w.token, `{"type":"TEXT"}`, 400, "VALIDATION_ERROR", "Validation failed: data is required (1 more in details)",
			"data is required; chatId is required"},
		{"the sender under another name", "/message/send", w.token, strings.Replace(message("TEXT", text, w.chatID), "{", `{"sendername":"Ada",`, 1), 400,
			"VALIDATION_ERROR", "Validation failed: sendername is not a field of this request (senderName is)", "sendername is not a field of this request (senderName is)"},
		{"the sender under a short name", "/message/send", w.token, strings.Replace(message("TEXT", text, w.chatID), "{", `{"sender":"Ada",`, 1), 400,
			"VALIDATION_ERROR", "", "sender is not a field of this request (senderName is)"},
		{"push: parameters under a short name", "/push-message", w.token, `{"template_id":"` + templateID + `","source":"989121234567","params":{}}`, 400,
			"VALIDATION_ERROR", "", "params is not a field of this request (parameters is); template_id is not a field of this request (templateId is); templateId is required"},
		{"a type in another case", "/message/send", w.token, message("text", text, w.chatID), 400, "VALIDATION_ERROR", "", "type " + mustBeAllowed},
		{"TEMPLATE", "/message/send", w.token, message("TEMPLATE", text, w.chatID), 400, "VALIDATION_ERROR", "",
			"type TEMPLATE is not supported here, use POST /push-message; " + mustBeAllowed},
		{"MULTIPLE_CHOICE_REPLY", "/message/send", w.token, message("MULTIPLE_CHOICE_REPLY", text, w.chatID), 400, "VALIDATION_ERROR", "",
			"type MULTIPLE_CHOICE_REPLY is not supported here, it is the visitor's; " + mustBeAllowed},
		{"inside of data", "/message/send", w.token, message("MULTIPLE_CHOICE", `{"text":"?","choices":[{"title":"a","payload":"A"},{}]}`, "x"), 400, "VALIDATION_ERROR", "",
			"data.choices[1].title is required; data.choices[1].payload is required; chatId must be a UUID"},

		{"push: no token", "/push-message", "", push(templateID, "989121234567"), 401, "TOKEN_MISSING", missing, ""},
		{"push: an unknown token", "/push-message", unknownToken(), push(templateID, "989121234567"), 401, "UNAUTHORIZED", "Unauthorized", ""},
		{"push: an unknown template", "/push-message", w.token, push(unknownID, "989121234567"), 404, "TEMPLATE_NOT_FOUND", "Template not found", ""},
		{"push: another company's template", "/push-message", w.token, push(otherTemplate, "989121234567"), 404, "TEMPLATE_NOT_FOUND", "Template not found", ""},
		{"push: a template that is not approved", "/push-message", w.token, push(draftTemplate, "989121234567"), 404, "TEMPLATE_NOT_APPROVED", "Template not found: it exists, but it is not approved.", ""},
		{"push: another company's template that is not approved", "/push-message", w.other, push(draftTemplate, "989121234567"), 404, "TEMPLATE_NOT_FOUND", "Template not found", ""},
		{"push: nothing in it", "/push-message", w.token, `{}`, 400, "VALIDATION_ERROR", "", "templateId is required; source is required"},
		{"push: everything wrong", "/push-message", w.token, `{"templateId":"x","source":"9891212345","username":"Al"}`, 400, "VALIDATION_ERROR", "",
			"templateId must be a UUID; source " + mustBePhone + "; username must have at least 3 characters: leave out a shorter name"},
		{"push: an empty name", "/push-message", w.token, `{"templateId":"` + templateID + `","source":"989121234567","username":""}`, 400, "VALIDATION_ERROR", "",
			"username must have at least 3 characters: leave out a shorter name"},
		{"push: no phone number", "/push-message", w.token, push(templateID, "call me maybe"), 400, "VALIDATION_ERROR", "",
			"source " + mustBePhone},
		{"push: a number as source", "/push-message", w.token, `{"templateId":"` + templateID + `","source":989121234567}`, 400, "VALIDATION_ERROR", "", "source must be a string"},
		{"push: 400 before 404", "/push-message", w.token, push(unknownID, "1"), 400, "VALIDATION_ERROR", "", "source " + mustBePhone},

		{"push: parameters that are no object", "/push-message", w.token, order(`["4711"]`), 400, "VALIDATION_ERROR", "", "parameters must be an object"},
		{"push: parameters that are no texts", "/push-message", w.token, order(`{"order":4711,"day":true,"x":{}}`), 400, "VALIDATION_ERROR", "",
			"parameters.day must be a string; parameters.order must be a string; parameters.x must be a string"},
		{"push: parameters of a wrong size", "/push-message", w.token, order(`{"order":"` + strings.Repeat("x", 1025) + `","":"x"}`), 400, "VALIDATION_ERROR", "",
			"parameters must have names of 1 to 64 characters; parameters.order must have at most 1024 characters"},
		{"push: too many parameters", "/push-message", w.token, order(`{"order":"1"` + many(50) + `}`), 400, "VALIDATION_ERROR", "", "parameters must have at most 50 members"},
		{"push: a missing parameter", "/push-message", w.token, order(`{"day":"now"}`), 400, "VALIDATION_ERROR", "", "parameters.order is required"},
		{"push: no parameters", "/push-message", w.token, push(orderTemplate, "989121234567"), 400, "VALIDATION_ERROR", "", "parameters.order is required"},
		{"push: a parameter that is null", "/push-message", w.token, order(`{"order":null}`), 400, "VALIDATION_ERROR", "", "parameters.order is required"},
		{"push: an unknown parameter", "/push-message", w.token, order(`{"order":"1","oder":"2"}`), 400, "VALIDATION_ERROR", "", "parameters.oder is not a parameter of the template"},
		{"push: 404 before the parameters", "/push-message", w.other, order(`{"oder":"2"}`), 404, "TEMPLATE_NOT_FOUND", "Template not found", ""},

		{"dry run: in the body", "/message/send", w.token, strings.Replace(message("TEXT", text, w.chatID), "{", `{"dryRun":true,`, 1), 400, "VALIDATION_ERROR", "", dryRunInBody},
		{"dry run: in the body of a push", "/push-message", w.token, strings.Replace(push(templateID, "989121234567"), "{", `{"dryRun":"yes",`, 1), 400, "VALIDATION_ERROR", "", dryRunInBody},
		{"dry run: false in the body of a missing chat", "/message/send", w.token,
			strings.Replace(message("TEXT", text, unknownID), "{", `{"dryRun":false,`, 1), 404, "CHAT_NOT_FOUND", "Chat not found", ""},
		{"dry run: neither true nor false", "/message/send?dryRun=1", w.token, message("TEXT", text, w.chatID), 400, "VALIDATION_ERROR", "", "dryRun must be true or false"},
		{"dry run: nothing", "/push-message?dryRun=", w.token, push(templateID, "989121234567"), 400, "VALIDATION_ERROR", "", "dryRun must be true or false"},
		{"dry run: both", "/push-message?dryRun=true&dryRun=false", w.token, push(templateID, "989121234567"), 400, "VALIDATION_ERROR", "", "dryRun must be true or false"},
		{"dry run: wrong with all the rest", "/message/send?dryRun=yes", w.token, `{}`, 400, "VALIDATION_ERROR", "",
			"type is required; data is required; chatId is required; dryRun must be true or false"},
		{"dry run: wrong types", "/message/send?dryRun=yes", w.token, `{"type":1}`, 400, "VALIDATION_ERROR", "",
			"type must be a string; data is required; chatId is required; dryRun must be true or false"},
		{"dry run: misspelt", "/message/send?dryrun=true&x=1", w.token, message("TEXT", text, w.chatID), 400, "VALIDATION_ERROR", "",
			"dryrun is not a parameter of this request (dryRun is); x is not a parameter of this request"},
		{"dry run: no token", "/message/send?dryRun=true", "", message("TEXT", text, w.chatID), 401, "TOKEN_MISSING", missing, ""},
		{"dry run: another company's chat", "/message/send?dryRun=true", w.other, message("TEXT", text, w.chatID), 404, "CHAT_NOT_FOUND", "Chat not found", ""},
		{"dry run: a chat that is too old", "/message/send?dryRun=true", w.token, message("TEXT", text, oldChat), 400, "CHAT_TOO_OLD", "Chat is too old. Please start a new chat.", tooOld},
		{"dry run: another company's template", "/push-message?dryRun=true", w.token, push(otherTemplate, "989121234567"), 404, "TEMPLATE_NOT_FOUND", "Template not found", ""},
		{"dry run: a missing parameter", "/push-message?dryRun=true", w.token, push(orderTemplate, "989121234567"), 400, "VALIDATION_ERROR", "", "parameters.order is required"},

		{"no body", "/message/send", w.token, ``, 400, "MALFORMED_JSON", "", ""},
		{"not JSON", "/message/send", w.token, `{"type":`, 400, "MALFORMED_JSON", "", ""},
		{"not an object", "/message/send", w.token, `[]`, 400, "VALIDATION_ERROR", "", ""},
		{"a name twice", "/message/send", w.token, `{"type":"TEXT","type":"TEXT","data":{"text":"hi"},"chatId":"` + w.chatID + `"}`, 400, "MALFORMED_JSON", "", ""},
		{"a name twice in data", "/message/send", w.token, message("TEXT", `{"text":"hi","text":"ho"}`, w.chatID), 400, "MALFORMED_JSON", "", ""},
		{"more after it", "/message/send", w.token, message("TEXT", text, w.chatID) + `{}`, 400, "MALFORMED_JSON", "", ""},
		{"too large", "/message/send", w.token, message("TEXT", `{"text":"`+strings.Repeat("x", 1<<20)+`"}`, w.chatID), 413, "PAYLOAD_TOO_LARGE", "", ""},
		{"too much data", "/push-message", w.token, strings.Repeat(" ", 1<<20) + push(templateID, "989121234567"), 413, "PAYLOAD_TOO_LARGE", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := w.postAs(test.token, test.path, test.body)
			got.IsProblem(t, test.status, test.code, test.message, test.details)
		})
	}
}

// many returns n more members of a JSON object.
func many(n int) string {
	var members strings.Builder
	for i := range n {
		fmt.Fprintf(&members, `,"p%d":""`, i)
	}
	return members.String()
}

func TestMediaTypeRouteAndMethod(t *testing.T) {
	t.Parallel()
	w := start(t)
	content, err := os.ReadFile("openapi.json")
	w.must(err)
	document := string(content)
	body := sendBody("TEXT", `{"text":"hi"}`, w.chatID)
	tests := []struct {
		name, method, path string
		header             headers
		status             int
		code               string
	}{
		{"a form", http.MethodPost, "/message/send", headers{"x-access-token": w.token, "Content-Type": "application/x-www-form-urlencoded"}, 415, "UNSUPPORTED_MEDIA_TYPE"},
		{"no media type", http.MethodPost, "/push-message", headers{"x-access-token": w.token}, 415, "UNSUPPORTED_MEDIA_TYPE"},
		{"401 before 415", http.MethodPost, "/message/send", headers{"Content-Type": "text/plain"}, 401, "TOKEN_MISSING"},
		{"the visitor's header", http.MethodPost, "/message/send", headers{"Authorization": "Bearer " + w.token}, 401, "WRONG_AUTH_SCHEME"},
		{"with a charset", http.MethodPost, "/message/send", headers{"x-access-token": w.token, "Content-Type": "application/json; charset=utf-8"}, 200, ""},
		{"an unknown route", http.MethodPost, "/messages", headers{"x-access-token": w.token, "Content-Type": "application/json"}, 404, "NOT_FOUND"},
		{"a wrong method, and no token", http.MethodGet, "/message/send", nil, 405, "METHOD_NOT_ALLOWED"},
		{"more after an id, and no token", http.MethodGet, "/message/" + unknownID + "/x", nil, 404, "NOT_FOUND"},
		{"a wrong method", http.MethodGet, "/message/send", headers{"x-access-token": w.token}, 405, "METHOD_NOT_ALLOWED"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := w.do(test.method, test.path, body, test.header)
			w.must(err)
			if got.Status != test.status || got.Status >= 400 && got.Problem(t).Code != test.code {
				t.Errorf("got %d %s, want %d %s", got.Status, got.Body, test.status, test.code)
			}
			if !strings.Contains(document, `"code": "`+test.code+`"`) && test.code != "" {
				t.Errorf("openapi.json: got no example of %s, want one, from which docs/errors.md is written", test.code)
			}
		})
	}
}

// Another company's token reaches nothing of a company, and the responses do not reveal that a resource exists.
func TestCompaniesAreIsolated(t *testing.T) {
	t.Parallel()
	w := start(t)
	for _, test := range []struct{ path, there, absent string }{
		{"/message/send", sendBody("TEXT", `{"text":"hi"}`, w.chatID), sendBody("TEXT", `{"text":"hi"}`, unknownID)},
		{"/push-message", `{"templateId":"` + templateID + `","source":"989121234567"}`, `{"templateId":"` + unknownID + `","source":"989121234567"}`},
	} {
		own := w.post(test.path, test.there)
		if own.Status != http.StatusOK {
			t.Fatalf("%s as the owner: got %d %s, want 200", test.path, own.Status, own.Body)
		}
		foreign, unknown := w.postAs(w.other, test.path, test.there), w.postAs(w.other, test.path, test.absent)
		if foreign.Status != http.StatusNotFound || withoutID(foreign.Body) != withoutID(unknown.Body) {
			t.Errorf("%s: got %d %s, want the same as for an unknown id, %s", test.path, foreign.Status, foreign.Body, unknown.Body)
		}
	}
}

func withoutID(body string) string {
	before, _, _ := strings.Cut(body, `"requestId"`)
	return before
}

func unknownToken() string { return fmt.Sprintf("pat_%043d", 0) }
