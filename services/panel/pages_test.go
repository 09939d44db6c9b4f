package panel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
	"github.com/parley-chat/parley/proto-events/subject"
)

// unpaged lists the arrays that the answers to GET requests have without pages, with the reason why each is short.
var unpaged = map[string]string{
	"GET /api/session permissions":              "of a role",
	"GET /api/webhooks types":                   "all types of events",
	"GET /api/streams streams":                  "of the installation",
	"GET /api/streams waiting":                  "at most a hundred",
	"GET /api/applications/{id} allowedOrigins": "bounded where it is set",
	"GET /api/applications/{id} secrets":        "at most five",
	"GET /api/applications/{id}/bot versions":   "at most twenty",
	"GET /api/applications/{id}/bot secrets":    "at most five",
	"GET /api/applications/{id}/bot/usage days": "at most thirty",
	"GET /api/connections/{id}/tools tools":     "as a server lists them, at most 500",
	"GET /api/templates/{id} parameters":        "bounded where it is set",
	"GET /api/trace/{id} events":                "of one message",
	"GET /api/trace/{id} deadLetters":           "of one message",
	"GET /api/visitors/{id}/export chats":       "a file that is written while it is read",
	"GET /api/visitors/{id}/export fileIds":     "a file that is written while it is read",
}

// arraysOf returns the names of the arrays in the answer of an operation; "" for an answer that is an array.
func (o operation) arraysOf() (names []string) {
	ok := o.Responses.Status(http.StatusOK)
	if ok == nil || ok.Value.Content["application/json"] == nil {
		return nil
	}
	schema := ok.Value.Content["application/json"].Schema.Value
	if schema.Type.Includes("array") {
		names = append(names, "")
	}
	for name, member := range schema.Properties {
		if member.Value.Type.Includes("array") {
			names = append(names, name)
		}
	}
	return names
}

// hasPages reports whether an operation has the parameters limit, with a maximum, and cursor, and answers with next.
func (o operation) hasPages() bool {
	var limit *openapi3.Parameter
	for _, p := range o.Parameters {
		if p.Value.In == "query" && p.Value.Name == "limit" {
			limit = p.Value
		}
	}
	answer := o.Responses.Status(http.StatusOK).Value.Content["application/json"].Schema.Value
	bounded := limit != nil && limit.Schema.Value.Max != nil
	return bounded && o.parameter("cursor") && answer.Properties["next"] != nil && slices.Contains(answer.Required, "next")
}

// Every list of the document has pages with a maximum: one without them does not pass this test.
func TestEveryListHasPages(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, o := range operations() {
		if o.method != http.MethodGet {
			continue
		}
		for _, name := range o.arraysOf() {
			key := o.name() + " " + name
			known[key] = true
			if unpaged[key] == "" && !o.hasPages() {
				t.Errorf("%s: got an array without pages, want limit with a maximum, cursor and next", key)
			}
		}
	}
	for key := range unpaged {
		if !known[key] {
			t.Errorf("got the exception %q, want one of the document", key)
		}
	}
}

// listPath returns the path of a list with at least three entries.
func (w *world) listPath(o operation) string {
	ids := map[string]string{"/api/chats/": w.acme.chat, "/api/templates/": w.acme.template, "/api/webhooks/": w.acme.endpoint, "/api/users/": w.operator.ID}
	ids["/api/applications/"] = w.acme.app
	for prefix, id := range ids {
		if strings.HasPrefix(o.path, prefix) {
			return strings.Replace(o.path, "{id}", id, 1)
		}
	}
	return o.path
}

// fillLists stores at least three records of each kind for a company.
func (w *world) fillLists() {
	w.t.Helper()
	ctx, c := w.t.Context(), w.acme
	for i := range 3 {
		id := uuid.NewString()
		w.must(w.store.PutCompany(ctx, chat.Company{ID: id, Name: "company"}))
		w.must(w.store.CreateAccessToken(ctx, chat.AccessToken{Hash: account.HashSecret(id), CompanyID: c.id, Name: "CRM", Prefix: "pat_000000", CreatedAt: time.Now()}))
		w.must(w.store.PutApplication(ctx, chat.Application{ID: id, CompanyID: c.id, Provider: chat.ProviderWidget, WidgetConfigs: []byte(`{}`)}))
		w.must(w.store.PutTemplate(ctx, chat.MessageTemplate{ID: id, CompanyID: c.id, Name: "hello", Status: chat.TemplateDraft, Text: "Hello"}))
		w.must(w.store.AppendAuditEntry(ctx, account.AuditEntry{
			ID: uuid.Must(uuid.NewV7()).String(), CompanyID: c.id, At: time.Now(), Action: "template.update", Target: "template", TargetID: c.template,
		}))
		w.must(w.store.CreateWebhookEndpoint(ctx, webhook.Endpoint{
			ID: id, CompanyID: c.id, URL: "https://crm.example", CreatedAt: time.Now(), Secrets: []webhook.Secret{webhook.NewSecret(webhook.HMAC, time.Now())},
		}))
		w.must(w.store.PutModelConnection(ctx, bots.Connection{ID: id, CompanyID: c.id, BaseURL: "https://models.example", CreatedAt: time.Now()}))
		w.must(w.store.PutDocument(ctx, knowledge.Document{
			ID: id, CompanyID: c.id, Title: "Returns", Format: knowledge.Text, CreatedAt: time.Now(), UpdatedAt: time.Now(),
		}, nil))
		w.must(w.store.AppendBotCall(ctx, bots.Call{
			ID: chat.NewID(), CompanyID: c.id, AppID: c.app, At: time.Now(), Kind: bots.Model,
		}))
		w.failedDelivery(time.Now())
		registered, err := w.store.Register(ctx, store.Registration{Visitor: chat.Visitor{ID: id, CompanyID: c.id, AppID: id, FirstName: "Ada"}})
		v := registered.Visitor
		w.must(err)
		opened, _, err := w.store.OpenChat(ctx, v, store.NewChat{Channel: chat.ChannelWidget, Now: time.Now()})
		w.must(err)
		_, err = w.store.ChangeChat(ctx, opened.ID, store.ChatChange{Rating: chat.Rating{Score: 1 + i, At: time.Now()}})
		w.must(err)
		w.say(c.chat, "hello", time.Now().Add(time.Duration(i)*time.Millisecond))
		w.session(w.operator)
	}
	w.deadLetters(3)
}

func (w *world) say(chatID, text string, at time.Time) {
	w.t.Helper()
	data, err := json.Marshal(map[string]string{"text": text})
	w.must(err)
	w.must(w.store.AppendMessage(w.t.Context(), chatID, chat.Message{ID: chat.NewID(), CreatedAt: at, Type: chat.Text, Data: data, NameOfSender: "Ada"}))
}

// failedDelivery stores a failed delivery to the company's endpoint and returns its id.
func (w *world) failedDelivery(at time.Time) string {
	w.t.Helper()
	d := webhook.Delivery{
		ID: uuid.NewString(), CompanyID: w.acme.id, EndpointID: w.acme.endpoint, EventType: webhook.TypeTest, CreatedAt: at, Status: webhook.Failed,
	}
	_, err := w.store.InsertWebhookDelivery(w.t.Context(), d)
	w.must(err)
	return d.ID
}

// deadLetters publishes dead letters of the recorder.
func (w *world) deadLetters(n int) {
	w.t.Helper()
	nc, err := nats.Connect(w.natsURL)
	w.must(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	w.must(err)
	for range n {
		_, err := js.PublishMsg(w.t.Context(), &nats.Msg{
			Subject: subject.DeadLetter(subject.Inbound, "recorder"), Data: []byte("{}"),
			Header: nats.Header{bus.HeaderDeadStream: {subject.Inbound}, bus.HeaderDeadConsumer: {"recorder"}, bus.HeaderDeadReason: {"doomed"}},
		})
		w.must(err)
	}
}

// A list in pages of one entry has the entries of the whole list, in its order.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	w.fillLists()
	operator := w.session(w.operator)
	ofCompany := url.Values{"companyId": {w.acme.id}}
	for _, o := range operations() {
		if o.method != http.MethodGet || len(o.arraysOf()) == 0 || !o.hasPages() {
			continue
		}
		member := slices.DeleteFunc(o.arraysOf(), func(name string) bool { return unpaged[o.name()+" "+name] != "" })[0]
		read := func(limit, cursor string) (rows []json.RawMessage, next string) {
			query := url.Values{"limit": {limit}}
			if o.parameter("companyId") {
				query = url.Values{"limit": {limit}, "companyId": ofCompany["companyId"]}
			}
			if cursor != "" {
				query.Set("cursor", cursor)
			}
			answer := map[string]json.RawMessage{}
			operator.done(http.StatusOK, http.MethodGet, w.listPath(o)+"?"+query.Encode(), "").Into(t, &answer)
			w.must(json.Unmarshal(answer[member], &rows))
			w.must(json.Unmarshal(answer["next"], &next))
			return rows, next
		}
		whole, next := read("200", "")
		if len(whole) < 3 || next != "" {
			t.Errorf("%s: got %d entries and next %q, want at least 3 and none", o.name(), len(whole), next)
		}
		var walked []json.RawMessage
		for cursor := ""; ; cursor = next {
			var page []json.RawMessage
			page, next = read("1", cursor)
			if o.path == "/api/chats/{id}/messages" { // from the end, each page ascending
				walked = slices.Concat(page, walked)
			} else {
				walked = append(walked, page...)
			}
			if len(page) > 2 || len(walked) > len(whole) || next == "" { // the last page of the agents also has the operator
				break
			}
		}
		if !slices.EqualFunc(ids(walked), ids(whole), func(a, b string) bool { return a == b }) {
			t.Errorf("%s in pages of one: got %v, want %v", o.name(), ids(walked), ids(whole))
		}
		for _, wrong := range []string{"limit=0", "limit=201", "limit=many", "cursor=" + strings.Repeat("x", 129), "cursor=%ff"} {
			a := operator.done(http.StatusBadRequest, http.MethodGet, w.listPath(o)+"?"+ofCompany.Encode()+"&"+wrong, "")
			if field, _, _ := strings.Cut(wrong, "="); !strings.Contains(a.Body, `"field":"`+field+`"`) {
				t.Errorf("%s with %s: got %s, want a fault of %s", o.name(), wrong, a.Body, field)
			}
		}
	}
}

// ids returns what identifies the entries of a list.
func ids(rows []json.RawMessage) (all []string) {
	for _, row := range rows {
		var v struct {
			ID, AppID string
			Sequence  int
		}
		_ = json.Unmarshal(row, &v)
		all = append(all, fmt.Sprint(v.ID, v.AppID, v.Sequence))
	}
	return all
}

// A page of large records is short: it has a megabyte and one record more, whatever its limit.
func TestPagesHaveFewBytes(t *testing.T) {
	t.Parallel()
	const stored, most = 30, 2<<20 + 64<<10
	w := newWorld(t, unlimited)
	configs, err := json.Marshal(map[string]string{"custom": strings.Repeat("x", 1<<20-1000)})
	w.must(err)
	for range stored {
		w.must(w.store.PutApplication(t.Context(), chat.Application{
			ID: uuid.NewString(), CompanyID: w.acme.id, Provider: chat.ProviderWidget, WidgetConfigs: configs,
		}))
	}
	developer := w.session(w.acme.users[account.Developer])
	seen := 0
	for cursor := ""; ; {
		a := developer.done(http.StatusOK, http.MethodGet, "/api/applications?limit=200&cursor="+cursor, "")
		if len(a.Body) > most {
			t.Fatalf("got a page of %d bytes, want at most %d", len(a.Body), most)
		}
		var page struct {
			Applications []struct{ ID string }
			Next         string
		}
		a.Into(t, &page)
		seen += len(page.Applications)
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if seen != stored+1 { // and the company's own
		t.Errorf("got %d applications on all pages, want %d", seen, stored+1)
	}
}

// So is a page of the inbox, whose chats have long last messages.
func TestPagesOfTheInboxHaveFewBytes(t *testing.T) {
	t.Parallel()
	const stored, most = 150, 2<<20 + 64<<10
	w := newWorld(t, unlimited)
	data := []byte(`{"text":"x","own":"` + strings.Repeat("x", 60<<10) + `"}`)
	for range stored {
		registered, err := w.store.Register(t.Context(), store.Registration{Visitor: chat.Visitor{ID: chat.NewID(), CompanyID: w.acme.id, AppID: w.acme.app}})
		v := registered.Visitor
		w.must(err)
		opened, _, err := w.store.OpenChat(t.Context(), v, store.NewChat{Channel: chat.ChannelWidget, Now: time.Now()})
		w.must(err)
		w.must(w.store.AppendMessage(t.Context(), opened.ID, chat.Message{
			ID: chat.NewID(), CreatedAt: time.Now().UTC(), Type: chat.Text, Data: data, IsFromSupport: true,
		}))
	}
	agent, seen := w.session(w.acme.users[account.Agent]), 0
	for cursor := ""; ; {
		a := agent.done(http.StatusOK, http.MethodGet, "/api/chats?limit=200&cursor="+cursor, "")
		if len(a.Body) > most {
			t.Fatalf("got a page of %d bytes, want at most %d", len(a.Body), most)
		}
		var page struct {
			Chats []struct{ ID string }
			Next  string
		}
		a.Into(t, &page)
		seen += len(page.Chats)
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if seen != stored+1 { // and the company's own
		t.Errorf("got %d chats on all pages, want %d", seen, stored+1)
	}
}

// A search examines so many visitors in a request: its page may be empty and have a next one.
func TestASearchHasPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	var stored []store.Record
	for n := range 2 * store.MaxExamined {
		id := fmt.Sprintf("ffffffff-0000-4000-8000-%012d", n)
		v := chat.Visitor{ID: id, CompanyID: w.acme.id, AppID: w.acme.app, FirstName: "Grace"}
		stored = append(stored, store.Record{Key: id, Value: v})
	}
	w.must(w.store.WriteRecords(t.Context(), "visitors", stored))
	last := stored[len(stored)-1].Key
	w.must(w.store.WriteRecords(t.Context(), "visitors", []store.Record{
		{Key: last, Value: chat.Visitor{ID: last, CompanyID: w.acme.id, AppID: w.acme.app, FirstName: "Unmistakable"}},
	}))
	owner := w.session(w.acme.users[account.Owner])
	var sizes []int
	for cursor := ""; len(sizes) < 10; {
		var page struct {
			Visitors []struct{ ID string }
			Next     string
		}
		owner.done(http.StatusOK, http.MethodGet, "/api/visitors?q=unmistakable&cursor="+cursor, "").Into(t, &page)
		sizes = append(sizes, len(page.Visitors))
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if !slices.Equal(sizes, []int{0, 0, 1}) { // the company has a visitor of its own before them
		t.Errorf("got pages of %v visitors, want two empty ones and one with the match", sizes)
	}
}

// A replay takes a page of the deliveries; its next leads to the rest.
func TestReplayHasPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	developer := w.session(w.acme.users[account.Developer])
	var want []string
	for i := range admin.MaxReplay + 1 {
		want = append(want, w.failedDelivery(time.Now().Add(time.Duration(i)*time.Millisecond)))
	}
	replay := func(body string) (replayed []string, next string) {
		var answer struct {
			DeliveryIDs []string
			Next        string
		}
		developer.done(http.StatusOK, http.MethodPost, "/api/webhooks/"+w.acme.endpoint+"/replay", body).Into(t, &answer)
		return answer.DeliveryIDs, answer.Next
	}
	newest, next := replay(`{}`)
	if !slices.Equal(newest, want[1:]) || next == "" {
		t.Fatalf("got %d deliveries and next %q, want the %d newest, oldest first, and a next page", len(newest), next, admin.MaxReplay)
	}
	oldest, next := replay(`{"cursor":"` + next + `"}`)
	if !slices.Equal(oldest, want[:1]) || next != "" {
		t.Errorf("got %v and next %q, want the oldest alone and no next page", oldest, next)
	}
	a := developer.done(http.StatusBadRequest, http.MethodPost, "/api/webhooks/"+w.acme.endpoint+"/replay", `{"cursor":"`+missing+`"}`)
	if !strings.Contains(a.Body, `"field":"cursor"`) {
		t.Errorf("an unknown cursor: got %s, want a fault of cursor", a.Body)
	}
}

// A redrive takes a page of the dead letters; its next leads to the rest.
func TestRedriveHasPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	const most = 1000
	w.deadLetters(most + 1)
	operator := w.session(w.operator)
	redrive := func(cursor string) (count int, next string) {
		var answer struct {
			Results []struct{ Sequence int }
			Next    string
		}
		operator.done(http.StatusOK, http.MethodPost, "/api/dead-letters/redrive", `{"dryRun":true,"cursor":"`+cursor+`"}`).Into(t, &answer)
		return len(answer.Results), answer.Next
	}
	count, next := redrive("")
	if count != most || next == "" {
		t.Fatalf("got %d results and next %q, want %d and a next page", count, next, most)
	}
	if count, next = redrive(next); count != 1 || next != "" {
		t.Errorf("the second page: got %d results and next %q, want 1 and none", count, next)
	}
	operator.done(http.StatusBadRequest, http.MethodGet, "/api/dead-letters?cursor=18446744073709551615", "")
}

// An export is written while the history is read: it holds one page of messages at a time.
func TestExportIsWrittenInPages(t *testing.T) {
	t.Parallel()
	const messages = 450
	w := newWorld(t, unlimited)
	start := time.Now()
	for i := range messages {
		w.say(w.acme.chat, strings.Repeat("x", 1000), start.Add(time.Duration(i)*time.Millisecond))
	}
	pages, largest := 0, 0
	w.store.history.Store(new(func(page []chat.Message) error {
		pages, largest = pages+1, max(largest, len(page))
		return nil
	}))
	owner := w.session(w.acme.users[account.Owner])
	path := "/api/visitors/" + w.acme.visitor + "/export"
	var export struct {
		Chats []struct {
			Messages []struct{ CreatedAt time.Time }
		}
		FileIDs []string
	}
	owner.done(http.StatusOK, http.MethodGet, path, "").Into(t, &export)
	got := export.Chats[0].Messages
	if len(got) != messages || !got[0].CreatedAt.After(got[messages-1].CreatedAt) || export.FileIDs == nil {
		t.Errorf("got %d messages and the files %v, want %d messages, newest first", len(got), export.FileIDs, messages)
	}
	if pages < 5 || largest > 100 {
		t.Errorf("got %d pages of up to %d messages, want pages of at most 100", pages, largest)
	}

	pages = 0
	w.store.history.Store(new(func([]chat.Message) error {
		if pages++; pages == 3 {
			return errors.New("the database fails")
		}
		return nil
	}))
	resp, err := http.DefaultClient.Do(owner.request(http.MethodGet, path, ""))
	w.must(err)
	defer resp.Body.Close()
	part, err := io.ReadAll(resp.Body)
	if err == nil || len(part) == 0 {
		t.Errorf("an export whose third page fails: got %d bytes and %v, want a part and an aborted connection", len(part), err)
	}
}
