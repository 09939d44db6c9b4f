package panel_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/pkg/service/storage"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
	"github.com/parley-chat/parley/services/panel"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/servicetest"
	"github.com/parley-chat/parley/testkit/storetest"
)

// codes collects the error codes that the tests have received. pkg/bus tests STREAM_NOT_WRITABLE, which needs
// a full disk, and pkg/attachment TOO_MANY_UPLOADS.
var codes = httpapitest.Codes{Except: []string{
	"500 INTERNAL_ERROR", "503 STREAM_NOT_WRITABLE", "429 TOO_MANY_UPLOADS", "503 TOO_MANY_UPLOADS",
}}

func TestMain(m *testing.M) {
	childMain()
	codes.M = m
	goleak.VerifyTestMain(&codes, bustest.LeftByNATS()...)
}

// limit bounds every wait, far above the time that any of them takes.
const limit = 60 * time.Second

const password = "correct horse battery"

// passwordHash is the hash of password, computed once: hashing is slow on purpose.
var passwordHash = func() string {
	hash, err := account.HashPassword(context.Background(), password)
	if err != nil {
		panic(err)
	}
	return hash
}()

// company holds the records of one company.
type company struct {
	id, app, template, visitor, chat, token, endpoint string
	users                                             map[account.Role]account.User
	connection, document                              string
}

// world is engines with two companies, and panels that use them.
type world struct {
	t         *testing.T
	natsURL   string
	storePath string
	bus       *bus.Bus
	store     *engine
	contract  *httpapitest.Document
	base      string // of the first panel
	acme      company
	other     company
	operator  account.User
}

var streams = bus.StreamSettings{MaxAge: time.Hour, MaxBytes: 64 << 20, FilesMaxBytes: 1 << 30, Partitions: 4}

func newWorld(t *testing.T, options ...func(*panel.Config)) *world {
	t.Helper()
	w := &world{t: t, storePath: storetest.Path(t)}
	n := bustest.StartSized(t, streams)
	w.natsURL = n.URL()
	w.bus = bustest.Open(t, w.natsURL)
	w.store = &engine{Store: storetest.OpenAt(t, w.storePath)}
	w.contract = codes.Add(httpapitest.Contract(t, panel.OpenAPI(), "/assets/"))
	w.acme, w.other = w.seed("acme", "1"), w.seed("other", "2")
	w.operator = w.user("operator@example.com", account.Operator, "")
	stop, err := w.bus.RPC().HandleBotTests(testBot)
	w.must(err)
	t.Cleanup(stop)
	stopTools, err := w.bus.RPC().HandleToolLists(listTools)
	w.must(err)
	t.Cleanup(stopTools)
	stop, err = w.bus.RPC().HandleEmbeddings(testEmbedding)
	w.must(err)
	t.Cleanup(stop)
	w.base = w.panel(options...)
	return w
}

// testEmbedding makes embeddings as a processor does: the model "unknown" is unknown, and the key for "locked" is wrong.
func testEmbedding(_ context.Context, r knowledge.EmbeddingRequest) (knowledge.EmbeddingAnswer, error) {
	switch r.Model {
	case "unknown":
		return knowledge.EmbeddingAnswer{Failure: "The server answered 404", OfModel: true}, nil
	case "locked":
		return knowledge.EmbeddingAnswer{Failure: "The server answered 401"}, nil
	}
	model := knowledge.EmbeddingModel("https://models.example.com/v1", r.Model)
	return knowledge.EmbeddingAnswer{Embedding: knowledge.Embedding{Model: model, Vector: []byte{1, 0}}}, nil
}

// testBot answers tests of bots as a processor does: a server whose name begins with "away" does not answer, and the
// model "unknown" is unknown.
func testBot(_ context.Context, of bots.Test) (bots.Call, error) {
	c := bots.Call{ID: chat.NewID(), AppID: of.AppID, ChatID: of.ChatID, MessageID: of.Message.ID, At: time.Now().UTC()}
	c.Kind = of.Settings.Kind
	c.Answer = fmt.Sprintf("answered after %d turns", len(of.Before))
	switch {
	case strings.Contains(of.Settings.Webhook.URL, "//away"):
		c.Failure = &bots.CallFailure{Reason: "WEBHOOK_TIMEOUT", Message: "No answer: nobody is there"}
	case of.Settings.Model.Model == "unknown":
		c.Failure = &bots.CallFailure{Reason: "LLM_NOT_FOUND", Message: "The LLM answered 404"}
	case of.Settings.Model.Model == "locked":
		c.Failure = &bots.CallFailure{Reason: "LLM_UNAUTHORIZED", Message: "The LLM answered 401"}
	}
	return c, nil
}

// listTools answers as a processor whose server has one tool.
func listTools(context.Context, bots.ToolsOf) (bots.ToolList, error) {
	tool := bots.ListedTool{Name: "order.status", Description: "Where an order is", ReadOnly: true}
	return bots.ToolList{Tools: []bots.ListedTool{tool}}, nil
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) user(email string, role account.Role, companyID string) account.User {
	w.t.Helper()
	u := account.NewUser(email, strings.ToUpper(email[:1])+email[1:strings.Index(email, "@")], role, companyID, time.Now())
	u.PasswordHash = passwordHash
	w.must(w.store.CreateUser(w.t.Context(), u))
	return u
}

func (w *world) seed(name, digit string) company {
	w.t.Helper()
	id := func(kind string) string {
		return kind + "0000000-0000-4000-8000-" + strings.Repeat("0", 12-len(digit)) + digit
	}
	c := company{id: id("c"), app: id("a"), template: id("e"), visitor: id("b"), users: map[account.Role]account.User{}}
	ctx := w.t.Context()
	w.must(w.store.PutCompany(ctx, chat.Company{ID: c.id, Name: name}))
	w.must(w.store.PutApplication(ctx, chat.Application{ID: c.app, CompanyID: c.id, Provider: chat.ProviderWidget, Name: name, BotName: "Polly", WidgetConfigs: []byte(`{"own":1}`)}))
	w.must(w.store.PutTemplate(ctx, chat.MessageTemplate{ID: c.template, CompanyID: c.id, Name: "hello", Status: chat.TemplateApproved, Text: "Hello {{username}}"}))
	registered, err := w.store.Register(ctx, store.Registration{Visitor: chat.Visitor{ID: c.visitor, CompanyID: c.id, AppID: c.app, FirstName: "Ada", Email: "ada@" + name + ".example"}})
	v := registered.Visitor
	w.must(err)
	opened, _, err := w.store.OpenChat(ctx, v, store.NewChat{Channel: chat.ChannelWidget, Now: time.Now()})
	w.must(err)
	c.chat = opened.ID
	_, token, err := admin.New(w.store, nil, time.Now).CreateToken(ctx, admin.Actor{Name: "test"}, c.id, "CRM", time.Time{})
	w.must(err)
	c.token, c.endpoint = token.Hash, id("f")
	w.must(w.store.CreateWebhookEndpoint(ctx, webhook.Endpoint{
		ID: c.endpoint, CompanyID: c.id, URL: "https://crm.example/" + name, CreatedAt: time.Now(),
		Secrets: []webhook.Secret{webhook.NewSecret(webhook.HMAC, time.Now())},
	}))
	c.connection = id("9")
	w.must(w.store.PutModelConnection(ctx, bots.Connection{ID: c.connection, CompanyID: c.id, BaseURL: "https://models.example.com/v1", CreatedAt: time.Now()}))
	c.document = id("7")
	w.must(w.store.PutDocument(ctx, knowledge.Document{
		ID: c.document, CompanyID: c.id, Title: name, Format: knowledge.Markdown, Text: "# Returns\n\nOf " + name + ".",
		CreatedAt: time.Now(), UpdatedAt: time.Now(),
	}, nil))
	for _, role := range []account.Role{account.Owner, account.Developer, account.Agent} {
		c.users[role] = w.user(string(role)+"@"+name+".example", role, c.id)
	}
	return c
}

// panel runs another panel and returns its address.
func (w *world) panel(options ...func(*panel.Config)) string {
	w.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	cfg := panel.Config{
		Base:      service.Base{NATS: config.NATS{NATSURL: w.natsURL}, Logger: slog.New(slog.DiscardHandler)},
		Storage:   storage.Config{Store: config.Store{SQLitePath: w.storePath}, SharedStore: w.store},
		Secrets:   config.Secrets{SecretsKeyFile: storetest.KeyFile(w.t)},
		WidgetURL: "http://127.0.0.1:1", ClientURL: "http://127.0.0.1:2", Listener: ln,
		Files:   config.Files{FileStore: config.FileStoreNATS, FileMaxBytes: 25 << 20},
		Uploads: config.Uploads{MaxUploads: 8, UploadTimeout: time.Minute},
	}
	for _, o := range options {
		o(&cfg)
	}
	s, err := panel.New(cfg)
	w.must(err)
	servicetest.Run(w.t, s.Run)
	return "http://" + ln.Addr().String()
}

// browser stores a cookie and the CSRF token, as the app does.
type browser struct {
	w            *world
	base         string
	cookie, csrf string
	device       string // the device's cookie
	client       *http.Client
	streams      http.RoundTripper // for endless responses
}

func (w *world) browser(base string) *browser {
	transport := &http.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &browser{w: w, base: base, csrf: "none", streams: transport, client: &http.Client{Transport: w.contract.Transport(transport), Timeout: limit}}
}

// as signs a user in.
func (w *world) as(u account.User) *browser {
	w.t.Helper()
	b := w.browser(w.base)
	if a := b.signIn(u.Email, password); a.Status != http.StatusOK {
		w.t.Fatalf("%s signs in: got %d %s", u.Email, a.Status, a.Body)
	}
	return b
}

func (b *browser) request(method, path, body string, headers ...string) *http.Request {
	b.w.t.Helper()
	r, err := http.NewRequestWithContext(b.w.t.Context(), method, b.base+path, strings.NewReader(body))
	b.w.must(err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, cookie := range []string{b.cookie, b.device} {
		if cookie != "" {
			r.Header.Add("Cookie", cookie)
		}
	}
	r.Header.Set("X-CSRF-Token", b.csrf)
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return r
}

func (b *browser) do(method, path, body string, headers ...string) httpapitest.Response {
	b.w.t.Helper()
	got, err := httpapitest.Do(b.client, b.request(method, path, body, headers...))
	b.w.must(err)
	for _, c := range (&http.Response{Header: got.Header}).Cookies() {
		if strings.HasSuffix(c.Name, "parley-device") {
			b.device = c.Name + "=" + c.Value
			continue
		}
		b.cookie = c.Name + "=" + c.Value
	}
	got.Body = strings.TrimSpace(got.Body)
	return got
}

// done is do for a request that must succeed.
func (b *browser) done(status int, method, path, body string, headers ...string) httpapitest.Response {
	b.w.t.Helper()
	a := b.do(method, path, body, headers...)
	if a.Status != status {
		b.w.t.Fatalf("%s %s: got %d %s, want %d", method, path, a.Status, a.Body, status)
	}
	return a
}

func (b *browser) signIn(email, password string) httpapitest.Response {
	b.w.t.Helper()
	body, err := json.Marshal(map[string]string{"email": email, "password": password})
	b.w.must(err)
	a := b.do(http.MethodPost, "/api/session", string(body), "X-CSRF-Token", "none")
	if a.Status == http.StatusOK {
		var session struct{ CSRFToken string }
		a.Into(b.w.t, &session)
		b.csrf = session.CSRFToken
	}
	return a
}

// sse is one server-sent event.
type sse struct{ id, name, data string }

// events follows the live updates until the test or the returned stop ends them.
func (b *browser) events(path, lastID string) (events <-chan sse, stop func()) {
	b.w.t.Helper()
	ctx, cancel := context.WithCancel(b.w.t.Context())
	r := b.request(http.MethodGet, path, "", "Last-Event-ID", lastID).WithContext(ctx)
	response, err := (&http.Client{Transport: b.streams}).Do(r)
	b.w.must(err)
	if response.StatusCode != http.StatusOK {
		b.w.t.Fatalf("%s: got %d", path, response.StatusCode)
	}
	b.w.must(b.w.contract.Check(r, response.StatusCode, response.Header, nil))
	out, ended := make(chan sse, 1000), make(chan struct{})
	go func() {
		defer close(ended)
		defer close(out)
		defer response.Body.Close()
		var e sse
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "":
				if e.name != "" {
					b.w.checkEvent(e)
					out <- e
				}
				e = sse{}
			}
		}
	}()
	stop = func() { cancel(); <-ended }
	b.w.t.Cleanup(stop)
	return out, stop
}

// next returns the next event of that name.
func (w *world) next(events <-chan sse, name string) sse {
	w.t.Helper()
	timeout := time.After(limit)
	for {
		select {
		case e, open := <-events:
			if !open {
				w.t.Fatalf("waiting for %s: the stream has ended", name)
			}
			if e.name == name {
				return e
			}
		case <-timeout:
			w.t.Fatalf("waiting for %s: timeout", name)
		}
	}
}
