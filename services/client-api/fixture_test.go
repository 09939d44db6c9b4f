package clientapi_test

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/pkg/service/storage"
	"github.com/parley-chat/parley/pkg/store"
	clientapi "github.com/parley-chat/parley/services/client-api"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/enginetest"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/servicetest"
)

// codes collects the error codes that the tests have received. pkg/bus tests STREAM_NOT_WRITABLE, which needs
// a full disk.
var codes = httpapitest.Codes{Except: []string{"500 INTERNAL_ERROR", "503 STREAM_NOT_WRITABLE"}}

func TestMain(m *testing.M) {
	codes.M = m
	goleak.VerifyTestMain(&codes, bustest.LeftByNATS()...)
}

const (
	companyID      = "11111111-1111-4111-8111-111111111111"
	otherCompanyID = "22222222-2222-4222-8222-222222222222"
	appID          = "33333333-3333-4333-8333-333333333333"
	templateID     = "44444444-4444-4444-8444-444444444444"
	draftTemplate  = "55555555-5555-4555-8555-555555555555"
	otherTemplate  = "66666666-6666-4666-8666-666666666666"
	orderTemplate  = "77777777-7777-4777-8777-777777777777" // has a parameter without a default
	unknownID      = "99999999-9999-4999-8999-999999999999"
)

// world is a running Client API on real engines, with two companies.
type world struct {
	t        *testing.T
	engines  *enginetest.Engines
	store    store.Store
	base     string
	ops      string
	http     *http.Client
	handler  http.Handler
	contract *httpapitest.Document
	token    string // of the company
	other    string // of the other company
	chatID   string // an open chat of the company, whose window has just started
	visitor  chat.Visitor
	stop     func() // stops the service and waits for it
}

type option func(*clientapi.Config)

func start(t *testing.T, options ...option) *world {
	t.Helper()
	w := &world{t: t, engines: enginetest.Start(t)}
	w.store = w.engines.Store
	for _, id := range []string{companyID, otherCompanyID} {
		w.must(w.store.PutCompany(t.Context(), chat.Company{ID: id, Name: "Acme"}))
	}
	w.token, w.other = w.addToken(companyID), w.addToken(otherCompanyID)
	w.seed()
	w.run(options...)
	return w
}

func (w *world) run(options ...option) {
	w.t.Helper()
	cfg := clientapi.Config{
		Base: service.Base{
			NATS: config.NATS{NATSURL: w.engines.NATSURL}, Logger: slog.New(slog.DiscardHandler), OpsListener: nettest.Listen(w.t),
		},
		Storage:  storage.Config{Store: config.Store{SQLitePath: w.engines.StorePath}, SharedStore: w.engines.Store},
		Listener: nettest.Listen(w.t),
		Phones:   config.Phones{PhoneConnector: true},
	}
	for _, o := range options {
		o(&cfg)
	}
	s, err := clientapi.New(cfg)
	if err != nil {
		w.t.Fatalf("New: %v", err)
	}
	w.handler = s.Handler()
	w.base, w.ops = "http://"+cfg.Listener.Addr().String(), "http://"+cfg.OpsListener.Addr().String()
	w.contract = codes.Add(httpapitest.Contract(w.t, clientapi.OpenAPI()))
	w.http = w.contract.Client()
	w.stop = servicetest.Run(w.t, s.Run)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// addToken gives a company an access token.
func (w *world) addToken(company string) string {
	w.t.Helper()
	secret, token := credential.NewAccessToken(company, "test", time.Now(), time.Time{})
	w.must(w.store.CreateAccessToken(w.t.Context(), token))
	return secret
}

func (w *world) seed() {
	w.t.Helper()
	ctx := w.t.Context()
	w.must(w.store.PutApplication(ctx, chat.Application{ID: appID, CompanyID: companyID, Provider: chat.ProviderWidget, BotName: "Bo", Name: "Shop"}))
	for id, template := range map[string]chat.MessageTemplate{
		templateID:    {CompanyID: companyID, Status: chat.TemplateApproved},
		draftTemplate: {CompanyID: companyID, Status: "draft"},
		otherTemplate: {CompanyID: otherCompanyID, Status: chat.TemplateApproved},
	} {
		template.ID, template.Name, template.Text = id, "hello", "Hello {{username}}. {{order}}"
		w.must(w.store.PutTemplate(ctx, template))
	}
	w.must(w.store.PutTemplate(ctx, chat.MessageTemplate{
		ID: orderTemplate, CompanyID: companyID, Name: "order", Status: chat.TemplateApproved, Text: "{{order}} {{day}}",
		Parameters: []chat.TemplateParameter{{Name: "order"}, {Name: "day", Default: "today"}},
	}))
	w.visitor, w.chatID = w.openChat("a@example.com", time.Now())
}

// openChat creates a visitor with a chat whose window started at began.
func (w *world) openChat(email string, began time.Time) (chat.Visitor, string) {
	w.t.Helper()
	ctx := w.t.Context()
	registered, err := w.store.Register(ctx, store.Registration{Identities: []store.Identity{{Scope: appID, Kind: store.KindEmail, Value: email}}, Visitor: chat.Visitor{CompanyID: companyID, AppID: appID, Email: email}})
	v := registered.Visitor
	w.must(err)
	c, _, err := w.store.OpenChat(ctx, v, store.NewChat{Channel: chat.ChannelWidget, Now: began})
	w.must(err)
	return v, c.ID
}

type headers map[string]string

// do sends a request, without empty headers.
func (w *world) do(method, path, body string, header headers) (httpapitest.Response, error) {
	return httpapitest.Send(w.http, method, w.base+path, body, header)
}

// post sends JSON with the company's token.
func (w *world) post(path, body string) httpapitest.Response {
	w.t.Helper()
	return w.postAs(w.token, path, body)
}

func (w *world) postAs(token, path, body string) httpapitest.Response {
	w.t.Helper()
	a, err := w.do(http.MethodPost, path, body, headers{"x-access-token": token, "Content-Type": "application/json"})
	if err != nil {
		w.t.Fatalf("POST %s: %v", path, err)
	}
	return a
}

// getAs sends a GET with a token.
func (w *world) getAs(token, path string) httpapitest.Response {
	w.t.Helper()
	a, err := w.do(http.MethodGet, path, "", headers{"x-access-token": token})
	if err != nil {
		w.t.Fatalf("GET %s: %v", path, err)
	}
	return a
}

func (w *world) send(data string) httpapitest.Response {
	w.t.Helper()
	return w.post("/message/send", sendBody("TEXT", data, w.chatID))
}

func sendBody(kind, data, chatID string) string {
	return `{"type":"` + kind + `","data":` + data + `,"chatId":"` + chatID + `"}`
}

// openBus returns the test's own bus, to publish invalidations.
func (w *world) openBus() *bus.Bus { w.t.Helper(); return bustest.Open(w.t, w.engines.NATSURL) }
