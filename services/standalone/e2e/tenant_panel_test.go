package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/panel"
	"github.com/parley-chat/parley/services/standalone/internal/seed"
	"github.com/parley-chat/parley/testkit/httpapitest"
)

// panelRecords are the records of a company that requests to the panel name.
type panelRecords struct {
	company, app, template, token, endpoint, connection, document, delivery, visitor, chat, message, entry string

	agent, email, session string                  // the id, the address and a session's id of one user
	invitation            string                  // the token of another one
	users                 []string                // ids of all
	secrets               map[account.Role]string // of the users' sessions
}

// examples maps the examples of the panel's document to records. A walk through the document knows from here
// what a parameter or a member of a body names.
func (r panelRecords) examples() map[string]string {
	const chatID = "5bbf5571-1b97-5d0f-9588-ec2e97f7f647"
	return map[string]string{
		"c0000000-0000-4000-8000-000000000001":                             r.company,
		"a0000000-0000-4000-8000-000000000001":                             r.app,
		"e0000000-0000-4000-8000-000000000001":                             r.template,
		"b0000000-0000-4000-8000-000000000001":                             r.visitor,
		"f0000000-0000-4000-8000-000000000001":                             r.endpoint,
		"90000000-0000-4000-8000-000000000001":                             r.connection,
		"70000000-0000-4000-8000-000000000001":                             r.document,
		"d0000000-0000-5000-8000-000000000001":                             r.agent,
		"d0000000-0000-5000-8000-000000000001.secret":                      r.invitation,
		"grace@acme.example":                                               r.email,
		chatID:                                                             r.chat,
		"1795262400007." + chatID:                                          "1795262400007." + r.chat, // the cursor of a page
		"019ab5c6-0d0e-7c64-a0bb-0d5d5fa7c1f2":                             r.message,
		"019ab5c6-0d0e-7c64-a0bb-0d5d5fa7c1f3":                             r.delivery,
		"019ab5c6-0d0e-7c64-a0bb-0d5d5fa7c1f4":                             r.entry,
		"3f79bb7b435b05321651daefd374cdc681dc06faa65e374e38337b88ca046dea": r.token,
		"9b74c9897bac770ffc029102a200c5de6f0a2d7a3b7a8b1c1e4f0f7b5f3d2c11": r.session,
	}
}

// absentRecords has ids of the same form that name nothing.
func absentRecords() panelRecords {
	none := "99999999-9999-4999-8999-999999999999"
	hash := strings.Repeat("9", 64)
	return panelRecords{
		company: none, app: none, template: none, token: hash, endpoint: none, connection: none, document: none, delivery: none, visitor: none, chat: none, message: none,
		entry: none, agent: none, email: "nobody@nowhere.example", session: hash, invitation: none + ".secret",
	}
}

// panelPassword is the password in the examples of the panel's document.
const panelPassword = "correct horse battery"

// panelPasswordHash is computed once: hashing is slow on purpose.
var panelPasswordHash = sync.OnceValues(func() (string, error) {
	return account.HashPassword(context.Background(), panelPassword)
})

// putPanelRecords adds users and what only the panel names to a company.
func putPanelRecords(t testing.TB, s store.Store, of tenant) panelRecords {
	t.Helper()
	r := panelRecords{
		company: of.app.CompanyID, app: of.app.ID, template: of.template, chat: of.chatID, message: of.message, endpoint: uuid.NewString(), connection: uuid.NewString(), document: uuid.NewString(),
		delivery: uuid.Must(uuid.NewV7()).String(), entry: uuid.Must(uuid.NewV7()).String(), secrets: map[account.Role]string{},
	}
	c, err := s.Chat(t.Context(), of.chatID)
	check(t, err)
	r.visitor = c.ChatUserID
	tokens, err := s.AccessTokens(t.Context(), r.company, store.Page{})
	check(t, err)
	r.token = tokens[0].Hash
	for _, role := range []account.Role{account.Owner, account.Developer, account.Agent} {
		u := putUser(t, s, role, r.company)
		r.users, r.secrets[role] = append(r.users, u.ID), putSession(t, s, u)
		r.agent, r.email, r.session = u.ID, u.Email, account.HashSecret(r.secrets[role]) // of the last, the agent
	}
	invited := account.NewUser("invited@"+r.company+".example", "Invited", account.Agent, r.company, time.Now())
	_, r.invitation, err = admin.New(s, nil, time.Now).InviteUser(t.Context(), admin.Actor{Name: "e2e"}, invited)
	check(t, err)
	r.users = append(r.users, invited.ID)
	check(t, s.CreateWebhookEndpoint(t.Context(), webhook.Endpoint{
		ID: r.endpoint, CompanyID: r.company, URL: "http://127.0.0.1:1/" + r.company, Events: []string{"chat.rated"}, CreatedAt: time.Now(),
		Secrets: []webhook.Secret{webhook.NewSecret(webhook.HMAC, time.Now())},
	}))
	check(t, s.PutDocument(t.Context(), knowledge.Document{
		ID: r.document, CompanyID: r.company, Title: r.company, Format: knowledge.Text, Text: r.company,
		CreatedAt: time.Now(), UpdatedAt: time.Now(),
	}, []knowledge.Passage{{DocumentID: r.document, CompanyID: r.company, Number: 1, Title: r.company, Text: r.company}}))
	check(t, s.PutModelConnection(t.Context(), bots.Connection{
		ID: r.connection, CompanyID: r.company, Name: r.company, BaseURL: "http://127.0.0.1:1/" + r.company, CreatedAt: time.Now(),
	}))
	bot := bots.Bot{AppID: r.app, CompanyID: r.company}
	bot.Publish(bots.Settings{Kind: bots.Demo}, "e2e", time.Now())
	check(t, s.PutBot(t.Context(), bot))
	_, err = s.InsertWebhookDelivery(t.Context(), webhook.Delivery{
		ID: r.delivery, CompanyID: r.company, EndpointID: r.endpoint, EventType: "chat.rated", Body: `{"of":"` + r.company + `"}`,
		CreatedAt: time.Now(), Status: webhook.Failed, Reason: "exhausted", ExpiresAt: time.Now().Add(time.Hour),
	})
	check(t, err)
	check(t, s.AppendAuditEntry(t.Context(), account.AuditEntry{
		ID: r.entry, CompanyID: r.company, At: time.Now(), User: "e2e", Action: "application.create", Target: "application", TargetID: r.app,
	}))
	return r
}

func putUser(t testing.TB, s store.Store, role account.Role, companyID string) account.User {
	t.Helper()
	u := account.NewUser(string(role)+"@"+uuid.NewString()+".example", "Somebody", role, companyID, time.Now())
	var err error
	u.PasswordHash, err = panelPasswordHash()
	check(t, err)
	check(t, s.CreateUser(t.Context(), u))
	return u
}

// putSession signs a user in and returns the session's secret.
func putSession(t testing.TB, s store.Store, u account.User) (secret string) {
	t.Helper()
	secret, session := account.NewSession(u.ID, "127.0.0.1", "e2e", time.Now())
	check(t, s.CreateSession(t.Context(), session))
	return secret
}

// panelWalk calls every operation of the panel's document.
type panelWalk struct {
	place
	store    store.Store
	known    map[string]string // see [panelRecords.examples]; the values do not matter
	other    panelRecords      // the company whose records are tried
	requests int
	panel    *api
}

// Every operation of the panel's document is called with another company's ids, in each place that names a
// record: the answer equals that for unknown ids, byte for byte, shows nothing of the other company, and has
// no effect on it. An operation, a parameter or a body of which the document does not say what it names fails
// the test.
func TestCompaniesNeverMeetInThePanel(t *testing.T) {
	p := commonStandalone(t).place
	w := &panelWalk{place: p, store: openStore(t, p), panel: newAPI(t, p.PanelURL), known: panelRecords{}.examples()}
	w.other = w.newCompany(t)
	before := w.recordsOf(t, w.other)
	if len(before) < 12 {
		t.Fatalf("got %d records of the other company, want one of each kind", len(before))
	}
	document, err := openapi3.NewLoader().LoadFromData(panel.OpenAPI())
	check(t, err)
	for _, path := range slices.Sorted(maps.Keys(document.Paths.Map())) {
		for method, o := range document.Paths.Value(path).Operations() {
			w.walk(t, panelOperation{Operation: o, method: method, path: path})
		}
	}
	t.Logf("%d requests", w.requests)
	for _, stream := range []string{subject.Inbound, subject.Sends} {
		digested(t, p.NATSURL, stream)
	}
	after := w.recordsOf(t, w.other)
	for key, record := range after {
		if before[key] != record {
			t.Errorf("the other company's %s: got %s, want %s", key, record, before[key])
		}
	}
	if len(after) != len(before) {
		t.Errorf("got %d records of the other company, want %d", len(after), len(before))
	}
}

func (w *panelWalk) newCompany(t *testing.T) panelRecords {
	t.Helper()
	return putPanelRecords(t, w.store, newQuietTenant(t, w.store))
}

// newQuietTenant creates a tenant of which the processing layer knows nothing: only requests change its records.
func newQuietTenant(t *testing.T, s store.Store) tenant {
	t.Helper()
	app, template, secret := putCompany(t, s)
	c := openChat(t, s, place{Demo: seed.Demo{AppID: app.ID, CompanyID: app.CompanyID}}, time.Now().Add(-time.Minute))
	m := chat.Message{
		ID: chat.NewID(), CreatedAt: time.Now(), Type: chat.Text, Data: json.RawMessage(`{"text":"only for ` + app.ID + `"}`), NameOfSender: "Old",
	}
	check(t, s.AppendMessage(t.Context(), c.ID, m))
	return tenant{token: secret, app: app, template: template.ID, chatID: c.ID, message: m.ID}
}

var lastUse = regexp.MustCompile(`"LastUsedAt":"[^"]*"`) // of an access token: written some time after the use

// recordsOf returns all stored records of a company, and its users' sessions.
func (w *panelWalk) recordsOf(t *testing.T, of panelRecords) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, kind := range store.Kinds() {
		for _, r := range recordsOf(t, w.store, kind, of) {
			found[string(kind)+" "+r.Key] = lastUse.ReplaceAllString(textOf(t, r), "")
		}
	}
	for _, user := range of.users {
		sessions, err := w.store.UserSessions(t.Context(), user, store.Page{})
		check(t, err)
		for _, s := range sessions {
			found["session "+s.ID] = fmt.Sprint(s.ExpiresAt)
		}
	}
	return found
}

// textOf returns a record's value as JSON.
func textOf(t testing.TB, r store.Record) string {
	t.Helper()
	text, err := json.Marshal(r.Value)
	check(t, err)
	return string(text)
}

// recordsOf returns the records of a kind that name a company, one of its users, or something of theirs.
func recordsOf(t testing.TB, s store.Store, kind store.Kind, of panelRecords) (found []store.Record) {
	t.Helper()
	const page = 1000
	names := append([]string{of.company, of.app, of.visitor, of.chat}, of.users...)
	for after := ""; ; {
		records, err := s.ReadRecords(t.Context(), kind, after, page)
		check(t, err)
		for _, r := range records {
			if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(textOf(t, r), name) }) {
				found = append(found, r)
			}
		}
		if len(records) < page {
			return found
		}
		after = records[page-1].Key
	}
}

// panelOperation is an operation of the panel's document.
type panelOperation struct {
	*openapi3.Operation
	method, path string
}

func (o panelOperation) String() string { return o.method + " " + o.path }

// isOpen reports whether the operation needs no session.
func (o panelOperation) isOpen() bool { return o.Security != nil && len(*o.Security) == 0 }

func (o panelOperation) isEndless() bool {
	ok := o.Responses.Status(http.StatusOK)
	return ok != nil && ok.Value.Content["text/event-stream"] != nil
}

func (o panelOperation) isForm() bool {
	return o.RequestBody != nil && o.RequestBody.Value.Content["multipart/form-data"] != nil
}

var permissionText = regexp.MustCompile("Permission: `([^`]+)`")

// mayOwner reports whether owners of a company have the operation's permission.
func (o panelOperation) mayOwner() bool {
	found := permissionText.FindStringSubmatch(o.Description)
	return found == nil || account.Owner.May(account.Permission(found[1]))
}

// bodies returns the examples of the request's body: nil for an operation without one, or with a file, which names no
// record.
func (o panelOperation) bodies(t *testing.T) (bodies []any) {
	t.Helper()
	if o.RequestBody == nil || o.RequestBody.Value.Content["application/pdf"] != nil {
		return []any{nil}
	}
	for _, media := range o.RequestBody.Value.Content {
		for _, name := range slices.Sorted(maps.Keys(media.Examples)) {
			bodies = append(bodies, media.Examples[name].Value.Value)
		}
	}
	if len(bodies) == 0 {
		t.Errorf("%s: the document has no example of the body", o)
	}
	return bodies
}

// seemsID matches ids, and cursors that contain one.
var seemsID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-|^[0-9a-f]{64}$`)

// cursorSlot is the place of a page's cursor, which is the id of an entry or contains it.
const cursorSlot = "query cursor"

// isCursor reports whether a slot names a place in a list. Ids that name nothing are such places too, so pages after them may differ.
func isCursor(slot string) bool { return strings.HasPrefix(slot, cursorSlot) || slot == "query before" }

// slots returns the places of a request that name a record, such as "path id" or "body templateId".
func (w *panelWalk) slots(t *testing.T, o panelOperation, body any) (slots []string) {
	t.Helper()
	for _, p := range o.Parameters {
		slot, example := p.Value.In+" "+p.Value.Name, httpapitest.ExampleOf(p.Value)
		schema := p.Value.Schema.Value
		_, isKnown := w.known[example]
		switch {
		case isKnown:
			slots = append(slots, slot)
		case slot == cursorSlot: // that of many lists: any of the ids
			for known := range w.known {
				slots = append(slots, slot+"="+known)
			}
		case p.Value.In == openapi3.ParameterInHeader:
		case p.Value.In == openapi3.ParameterInPath && schema.Type.Is("string"), seemsID.MatchString(example):
			t.Errorf("%s, %s: the example %s is not one of panelRecords.examples", o, slot, example)
		case example == "" && schema.Type.Is("string") && len(schema.Enum) == 0 && schema.Format == "":
			t.Errorf("%s, %s: the document has no example that says what it names", o, slot)
		}
	}
	_ = replaceTexts(body, "body", func(slot, text string) string {
		if _, isKnown := w.known[text]; isKnown {
			slots = append(slots, slot)
		} else if seemsID.MatchString(text) {
			t.Errorf("%s, %s: the example %s is not one of panelRecords.examples", o, slot, text)
		}
		return text
	})
	return slots
}

// replaceTexts returns JSON with all its texts replaced.
func replaceTexts(node any, at string, replace func(at, text string) string) any {
	switch n := node.(type) {
	case string:
		return replace(at, n)
	case []any:
		replaced := make([]any, len(n))
		for i, element := range n {
			replaced[i] = replaceTexts(element, at, replace)
		}
		return replaced
	case map[string]any:
		replaced := map[string]any{}
		for name, member := range n {
			replaced[name] = replaceTexts(member, at+" "+name, replace)
		}
		return replaced
	}
	return node
}

// probe returns a request about one's own records, with another company's in one place. Of the optional parameters it has only that one.
func (o panelOperation) probe(t *testing.T, body any, slot string, own, others panelRecords) probe {
	t.Helper()
	mine, theirs := own.examples(), others.examples()
	value := func(at, example string) string {
		known := mine
		if at == slot {
			known = theirs
		}
		if text, ok := known[example]; ok {
			return text
		}
		return example
	}
	r := probe{what: slot, path: o.path}
	query := url.Values{}
	for _, p := range o.Parameters {
		at, example := p.Value.In+" "+p.Value.Name, httpapitest.ExampleOf(p.Value)
		if cursor, ok := strings.CutPrefix(slot, at+"="); ok {
			at, example = slot, cursor
		}
		text := value(at, example)
		switch {
		case p.Value.In == openapi3.ParameterInPath:
			r.path = strings.ReplaceAll(r.path, "{"+p.Value.Name+"}", url.PathEscape(text))
		case p.Value.Name == "Idempotency-Key":
			r.headers = append(r.headers, header{p.Value.Name, uuid.NewString()})
		case p.Value.In == openapi3.ParameterInQuery && (p.Value.Required || at == slot):
			query.Set(p.Value.Name, text)
		}
	}
	if len(query) > 0 {
		r.path += "?" + query.Encode()
	}
	switch {
	case o.isForm():
		r.body = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nx\r\n--b--\r\n"
		r.headers = append(r.headers, header{"Content-Type", "multipart/form-data; boundary=b"})
	case body != nil:
		text, err := json.Marshal(replaceTexts(body, "body", value))
		check(t, err)
		r.body = string(text)
	}
	return r
}

// as sends a request in a user's session.
func (w *panelWalk) as(t *testing.T, secret string, o panelOperation, p probe) httpapitest.Response {
	t.Helper()
	w.requests++
	p.headers = append(p.headers, header{"Cookie", "parley-panel=" + secret}, header{"X-CSRF-Token", account.CSRFToken(secret)})
	return send(t, w.panel, o.method, p)
}

// walk calls an operation as a user of one company, with the ids of another one.
func (w *panelWalk) walk(t *testing.T, o panelOperation) {
	t.Helper()
	if o.isOpen() {
		return // its caller has no company
	}
	me := w.newCompany(t)
	for _, body := range o.bodies(t) {
		slots := w.slots(t, o, body)
		for _, slot := range slots {
			for role, secret := range me.secrets {
				w.wantApart(t, o, string(role), func(of panelRecords) httpapitest.Response {
					return w.as(t, secret, o, o.probe(t, body, slot, me, of))
				}, slot)
			}
		}
		for _, slot := range append(slots, "") { // and without any of the optional parameters
			if o.method != http.MethodGet {
				me = w.newCompany(t) // the last request may have removed something
			}
			w.wantOwn(t, o, me, body, slot)
		}
	}
}

// wantApart compares the answer about the other company's record with that about an unknown one.
func (w *panelWalk) wantApart(t *testing.T, o panelOperation, role string, ask func(panelRecords) httpapitest.Response, slot string) {
	t.Helper()
	got, like := ask(w.other), ask(absentRecords())
	if got.Status != like.Status || !isCursor(slot) && withoutRequestID(got) != withoutRequestID(like) {
		t.Errorf("%s by %s, another company's %s: got %d %s, want the same as for an unknown id, %d %s",
			o, role, slot, got.Status, got.Body, like.Status, like.Body)
	}
	if strings.HasPrefix(slot, "path ") && got.Status != http.StatusNotFound && got.Status != http.StatusForbidden {
		t.Errorf("%s by %s, another company's %s: got %d %s, want 404 or 403", o, role, slot, got.Status, got.Body)
	}
	w.wantNoTrace(t, o, slot, got.Body)
}

// wantNoTrace checks that an answer shows nothing of the other company.
func (w *panelWalk) wantNoTrace(t *testing.T, o panelOperation, slot, body string) {
	t.Helper()
	for _, secret := range append(slices.Collect(maps.Values(w.other.examples())), w.other.users...) {
		if strings.Contains(body, secret) {
			t.Errorf("%s, %s: got %s of the other company in %s", o, slot, secret, body)
			return
		}
	}
}

// wantOwn checks that the same request about one's own record succeeds: otherwise the refusals would prove nothing. What it lists or
// streams is the caller's own.
func (w *panelWalk) wantOwn(t *testing.T, o panelOperation, me panelRecords, body any, slot string) {
	t.Helper()
	secret := me.secrets[account.Owner]
	if o.path == "/api/sessions/{id}" {
		secret = me.secrets[account.Agent] // whose session is the example
	}
	p := o.probe(t, body, slot, me, me)
	if o.isEndless() && o.mayOwner() {
		w.wantOwnEvents(t, secret, o, p)
		return
	}
	got := w.as(t, secret, o, p)
	isAllowed := got.Status < 300 || got.Status == http.StatusConflict
	if !o.mayOwner() {
		isAllowed = got.Status == http.StatusForbidden
	}
	if !isAllowed && slot != "" && !strings.HasPrefix(slot, cursorSlot+"=") {
		t.Errorf("%s, one's own %s: got %d %s", o, slot, got.Status, got.Body)
	}
	w.wantNoTrace(t, o, slot, got.Body)
}

// wantOwnEvents replays all events that the streams still have.
func (w *panelWalk) wantOwnEvents(t *testing.T, secret string, o panelOperation, p probe) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, o.method, w.PanelURL+p.path, nil)
	check(t, err)
	req.Header.Set("Cookie", "parley-panel="+secret)
	req.Header.Set("Last-Event-ID", "0-0-0-0")
	resp, err := http.DefaultTransport.RoundTrip(req)
	check(t, err)
	defer resp.Body.Close()
	lines, seen := bufio.NewReader(resp.Body), ""
	for !strings.Contains(seen, "event: ready") && !strings.Contains(seen, "event: reset") {
		line, err := lines.ReadString('\n')
		if err != nil && err != io.EOF {
			t.Fatalf("%s: got %v after %s", o, err, seen)
		}
		seen += line
	}
	w.wantNoTrace(t, o, p.what, seen)
}
