package panel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/pdf"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/panel"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/storetest"
)

// engine is a store that can fail: the first reads of each request return an error.
type engine struct {
	store.Store
	away    atomic.Bool
	full    atomic.Bool                                     // it appends no message
	history atomic.Pointer[func(page []chat.Message) error] // called with each page of a history
}

func (e *engine) History(ctx context.Context, chatID string, q store.HistoryQuery) (page []chat.Message, more bool, err error) {
	page, more, err = e.Store.History(ctx, chatID, q)
	if see := e.history.Load(); err == nil && see != nil {
		err = (*see)(page)
	}
	return page, more, err
}

func (e *engine) AppendMessage(ctx context.Context, chatID string, m chat.Message) error {
	if e.full.Load() {
		return apperr.Unreachable("the store", errors.New("full in this test"))
	}
	return e.Store.AppendMessage(ctx, chatID, m)
}

func (e *engine) check() error {
	if e.away.Load() {
		return apperr.Unreachable("the store", errors.New("no engine in this test"))
	}
	return nil
}

func (e *engine) Session(ctx context.Context, id string) (account.Session, error) {
	if err := e.check(); err != nil {
		return account.Session{}, err
	}
	return e.Store.Session(ctx, id)
}

func (e *engine) User(ctx context.Context, id string) (account.User, error) {
	if err := e.check(); err != nil {
		return account.User{}, err
	}
	return e.Store.User(ctx, id)
}

var document = func() *openapi3.T {
	doc, err := openapi3.NewLoader().LoadFromData(panel.OpenAPI())
	if err != nil {
		panic(err)
	}
	return doc
}()

// eventSchemas are the schemas of live updates by event name.
var eventSchemas = map[string]string{
	"message": "MessageEvent", "chat": "ChatEvent", "status": "StatusEvent", "registered": "RegisteredEvent", "rated": "RatedEvent",
	"read":     "ReadEvent",
	"presence": "PresenceEvent", "typing": "TypingEvent", "seen": "SeenEvent", "ready": "EmptyEvent", "reset": "EmptyEvent", "offline": "EmptyEvent",
	"event": "TailEvent",
}

// checkEvent validates the data of a live update.
func (w *world) checkEvent(e sse) {
	schema := document.Components.Schemas[eventSchemas[e.name]]
	var data any
	switch err := json.Unmarshal([]byte(e.data), &data); {
	case schema == nil:
		w.t.Errorf("the document has no event %s", e.name)
	case err != nil:
		w.t.Errorf("event %s: %v", e.name, err)
	default:
		if err := schema.Value.VisitJSON(data); err != nil {
			w.t.Errorf("event %s with %s: %v", e.name, e.data, err)
		}
	}
}

// operation is one operation of the document.
type operation struct {
	method, path string
	*openapi3.Operation
}

func (o operation) name() string { return o.method + " " + o.path }

func (o operation) has(status int) bool { return o.Responses.Status(status) != nil }

func (o operation) parameter(name string) bool {
	return slices.ContainsFunc(o.Parameters, func(p *openapi3.ParameterRef) bool { return p.Value.Name == name })
}

// endless reports whether the response is a stream of events.
func (o operation) endless() bool {
	ok := o.Responses.Status(http.StatusOK)
	return ok != nil && ok.Value.Content["text/event-stream"] != nil
}

// bodies returns the request examples by name; one empty body for an operation without a body.
func (o operation) bodies(t *testing.T) map[string]string {
	t.Helper()
	switch {
	case o.RequestBody == nil:
		return map[string]string{"": ""}
	case o.RequestBody.Value.Content["multipart/form-data"] != nil:
		return map[string]string{"file": "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nhello\r\n--b--\r\n"}
	}
	if o.RequestBody.Value.Content["application/pdf"] != nil {
		return map[string]string{"file": pdfOf(t, "Soup of the day")}
	}
	bodies := map[string]string{}
	for name, example := range o.RequestBody.Value.Content["application/json"].Examples {
		raw, err := json.Marshal(example.Value.Value)
		if err != nil {
			t.Fatal(err)
		}
		bodies[name] = string(raw)
	}
	return bodies
}

var permissionText = regexp.MustCompile("Permission: `([^`]+)`")

// permission returns the permission in the description; empty: none.
func (o operation) permission() account.Permission {
	if m := permissionText.FindStringSubmatch(o.Description); m != nil {
		return account.Permission(m[1])
	}
	return ""
}

// operations returns the operations of the API, sorted by name.
func operations() (all []operation) {
	for path, item := range document.Paths.Map() {
		for method, o := range item.Operations() {
			all = append(all, operation{method, path, o})
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.name(), b.name()) })
	return all
}

// The document lists exactly the routes that the API serves, with their permissions.
func TestDocumentListsEveryRoute(t *testing.T) {
	t.Parallel()
	served, documented := map[string]account.Permission{}, map[string]account.Permission{}
	parameter := regexp.MustCompile(`:(\w+)`)
	for r, p := range panel.Routes() {
		served[parameter.ReplaceAllString(r, "{$1}")] = p
	}
	for _, r := range panel.OpenRoutes() {
		served[parameter.ReplaceAllString(r, "{$1}")] = ""
	}
	for _, o := range operations() {
		documented[o.name()] = o.permission()
	}
	if !maps.Equal(served, documented) {
		t.Errorf("got the document of\n%v, want\n%v", documented, served)
	}
}

// The ids of the document's examples.
const (
	exampleCompany    = "c0000000-0000-4000-8000-000000000001"
	exampleApp        = "a0000000-0000-4000-8000-000000000001"
	exampleTemplate   = "e0000000-0000-4000-8000-000000000001"
	exampleVisitor    = "b0000000-0000-4000-8000-000000000001"
	exampleEndpoint   = "f0000000-0000-4000-8000-000000000001"
	exampleConnection = "90000000-0000-4000-8000-000000000001"
	exampleDocument   = "70000000-0000-4000-8000-000000000001"
	exampleChat       = "5bbf5571-1b97-5d0f-9588-ec2e97f7f647"
	exampleUser       = "d0000000-0000-5000-8000-000000000001"
	exampleMessage    = "019ab5c6-0d0e-7c64-a0bb-0d5d5fa7c1f2"
	exampleDelivery   = "019ab5c6-0d0e-7c64-a0bb-0d5d5fa7c1f3"
	exampleToken      = "3f79bb7b435b05321651daefd374cdc681dc06faa65e374e38337b88ca046dea"
	exampleSession    = "9b74c9897bac770ffc029102a200c5de6f0a2d7a3b7a8b1c1e4f0f7b5f3d2c11"

	missing = "99999999-9999-4999-8999-999999999999"
)

// trial is one request of an operation in the document.
type trial struct {
	w    *world
	o    operation
	c    company
	b    *browser
	body string
	ids  map[string]string // replacements of the ids in the examples
}

// session starts a session without the slow password check.
func (w *world) session(u account.User) *browser { return w.sessionAt(u, time.Now()) }

// sessionAt is session for one that began at a given time.
func (w *world) sessionAt(u account.User, at time.Time) *browser {
	w.t.Helper()
	b := w.browser(w.base)
	secret, s := account.NewSession(u.ID, "127.0.0.1", "test", at)
	w.must(w.store.CreateSession(w.t.Context(), s))
	b.cookie, b.csrf = "parley-panel="+secret, account.CSRFToken(secret)
	return b
}

// user returns a user of a company with the permission, or an operator.
func (w *world) userWith(c company, p account.Permission) account.User {
	if owner := c.users[account.Owner]; p == "" || owner.Role.May(p) {
		return owner
	}
	return w.operator
}

// trial prepares a request on its own company.
func (w *world) trial(o operation, number int, body string) *trial {
	w.t.Helper()
	c := w.seed(fmt.Sprint("company", number), fmt.Sprint(number))
	u := w.userWith(c, o.permission())
	r := &trial{w: w, o: o, c: c, b: w.session(u), body: body}
	secret := strings.TrimPrefix(r.b.cookie, "parley-panel=")
	r.ids = map[string]string{
		exampleCompany: c.id, exampleApp: c.app, exampleTemplate: c.template, exampleVisitor: c.visitor, exampleEndpoint: c.endpoint, exampleConnection: c.connection, exampleDocument: c.document,
		exampleChat: c.chat,
		exampleUser: c.users[account.Agent].ID, exampleToken: c.token, exampleSession: account.HashSecret(secret),
		"grace@acme.example": c.users[account.Agent].Email,
	}
	return r
}

// replaced replaces the ids of the examples by existing ones.
func (r *trial) replaced(text string) string {
	var pairs []string
	for _, from := range slices.Backward(slices.Sorted(maps.Keys(r.ids))) { // a longer id before its prefix
		pairs = append(pairs, from, r.ids[from])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// path replaces the path parameters by the examples of the document.
func (r *trial) path() string {
	path := r.o.path
	for _, p := range r.o.Parameters {
		if p.Value.In == "path" {
			path = strings.Replace(path, "{"+p.Value.Name+"}", fmt.Sprint(p.Value.Example), 1)
		}
	}
	return path
}

func (r *trial) send(path, body string, headers ...string) httpapitest.Response {
	r.w.t.Helper()
	switch {
	case strings.HasPrefix(body, "--b"):
		headers = append([]string{"Content-Type", "multipart/form-data; boundary=b"}, headers...)
	case r.o.RequestBody != nil && r.o.RequestBody.Value.Content["application/pdf"] != nil:
		headers = append([]string{"Content-Type", "application/pdf"}, headers...)
	}
	return r.b.do(r.o.method, r.replaced(path), r.replaced(body), append([]string{"Idempotency-Key", "key"}, headers...)...)
}

// prepared creates the resources that the examples of single operations need.
var prepared = map[string]func(*trial){
	"confirmTOTP": func(r *trial) {
		var offer struct{ Secret string }
		r.b.done(http.StatusOK, http.MethodPost, "/api/totp", `{"password":"`+password+`"}`).Into(r.w.t, &offer)
		r.ids["123456"] = account.TOTP(offer.Secret, time.Now())
	},
	"renewRecoveryCodes": func(r *trial) {
		u, err := r.w.store.User(r.w.t.Context(), r.c.users[account.Owner].ID)
		r.w.must(err)
		u.TOTPSecret = account.NewTOTPSecret()
		r.w.must(r.w.store.UpdateUser(r.w.t.Context(), u))
		r.ids["123456"] = account.TOTP(u.TOTPSecret, time.Now())
	},
	"checkInvitation":  func(r *trial) { r.invite() },
	"acceptInvitation": func(r *trial) { r.invite() },
	"renewInvitation":  func(r *trial) { r.invite() },
	"submitTemplate":   func(r *trial) { r.setTemplate(chat.TemplateDraft) },
	"approveTemplate":  func(r *trial) { r.setTemplate(chat.TemplatePending) },
	"rejectTemplate":   func(r *trial) { r.setTemplate(chat.TemplatePending) },
	"fetchDocument": func(r *trial) {
		d, err := r.w.store.Document(r.w.t.Context(), r.c.document)
		r.w.must(err)
		d.SetSource("https://shop.example.com/returns", 24, time.Now())
		r.w.must(r.w.store.PutDocument(r.w.t.Context(), d, nil))
	},
	"publishBot": func(r *trial) {
		b := bots.Bot{AppID: r.c.app, CompanyID: r.c.id}
		b.Publish(bots.Settings{Kind: bots.Demo}, "test", time.Now())
		r.w.must(r.w.store.PutBot(r.w.t.Context(), b))
	},
	"replayDeliveries": func(r *trial) {
		var d struct{ ID string }
		r.b.done(http.StatusAccepted, http.MethodPost, "/api/webhooks/"+r.c.endpoint+"/test", "").Into(r.w.t, &d)
		r.ids[exampleDelivery] = d.ID
	},
	"getTrace": func(r *trial) { r.ids[exampleMessage] = r.w.visitorWrites(r.c, "hello").ID },
}

func (r *trial) setTemplate(status string) {
	r.w.must(r.w.store.PutTemplate(r.w.t.Context(), chat.MessageTemplate{ID: r.c.template, CompanyID: r.c.id, Name: "hello", Status: status, Text: "Hello"}))
}

func (r *trial) invite() {
	u := account.NewUser("invited@"+r.c.id, "", account.Agent, r.c.id, time.Now())
	invited, token, err := admin.New(r.w.store, nil, time.Now).InviteUser(r.w.t.Context(), admin.Actor{Name: "test"}, u)
	r.w.must(err)
	r.ids[exampleUser+".secret"], r.ids[exampleUser] = token, invited.ID
}

// Every request example is accepted, the responses match the document, and every documented status occurs. The sections' tests
// cover the statuses whose causes differ by operation (302, 408, 409, 412, 422, 429, a file that is too large, and what needs an issuer): TestMain checks
// that all codes occurred.
func TestEveryExampleAndStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	number := 100
	for _, o := range operations() {
		if strings.HasPrefix(o.path, "/api/oidc/") && o.method == http.MethodGet {
			w.browser(w.base).do(o.method, o.path, "")
			continue
		}
		for name, body := range o.bodies(t) {
			number++
			r := w.trial(o, number, body)
			r.refused()
			if prepare := prepared[o.OperationID]; prepare != nil {
				prepare(r)
			}
			switch {
			case o.endless():
				_, stop := r.b.events(r.replaced(r.path()+r.query()), "")
				stop()
			case o.OperationID == "getDeadLetter": // TestStreams covers it
			case o.OperationID == "acceptInvitationWithOIDC": // TestOIDCAcceptsInvitations covers it
				r.send(r.path()+r.query(), r.body)
			default:
				if a := r.send(r.path()+r.query(), r.body); a.Status >= http.StatusMultipleChoices {
					t.Errorf("%s %s: got %d %s, want success", o.name(), name, a.Status, a.Body)
				}
			}
		}
	}
	w.store.away.Store(true)
	for _, o := range operations() {
		for _, body := range o.bodies(t) {
			r := &trial{w: w, o: o, b: w.browser(w.base), body: body}
			r.b.cookie = "parley-panel=any"
			if a := r.send(r.path(), body); o.has(http.StatusServiceUnavailable) && a.Status != http.StatusServiceUnavailable {
				t.Errorf("%s without the store: got %d %s, want 503", o.name(), a.Status, a.Body)
			}
		}
	}
	elsewhere := regexp.MustCompile(` (302|409|412|422|429)$|^POST /api/chats/\{id\}/files (408|413)$|^GET /api/dead-letters/\{sequence\} 200$|^POST /api/oidc/start 200$`)
	for _, e := range w.contract.Unseen() {
		if !elsewhere.MatchString(e) {
			t.Errorf("documented, but never answered: %s", e)
		}
	}
}

// query names the company if an operator must.
func (r *trial) query() string {
	if r.o.parameter("companyId") {
		return "?companyId=" + r.c.id
	}
	return ""
}

// refused gets the operation's documented errors.
func (r *trial) refused() {
	o, w := r.o, r.w
	body := r.replaced(r.body)
	guest := &trial{w: w, o: o, b: w.browser(w.base), ids: r.ids}
	if o.has(http.StatusUnauthorized) {
		guest.send(r.path(), strings.Replace(body, password, "wrong", 1))
	}
	if o.has(http.StatusForbidden) && o.method != http.MethodGet {
		r.send(r.path(), body, "X-CSRF-Token", "")
	}
	for role, u := range r.c.users {
		if p := o.permission(); p != "" && !role.May(p) {
			other := &trial{w: w, o: o, b: w.session(u), ids: r.ids}
			other.send(r.path(), body)
		}
	}
	if o.has(http.StatusBadRequest) {
		operator := &trial{w: w, o: o, b: w.session(w.operator), ids: r.ids}
		switch {
		case o.RequestBody != nil && strings.HasPrefix(body, "--b"):
			r.send(r.path(), "--b--\r\n")
		case o.RequestBody != nil:
			r.send(r.path(), "{")
		case o.parameter("limit"):
			r.send(r.path()+"?limit=0", "")
		case o.parameter("since"):
			r.send(r.path()+"?since=yesterday", "")
		default:
			operator.send(r.path(), body)
		}
	}
	if o.has(http.StatusNotFound) {
		r.unknown(body)
	}
	if o.has(http.StatusRequestEntityTooLarge) && !strings.HasPrefix(body, "--b") {
		size := 1 << 20
		if strings.HasPrefix(body, "%PDF-") {
			size = pdf.MaxBytes
		}
		r.send(r.path(), `{"a":"`+strings.Repeat("x", size)+`"}`)
	}
	if o.has(http.StatusUnsupportedMediaType) {
		r.send(r.path(), body, "Content-Type", "text/plain")
	}
}

// unknown requests a resource that does not exist.
func (r *trial) unknown(body string) {
	ids := r.ids
	defer func() { r.ids = ids }()
	r.ids = nil
	path := r.o.path
	for _, p := range r.o.Parameters {
		switch {
		case p.Value.In == "path" && p.Value.Name == "sequence":
			path = strings.Replace(path, "{sequence}", "999999", 1)
		case p.Value.In == "path":
			path = strings.Replace(path, "{"+p.Value.Name+"}", missing, 1)
		case p.Value.Name == "companyId":
			path += "?companyId=" + missing
		}
	}
	r.send(path, body)
}

func TestDocumentIsServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.browser(w.base).done(http.StatusOK, http.MethodGet, "/openapi.json", "")
	if a.Body != strings.TrimSpace(string(panel.OpenAPI())) || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/json") {
		t.Errorf("got %d bytes, want the document", len(a.Body))
	}
}

// Schemas that several APIs share are equal.
func TestSharedSchemasAreTheSame(t *testing.T) {
	t.Parallel()
	theirs, err := os.ReadFile("../widget-api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if shared := httpapitest.SharedSchemas(t, panel.OpenAPI(), theirs); shared < 20 {
		t.Errorf("got %d shared schemas, want those of messages and errors", shared)
	}
}

func TestDocumentIsReadable(t *testing.T) {
	t.Parallel()
	httpapitest.Contract(t, panel.OpenAPI()).IsReadable()
}

// A truncated body gets the documented error.
func TestUnreadableBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.contract.RefusesUnreadableBody(w.base, "/api/session", "X-CSRF-Token: none")
}

// Documented error codes that no other test gets.
func TestRareErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	owner, chats := w.session(w.acme.users[account.Owner]), "/api/chats/"+w.acme.chat
	wantCode := func(code, method, path, body string, headers ...string) {
		t.Helper()
		if a := owner.do(method, path, body, headers...); !strings.Contains(a.Body, `"code":"`+code+`"`) {
			t.Errorf("%s %s: got %d %s, want %s", method, path, a.Status, a.Body, code)
		}
	}
	const text = `{"type":"TEXT","data":{"text":"x"}}`
	form := []string{"Content-Type", "multipart/form-data; boundary=b", "Idempotency-Key", "file"}
	wantCode("IDEMPOTENCY_KEY_INVALID", http.MethodPost, chats+"/messages", text, "Idempotency-Key", `"`)
	wantCode("MALFORMED_MULTIPART", http.MethodPost, chats+"/files", "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nbroken off", form...)
	page := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n<!doctype html>\r\n--b--\r\n"
	wantCode("FILE_TYPE_MISMATCH", http.MethodPost, chats+"/files", page, form...)
	for code, file := range map[string]string{
		"PDF_UNREADABLE": "%PDF-1.7 and no more", "PDF_WITHOUT_TEXT": pdfOf(t), "PDF_ENCRYPTED": protectedPDF(t),
		"PDF_TOO_LARGE": pdfOf(t, make([]string, 2001)...),
	} {
		wantCode(code, http.MethodPost, "/api/documents/pdf", file, "Content-Type", "application/pdf")
	}
	wantCode("WEBHOOK_DELIVERY_NOT_FOUND", http.MethodPost, "/api/webhooks/"+w.acme.endpoint+"/replay", `{"id":"`+exampleDelivery+`"}`)
	for range webhook.MaxEndpoints - 1 {
		owner.done(http.StatusCreated, http.MethodPost, "/api/webhooks", `{"url":"https://crm.example"}`)
	}
	wantCode("TOO_MANY_ENDPOINTS", http.MethodPost, "/api/webhooks", `{"url":"https://crm.example"}`)
	for n := 1; n < admin.MaxApplications; n++ {
		w.must(w.store.PutApplication(t.Context(), chat.Application{ID: chat.NewID(), CompanyID: w.acme.id, Provider: chat.ProviderWidget, WidgetConfigs: []byte("{}")}))
	}
	wantCode("TOO_MANY_APPLICATIONS", http.MethodPost, "/api/applications", `{"name":"one more","botName":"Polly"}`)
	for n := 1; n < admin.MaxTemplates; n++ {
		w.must(w.store.PutTemplate(t.Context(), chat.MessageTemplate{ID: chat.NewID(), CompanyID: w.acme.id}))
	}
	wantCode("TOO_MANY_TEMPLATES", http.MethodPost, "/api/templates", `{"name":"one more","text":"x"}`)
	for n := 1; n < admin.MaxTokens; n++ {
		_, token := credential.NewAccessToken(w.acme.id, "one more", time.Now(), time.Time{})
		w.must(w.store.CreateAccessToken(t.Context(), token))
	}
	wantCode("TOO_MANY_TOKENS", http.MethodPost, "/api/tokens", `{"name":"one more"}`)
	owner.done(http.StatusOK, http.MethodPost, "/api/tokens/"+w.acme.token+"/revoke", "{}")
	owner.done(http.StatusCreated, http.MethodPost, "/api/tokens", `{"name":"in place of the revoked one"}`)
	owner.done(http.StatusNotFound, http.MethodPost, "/api/tokens/"+w.acme.token+"/revoke", "{}")
	for n := len(w.acme.users); n < admin.MaxUsers; n++ {
		w.user(fmt.Sprintf("colleague%d@acme.example", n), account.Agent, w.acme.id)
	}
	wantCode("TOO_MANY_USERS", http.MethodPost, "/api/users", `{"email":"more@acme.example","name":"More","role":"agent"}`)
	owner.done(http.StatusOK, http.MethodPut, "/api/templates/"+w.acme.template, `{"name":"x","text":"y"}`)
	wantCode("TEMPLATE_NOT_APPROVED", http.MethodPost, chats+"/messages", `{"type":"TEMPLATE","templateId":"`+w.acme.template+`"}`, "Idempotency-Key", "t")

	owner.done(http.StatusCreated, http.MethodPost, chats+"/messages", text, "Idempotency-Key", "first")
	storetest.Unanswer(t, w.store)
	wantCode("IDEMPOTENCY_KEY_IN_USE", http.MethodPost, chats+"/messages", text, "Idempotency-Key", "first")
	w.fill(subject.Replies)
	wantCode("STREAM_FULL", http.MethodPost, chats+"/messages", text, "Idempotency-Key", "second")
	owner.do(http.MethodPost, chats+"/files", "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nx\r\n--b--\r\n", form...) // the store's stream has a message then
	w.fill(bus.FilesStream)
	wantCode("FILE_STORE_FULL", http.MethodPost, chats+"/files", "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nx\r\n--b--\r\n", form...)
}

// fill fills a stream, so that it has no room for another message.
func (w *world) fill(name string) {
	w.t.Helper()
	nc, err := nats.Connect(w.natsURL)
	w.must(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	w.must(err)
	stream, err := js.Stream(w.t.Context(), name)
	w.must(err)
	cfg := stream.CachedInfo().Config
	cfg.MaxMsgs = max(1, int64(stream.CachedInfo().State.Msgs))
	_, err = js.UpdateStream(w.t.Context(), cfg)
	w.must(err)
}
