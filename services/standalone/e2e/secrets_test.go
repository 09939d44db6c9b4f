package e2e

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/pkg/service/storage"
	"github.com/parley-chat/parley/pkg/store"
	clientapi "github.com/parley-chat/parley/services/client-api"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/logtest"
	"github.com/parley-chat/parley/testkit/redistest"
	"github.com/parley-chat/parley/testkit/servicetest"
	"github.com/parley-chat/parley/testkit/storetest"
)

// A session and its errors, with secrets that are recognisable in any output.
func TestSecretsAreNotSeen(t *testing.T) {
	t.Parallel()
	const urlSecret = "S3CR3T-of-a-URL"
	// all is all output that could leak a secret: the debug log of every service, and every error body.
	all, registry := new(logtest.Buffer), prometheus.NewRegistry()
	log := ops.NewLogger(all, "secrets", slog.LevelDebug)
	redis, err := redistest.Start("127.0.0.1:0")
	check(t, err)
	t.Cleanup(redis.Stop)
	natsURL, path := bustest.Start(t).URL(), storetest.Path(t)
	bustest.Open(t, natsURL)
	s := storetest.OpenAt(t, path)
	company := chat.Company{ID: uuid.NewString(), Name: "Secretive"}
	app := chat.Application{ID: uuid.NewString(), CompanyID: company.ID, Provider: chat.ProviderWidget, AllowedOrigins: []string{"https://shop.example.com"}}
	check(t, s.PutCompany(t.Context(), company))
	check(t, s.PutApplication(t.Context(), app))
	identity := credential.NewIdentitySecret()
	err = s.ChangeApplication(t.Context(), app.ID, store.ApplicationChange{Secrets: store.RotateSecret(identity, time.Now(), 0)})
	check(t, err)
	check(t, s.ChangeApplication(t.Context(), app.ID, store.ApplicationChange{Verification: chat.VerificationRequired}))
	live, revoked := putToken(t, s, company.ID, time.Time{}), putToken(t, s, company.ID, time.Now().Add(-time.Hour))

	nats := config.NATS{NATSURL: strings.Replace(natsURL, "://", "://"+urlSecret+"@", 1)}
	clientLn, widgetLn, gatewayLn := listenAnywhere(t), listenAnywhere(t), listenAnywhere(t)
	client, err := clientapi.New(clientapi.Config{
		Base: service.Base{NATS: nats, Logger: log, Registerer: registry}, Storage: storage.Config{Store: config.Store{SQLitePath: path}}, Listener: clientLn,
	})
	check(t, err)
	widgetCfg := widgetConfig(t)
	widgetCfg.NATS, widgetCfg.Storage.SQLitePath, widgetCfg.VisitorKeysFile, widgetCfg.Listener = nats, path, writeKeyFile(t), widgetLn
	widgetCfg.SecretsKeyFile = storetest.KeyFile(t)
	widgetCfg.Logger, widgetCfg.Registerer = log, prometheus.NewRegistry()
	widget, err := widgetapi.New(widgetCfg)
	check(t, err)
	gatewayCfg := gatewayConfig()
	gatewayCfg.NATS, gatewayCfg.Redis, gatewayCfg.Listener, gatewayCfg.Logger = nats, config.Redis{RedisURL: redis.URL()}, gatewayLn, log
	gatewayCfg.JWKSURL = "http://" + widgetLn.Addr().String() + "/.well-known/jwks.json"
	gateway, err := socketgateway.New(gatewayCfg)
	check(t, err)
	servicetest.Run(t, client.Run)
	servicetest.Run(t, widget.Run)
	servicetest.Run(t, gateway.Run)
	clientURL, widgetURL, gatewayURL := "http://"+clientLn.Addr().String(), "http://"+widgetLn.Addr().String(), "http://"+gatewayLn.Addr().String()

	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	web := &http.Client{Transport: transport, Timeout: limit}
	ask := func(method, url, body string, headers ...header) (int, string) {
		t.Helper()
		req, err := http.NewRequest(method, url, strings.NewReader(body))
		check(t, err)
		req.Header.Set("Content-Type", "application/json")
		for _, h := range headers {
			req.Header.Set(h.name, h.value)
		}
		resp, err := web.Do(req)
		check(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		check(t, err)
		if resp.StatusCode >= 400 {
			fmt.Fprintf(all, "%s %s\n", resp.Status, text)
		}
		return resp.StatusCode, string(text)
	}
	userHash, wrongHash := credential.UserHash(identity, "u1"), credential.UserHash(identity, "u2")
	form := func(hash string) string { return `{"appId":"` + app.ID + `","userId":"u1","userHash":"` + hash + `"}` }
	visitorToken := ""
	eventually(t, "registering", func() error {
		status, body := ask(http.MethodPost, widgetURL+"/register", form(userHash))
		if status != http.StatusOK {
			return fmt.Errorf("got %d %s", status, body)
		}
		visitorToken = strings.TrimSuffix(strings.TrimPrefix(body, `{"accessToken":"`), `"}`)
		return nil
	})
	idempotencyKey := header{"Idempotency-Key", "S3CR3T-" + uuid.NewString()}
	broken := visitorToken[:len(visitorToken)-4] + "AAAA"
	foreign := header{"Origin", "https://evil.example"}
	for _, body := range []string{form(wrongHash), form(userHash) + "{}", `{"userHash":"` + userHash + `"}`, `{"userHash":{"x":"` + userHash + `"}}`, form(userHash + `","userHash":"` + userHash)} {
		ask(http.MethodPost, widgetURL+"/register", body)
		ask(http.MethodPost, widgetURL+"/register", body, foreign)
	}
	ask(http.MethodPost, widgetURL+"/register", form(userHash), foreign)
	for _, token := range []string{visitorToken, broken, live, visitorToken + visitorToken} {
		for _, headers := range [][]header{{bearer(token), idempotencyKey}, {bearer(token), foreign}, {{"Authorization", token}}} {
			ask(http.MethodGet, widgetURL+"/message", "", headers...)
			ask(http.MethodGet, widgetURL+"/message?before="+token, "", headers...)
			ask(http.MethodPost, widgetURL+"/message", `{"type":"TEXT","data":{"text":"x"}}`, headers...)
			ask(http.MethodPost, widgetURL+"/message", `{"type":"TEXT","data":{}}`, headers...)
		}
	}
	for _, token := range []string{live, revoked, visitorToken, live + "x"} {
		for _, path := range []string{"/message/send", "/push-message", "/message/" + uuid.NewString()} {
			method := http.MethodPost
			if strings.Count(path, "-") > 3 {
				method = http.MethodGet
			}
			ask(method, clientURL+path, `{"chatId":"`+uuid.NewString()+`","type":"TEXT","data":{"text":"x"}}`, accessToken(token), idempotencyKey)
			ask(method, clientURL+path, `{`, accessToken(token), idempotencyKey)
		}
	}
	connected(t, gatewayURL, visitorToken, "websocket")
	connected(t, gatewayURL, visitorToken, "polling")
	openSocket(t, gatewayURL, broken, "websocket").await(t, "connect_error")

	for name, settings := range map[string]string{"REDIS_URL": "redis://:" + urlSecret + "@host:port", "redis": "redis://:" + urlSecret + "@127.0.0.1:1/x"} {
		wrong := gatewayCfg
		wrong.RedisURL, wrong.Registerer, wrong.Listener = settings, prometheus.NewRegistry(), nil
		g, err := socketgateway.New(wrong)
		if err == nil {
			err = g.Run(t.Context())
		}
		if err == nil {
			t.Errorf("%s: got no error for a wrong URL", name)
		}
		fmt.Fprintln(all, err)
	}
	scrape(t, all, registry, widgetCfg.Registerer.(*prometheus.Registry), gatewayCfg.Registerer.(*prometheus.Registry))

	text := all.String()
	if !strings.Contains(text, `"level":"DEBUG"`) && !strings.Contains(text, "level=DEBUG") || strings.Count(text, "UNAUTHORIZED") < 5 ||
		strings.Count(text, "ORIGIN_NOT_ALLOWED") < 3 || strings.Count(text, "IDENTITY_NOT_VERIFIED") < 1 || !strings.Contains(text, "parley_cache_requests_total") {
		t.Fatalf("got %d bytes, want the debug log, the errors and the metrics:\n%.3000s", len(text), text)
	}
	for name, secret := range map[string]string{
		"access token": live, "revoked access token": revoked, "visitor token": visitorToken, "visitor token's signature": visitorToken[strings.LastIndexByte(visitorToken, '.'):],
		"broken visitor token": broken, "user hash": userHash, "wrong user hash": wrongHash, "identity secret": string(identity),
		"idempotency key": idempotencyKey.value, "URL's credentials": urlSecret,
	} {
		if at := strings.Index(text, secret); at >= 0 {
			t.Errorf("the %s can be seen: ...%s...", name, text[max(0, at-300):min(len(text), at+100)])
		}
	}
}

// scrape adds the metrics.
func scrape(t *testing.T, to io.Writer, registries ...*prometheus.Registry) {
	t.Helper()
	for _, registry := range registries {
		w := &recorder{header: http.Header{}, Writer: to}
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, &http.Request{Header: http.Header{}})
	}
}

type recorder struct {
	io.Writer
	header http.Header
}

func (r *recorder) Header() http.Header { return r.header }
func (r *recorder) WriteHeader(int)     {}
