package widgetapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/testkit/timetest"
)

// Every row of the specification's error table for the Widget API, and further invalid requests.
func TestErrors(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"a@example.com"`)
	closed := w.register(appID, `"email":"closed@example.com"`)
	w.closeChat(closed)

	const text = `{"type":"TEXT","data":{"text":"hi"}}`
	form := func(members string) string { return `{"appId":"` + appID + `",` + members + `}` }
	const oneOfThree = "email is required if phone and userId are absent; phone is required if email and userId are absent; userId is required if email and phone are absent"
	tests := []struct {
		name, method, path, token, body string
		status                          int
		code, message, details          string
	}{
		{"settings of an unknown application", "GET", "/settings/" + unknownID, "", "", 404, "APPLICATION_NOT_FOUND", "Chat application not found", ""},
		{"settings of no UUID", "GET", "/settings/demo", "", "", 404, "APPLICATION_NOT_FOUND", "Chat application not found", ""},

		{"nothing in it", "POST", "/register", "", `{}`, 400, "VALIDATION_ERROR", "", "appId is required; " + oneOfThree},
		{"nulls", "POST", "/register", "", `{"appId":null,"email":null,"phone":null,"userId":null,"firstName":null}`, 400, "VALIDATION_ERROR", "", "appId is required; " + oneOfThree},
		{"wrong types", "POST", "/register", "", `{"appId":1,"firstName":true,"lastName":[],"email":{},"phone":989121234567,"Others":5}`, 400, "VALIDATION_ERROR", "",
			"appId must be a string; firstName must be a string; lastName must be a string; email must be a string; phone must be a string"},
		{"everything wrong at once", "POST", "/register", "", `{"appId":"demo","firstName":"` + strings.Repeat("x", 257) + `","email":"a@b","phone":"+98912","userId":" "}`, 400, "VALIDATION_ERROR", "",
			"appId must be a UUID; firstName must have at most 256 characters; email must be a valid e-mail address; phone must be a phone number of 11 to 12 digits, without + or other characters; userId must not be empty"},
		{"a short phone", "POST", "/register", "", form(`"phone":"9891212345"`), 400, "VALIDATION_ERROR", "", "phone must be a phone number of 11 to 12 digits, without + or other characters"},
		{"a long phone", "POST", "/register", "", form(`"phone":"9891212345678"`), 400, "VALIDATION_ERROR", "", "phone must be a phone number of 11 to 12 digits, without + or other characters"},
		{"no identity", "POST", "/register", "", form(`"firstName":"Sara"`), 400, "VALIDATION_ERROR", "", oneOfThree},
		{"an unknown application", "POST", "/register", "", `{"appId":"` + unknownID + `","email":"a@example.com"}`, 404, "APPLICATION_NOT_FOUND", "Chat application not found", ""},
		{"an application without a widget", "POST", "/register", "", `{"appId":"` + phoneApp + `","email":"a@example.com"}`, 404, "APPLICATION_NOT_FOUND", "Chat application not found", ""},
		{"400 before 404", "POST", "/register", "", `{"appId":"` + unknownID + `","email":"a"}`, 400, "VALIDATION_ERROR", "", "email must be a valid e-mail address"},
		{"required fields", "POST", "/register", "", `{"appId":"` + strictApp + `","phone":"989121234567","firstName":""}`, 400, "MISSING_REQUIRED_FIELDS",
			"Missing required fields: firstName, email, company", "firstName is required; email is required; company is required"},
		{"one required field of the application's own", "POST", "/register", "", `{"appId":"` + strictApp + `","email":"a@example.com","firstName":"Sara","company":""}`, 400, "MISSING_REQUIRED_FIELDS",
			"Missing required fields: company", "company is required"},
		{"register: not JSON", "POST", "/register", "", `{"appId"`, 400, "MALFORMED_JSON", "", ""},
		{"register: a name twice", "POST", "/register", "", form(`"email":"a@example.com","email":"b@example.com"`), 400, "MALFORMED_JSON", "", ""},
		{"register: too large", "POST", "/register", "", form(`"email":"a@example.com","x":"` + strings.Repeat("x", 128<<10) + `"`), 413, "PAYLOAD_TOO_LARGE", "", ""},

		{"history without a token", "GET", "/message", "", "", 401, "TOKEN_MISSING", "Unauthorized: the token is missing. Send one header: Authorization: Bearer <accessToken>.", ""},
		{"history with a wrong token", "GET", "/message", "x.y.z", "", 401, "UNAUTHORIZED", "Unauthorized", ""},
		{"history of a closed chat", "GET", "/message", closed, "", 404, "CHAT_NOT_FOUND", "Chat not found", ""},
		{"history of an unknown visitor", "GET", "/message", w.sign(credential.VisitorClaims{ChatUserID: unknownID, AppID: appID, CompanyID: companyID}), "", 401, "UNAUTHORIZED", "Unauthorized", ""},
		{"history of another application's visitor", "GET", "/message", w.sign(credential.VisitorClaims{ChatUserID: w.claims(token).ChatUserID, AppID: otherApp, CompanyID: otherCompanyID}), "", 401, "UNAUTHORIZED", "Unauthorized", ""},
		{"history with an expired token", "GET", "/message", w.sign(credential.VisitorClaims{ChatUserID: w.claims(token).ChatUserID, AppID: appID, CompanyID: companyID, ExpiresAt: time.Now().Add(-time.Minute)}), "", 401, "UNAUTHORIZED", "Unauthorized", "token has expired"},

		{"a message without a token", "POST", "/message", "", text, 401, "TOKEN_MISSING", "", ""},
		{"401 before 400", "POST", "/message", "x.y.z", `{`, 401, "UNAUTHORIZED", "Unauthorized", ""},
		{"a message with nothing in it", "POST", "/message", token, `{}`, 400, "VALIDATION_ERROR", "", "type is required; data is required"},
		{"a message of the company's types", "POST", "/message", token, `{"type":"IMAGE","data":{}}`, 400, "VALIDATION_ERROR", "", "type must be one of TEXT, MULTIPLE_CHOICE_REPLY"},
		{"a message with wrong types", "POST", "/message", token, `{"type":[],"data":7}`, 400, "VALIDATION_ERROR", "", "type must be a string; data must be an object"},
		{"an empty text", "POST", "/message", token, `{"type":"TEXT","data":{"text":" "}}`, 400, "VALIDATION_ERROR", "", "data.text must not be empty"},
		{"a choice without payload", "POST", "/message", token, `{"type":"MULTIPLE_CHOICE_REPLY","data":{"text":"a"}}`, 400, "VALIDATION_ERROR", "", "data.payload is required"},
		{"too much data", "POST", "/message", token, `{"type":"TEXT","data":{"text":"a","x":"` + strings.Repeat("x", 65536) + `"}}`, 400, "VALIDATION_ERROR", "", "data must have at most 8192 bytes"},
		{"not JSON", "POST", "/message", token, `hello`, 400, "MALFORMED_JSON", "", ""},
		{"too large", "POST", "/message", token, `{"type":"TEXT","data":{"text":"` + strings.Repeat("x", 128<<10) + `"}}`, 413, "PAYLOAD_TOO_LARGE", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			header := headers{"Origin": "https://shop.example.com"}
			if test.method == http.MethodPost {
				header["Content-Type"] = "application/json"
			}
			if test.token != "" {
				header["Authorization"] = "Bearer " + test.token
			}
			got, err := w.do(test.method, test.path, test.body, header)
			w.must(err)
			got.IsProblem(t, test.status, test.code, test.message, test.details)
			if got.Header.Get("Access-Control-Allow-Origin") == "" {
				t.Error("got no CORS header, want one: a page must be able to read the error")
			}
		})
	}
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"a@example.com"`)
	for contentType, want := range map[string]string{
		"multipart/mixed; boundary=x": "Content-Type must be application/json or multipart/form-data.",
		"text/plain":                  "Content-Type must be application/json.",
	} {
		got, err := w.do(http.MethodPost, "/message", "--x--", headers{"Authorization": "Bearer " + token, "Content-Type": contentType})
		w.must(err)
		if p := got.Problem(t); got.Status != 415 || p.Message != want {
			t.Errorf("%s: got %d %s, want 415 %q", contentType, got.Status, got.Body, want)
		}
	}
	got, err := w.do(http.MethodPost, "/register", "{}", headers{"Content-Type": "text/plain"})
	w.must(err)
	if got.Status != 415 {
		t.Errorf("POST /register as text: got %d, want 415", got.Status)
	}
}

// Pages of any origin may call the API, and CORS headers list what they may read.
func TestCORS(t *testing.T) {
	t.Parallel()
	w := start(t)
	for _, path := range []string{"/settings/" + appID, "/register", "/message", "/files/x/a.png", "/.well-known/jwks.json"} {
		got, err := w.do(http.MethodOptions, path, "", headers{
			"Origin": "https://shop.example.com", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type",
		})
		w.must(err)
		allowed := strings.ToLower(got.Header.Get("Access-Control-Allow-Headers"))
		if got.Status != http.StatusNoContent || got.Header.Get("Access-Control-Allow-Origin") != "https://shop.example.com" ||
			!strings.Contains(allowed, "authorization") || !strings.Contains(allowed, "content-type") || got.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("preflight of %s: got %d %v", path, got.Status, got.Header)
		}
	}
}

// A token is not valid longer than its visitor's application, or than that application's widget.
func TestApplicationIsDeleted(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"a@example.com"`)
	w.removeWidget()
	timetest.Until(t, "404 of GET /message", func() bool { return w.get("/message", token).Status == http.StatusNotFound })
	if p := w.get("/message", token).Problem(t); p.Message != "Chat not found" {
		t.Errorf("GET /message: got %q, want Chat not found", p.Message)
	}
	if got := w.post("/message", token, `{"type":"TEXT","data":{"text":"hi"}}`); got.Status != 404 || got.Problem(t).Code != "APPLICATION_NOT_FOUND" {
		t.Errorf("POST /message: got %d %s, want 404", got.Status, got.Body)
	}
}

// removeWidget makes the application unusable for widgets.
func (w *world) removeWidget() {
	w.t.Helper()
	app, err := w.store.Application(w.t.Context(), appID)
	w.must(err)
	app.Provider = "phone"
	w.must(w.store.PutApplication(w.t.Context(), app))
}

func (w *world) sign(c credential.VisitorClaims) string {
	w.t.Helper()
	c.TokenID, c.IssuedAt = "test", time.Now().Add(-time.Hour)
	if c.ExpiresAt.IsZero() {
		c.ExpiresAt = time.Now().Add(time.Hour)
	}
	token, err := w.keys.Sign(c)
	w.must(err)
	return token
}

func (w *world) closeChat(token string) {
	w.t.Helper()
	ctx := w.t.Context()
	v, err := w.store.Visitor(ctx, w.claims(token).ChatUserID)
	w.must(err)
	c, err := store.CurrentChat(ctx, w.store, v, time.Now())
	w.must(err)
	_, err = w.store.ChangeChat(ctx, c.ID, store.ChatChange{ClosedAt: time.Now()})
	w.must(err)
}

func TestKeysAreServed(t *testing.T) {
	t.Parallel()
	w := start(t)
	got := w.get("/.well-known/jwks.json", "")
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal([]byte(got.Body), &set); err != nil || got.Status != 200 || len(set.Keys) != 1 {
		t.Fatalf("got %d %s, want one key", got.Status, got.Body)
	}
	if key := set.Keys[0]; key["kty"] != "OKP" || key["crv"] != "Ed25519" || key["kid"] == "" || key["d"] != "" {
		t.Errorf("got %v, want a public Ed25519 key", key)
	}
	if cache := got.Header.Get("Cache-Control"); !strings.Contains(cache, "max-age") {
		t.Errorf("got Cache-Control %q, want it cacheable", cache)
	}
}
