package widgetapi_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/pkg/service/storage"
	"github.com/parley-chat/parley/pkg/store"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/enginetest"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/servicetest"
	"github.com/parley-chat/parley/testkit/storetest"
)

// codes collects the error codes that the tests have received. Others test the exceptions: pkg/bus
// STREAM_NOT_WRITABLE, which needs a full disk, internal/conversation TOO_MANY_READS, internal/http
// TOO_MANY_DOWNLOADS, and internal/web the codes that depend on whether the widget has been built.
var codes = httpapitest.Codes{Except: []string{
	"500 INTERNAL_ERROR", "503 STREAM_NOT_WRITABLE", "503 TOO_MANY_READS", "429 TOO_MANY_DOWNLOADS", "503 TOO_MANY_DOWNLOADS", "404 NOT_FOUND",
	"503 WIDGET_NOT_BUILT",
}}

func TestMain(m *testing.M) {
	codes.M = m
	goleak.VerifyTestMain(&codes, bustest.LeftByNATS()...)
}

const (
	companyID      = "11111111-1111-4111-8111-111111111111"
	otherCompanyID = "22222222-2222-4222-8222-222222222222"
	appID          = "33333333-3333-4333-8333-333333333333"
	strictApp      = "44444444-4444-4444-8444-444444444444" // requires fields
	phoneApp       = "55555555-5555-4555-8555-555555555555" // has no widget
	otherApp       = "66666666-6666-4666-8666-666666666666" // another company's
	bareApp        = "77777777-7777-4777-8777-777777777777" // without widgetConfigs
	guardedApp     = "88888888-8888-4888-8888-888888888888" // has a list of origins
	unknownID      = "99999999-9999-4999-8999-999999999999"
)

// configs is an operator's JSON, kept byte for byte: spaces, escapes, numbers and unknown keys.
const configs = `{ "greetingMessages":[{"content":"Hello \"you\" \u00e9"},{"content":""},{"content":"How can we help?"}],
  "primaryBackgroundColor":"#1f6feb", "ratio":1.50, "big":12345678901234567890, "own":{"z":1,"a":[null]} }`

// world is a running Widget API on real engines, with applications of two companies.
type world struct {
	t        *testing.T
	engines  *enginetest.Engines
	store    store.Store
	keys     *credential.KeySet
	keysFile string
	base     string
	ops      string
	http     *http.Client
	handler  http.Handler
	contract *httpapitest.Document
	stop     func() // stops the service and waits for it
}

type option func(*widgetapi.Config)

func start(t *testing.T, options ...option) *world {
	t.Helper()
	w := &world{t: t, engines: enginetest.Start(t)}
	w.store = w.engines.Store
	w.makeKeys()
	w.seed()
	w.run(options...)
	return w
}

func (w *world) run(options ...option) {
	w.t.Helper()
	cfg := widgetapi.Config{
		Base: service.Base{
			NATS: config.NATS{NATSURL: w.engines.NATSURL}, Logger: slog.New(slog.DiscardHandler), OpsListener: nettest.Listen(w.t),
		},
		Storage:         storage.Config{Store: config.Store{SQLitePath: w.engines.StorePath}, SharedStore: w.engines.Store},
		Secrets:         config.Secrets{SecretsKeyFile: storetest.KeyFile(w.t)},
		VisitorKeysFile: w.keysFile, VisitorTokens: config.VisitorTokens{VisitorTokenTTL: 720 * time.Hour},
		FileConfig: widgetapi.FileConfig{
			Files: config.Files{FileStore: config.FileStoreNATS, FileMaxBytes: 8 << 20}, Uploads: config.Uploads{MaxUploads: 8, UploadTimeout: 10 * time.Minute},
		},
		Listener: nettest.Listen(w.t),
	}
	for _, o := range options {
		o(&cfg)
	}
	s, err := widgetapi.New(cfg)
	if err != nil {
		w.t.Fatalf("New: %v", err)
	}
	w.handler = s.Handler()
	w.base, w.ops = "http://"+cfg.Listener.Addr().String(), "http://"+cfg.OpsListener.Addr().String()
	w.contract = codes.Add(httpapitest.Contract(w.t, widgetapi.OpenAPI()))
	w.http = w.contract.Client()
	w.stop = servicetest.Run(w.t, s.Run)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) makeKeys() {
	w.t.Helper()
	text, err := credential.GenerateKeySet()
	w.must(err)
	w.keysFile = filepath.Join(w.t.TempDir(), "keys.json")
	w.must(os.WriteFile(w.keysFile, text, 0o600))
	w.keys, err = credential.LoadKeySet(w.keysFile)
	w.must(err)
}

func (w *world) seed() {
	w.t.Helper()
	for _, app := range []chat.Application{
		{ID: appID, CompanyID: companyID, Provider: chat.ProviderWidget, WidgetConfigs: json.RawMessage(configs)},
		{ID: strictApp, CompanyID: companyID, Provider: chat.ProviderWidget, WidgetConfigs: json.RawMessage(`{"requiredFields":["firstName","email","company"]}`)},
		{ID: phoneApp, CompanyID: companyID, Provider: "phone"},
		{ID: otherApp, CompanyID: otherCompanyID, Provider: chat.ProviderWidget},
		{ID: bareApp, CompanyID: companyID, Provider: chat.ProviderWidget},
		{ID: guardedApp, CompanyID: companyID, Provider: chat.ProviderWidget, AllowedOrigins: []string{"https://shop.example.com", "https://*.shop.example.com"}},
	} {
		app.BotName, app.Name = "Bo", "Shop \"Blue\""
		w.must(w.store.PutApplication(w.t.Context(), app))
	}
}

type headers map[string]string

// do sends a request, without empty headers.
func (w *world) do(method, path, body string, header headers) (httpapitest.Response, error) {
	return httpapitest.Send(w.http, method, w.base+path, body, header)
}

func (w *world) post(path, token, body string) httpapitest.Response {
	w.t.Helper()
	header := headers{"Content-Type": "application/json", "Origin": "https://shop.example.com"}
	if token != "" {
		header["Authorization"] = "Bearer " + token
	}
	a, err := w.do(http.MethodPost, path, body, header)
	if err != nil {
		w.t.Fatalf("POST %s: %v", path, err)
	}
	return a
}

func (w *world) get(path, token string) httpapitest.Response {
	w.t.Helper()
	header := headers{}
	if token != "" {
		header["Authorization"] = "Bearer " + token
	}
	a, err := w.do(http.MethodGet, path, "", header)
	if err != nil {
		w.t.Fatalf("GET %s: %v", path, err)
	}
	return a
}

// register registers at an application and returns the token.
func (w *world) register(app, members string) string {
	w.t.Helper()
	got := w.post("/register", "", `{"appId":"`+app+`",`+members+`}`)
	var r struct{ AccessToken string }
	if err := json.Unmarshal([]byte(got.Body), &r); err != nil || got.Status != http.StatusOK || r.AccessToken == "" {
		w.t.Fatalf("POST /register: got %d %s, want 200 and a token", got.Status, got.Body)
	}
	return r.AccessToken
}

func (w *world) claims(token string) credential.VisitorClaims {
	w.t.Helper()
	claims, err := credential.NewVerifier(w.keys, nil).Verify(w.t.Context(), token)
	w.must(err)
	return claims
}

// record is an element of the history.
type record struct {
	ID            string          `json:"id"`
	CreatedAt     time.Time       `json:"createdAt"`
	Type          string          `json:"type"`
	Data          json.RawMessage `json:"data"`
	NameOfSender  string          `json:"nameOfSender"`
	IsFromSupport bool            `json:"isFromSupport"`
}

func (w *world) history(token string) []record {
	w.t.Helper()
	got := w.get("/message", token)
	var records []record
	if err := json.Unmarshal([]byte(got.Body), &records); err != nil || got.Status != http.StatusOK {
		w.t.Fatalf("GET /message: got %d %s, want 200 and an array", got.Status, got.Body)
	}
	return records
}
