package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/service"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/redistest"
	"github.com/parley-chat/parley/testkit/servicetest"
	"github.com/parley-chat/parley/testkit/storetest"
)

// replicas are two Widget APIs on one key file, and two gateways that fetch their keys from one of them each.
type replicas struct {
	t        *testing.T
	appID    string
	keysFile string
	widgets  []string
	gateways []string
	http     *http.Client
}

func startReplicas(t *testing.T) *replicas {
	t.Helper()
	redis, err := redistest.Start("127.0.0.1:0")
	check(t, err)
	t.Cleanup(redis.Stop)
	natsURL, path := bustest.Start(t).URL(), storetest.Path(t)
	bustest.Open(t, natsURL)
	s := storetest.OpenAt(t, path)
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	r := &replicas{
		t: t, appID: uuid.NewString(), keysFile: writeKeyFile(t), http: &http.Client{Transport: transport, Timeout: limit},
	}
	check(t, s.PutApplication(t.Context(), chat.Application{ID: r.appID, CompanyID: uuid.NewString(), Provider: chat.ProviderWidget}))
	nats := config.NATS{NATSURL: natsURL}
	for range 2 {
		ln := listenAnywhere(t)
		r.widgets = append(r.widgets, "http://"+ln.Addr().String())
		widget := widgetConfig(t)
		widget.NATS, widget.Storage.SQLitePath, widget.VisitorKeysFile, widget.Listener = nats, path, r.keysFile, ln
		widget.SecretsKeyFile = storetest.KeyFile(t)
		service, err := widgetapi.New(widget)
		check(t, err)
		servicetest.Run(t, service.Run)
	}
	for i := range 2 {
		ln := listenAnywhere(t)
		r.gateways = append(r.gateways, "http://"+ln.Addr().String())
		gateway := gatewayConfig()
		gateway.NATS, gateway.Redis, gateway.Listener = nats, config.Redis{RedisURL: redis.URL()}, ln
		gateway.JWKSURL = r.widgets[i] + "/.well-known/jwks.json"
		service, err := socketgateway.New(gateway)
		check(t, err)
		servicetest.Run(t, service.Run)
	}
	return r
}

// writeKeyFile creates a key file as the first start of an installation does.
func writeKeyFile(t *testing.T) (path string) {
	t.Helper()
	keys, err := credential.GenerateKeySet()
	check(t, err)
	path = filepath.Join(t.TempDir(), "keys.json")
	check(t, os.WriteFile(path, keys, 0o600))
	return path
}

// widgetConfig is the configuration of a test in one process, without limits: all clients share one address.
// widgetConfig and gatewayConfig have the defaults of an empty environment.
func widgetConfig(t *testing.T) widgetapi.Config {
	t.Helper()
	cfg := widgetapi.Config{Base: service.Base{Logger: slog.New(slog.DiscardHandler)}}
	check(t, config.SetDefaults(&cfg))
	cfg.HTTPAddr, cfg.OpsAddr = "", ""
	cfg.RateAuth, cfg.RateVisitor, cfg.RateAddress, cfg.RateRegister = config.Rate{}, config.Rate{}, config.Rate{}, config.Rate{}
	return cfg
}

func gatewayConfig() socketgateway.Config {
	return socketgateway.Config{
		Base:         service.Base{Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry()},
		PingInterval: 25 * time.Second, PingTimeout: 20 * time.Second,
	}
}

func listenAnywhere(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	return ln
}

func (r *replicas) register(base, email string) (string, error) {
	resp, err := r.http.Post(base+"/register", "application/json", strings.NewReader(`{"appId":"`+r.appID+`","email":"`+email+`"}`))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var body struct{ AccessToken string }
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("POST /register: got %d, %w", resp.StatusCode, err)
	}
	return body.AccessToken, nil
}

// history returns the status of GET /message.
func (r *replicas) history(base, token string) (int, error) {
	req, err := http.NewRequest(http.MethodGet, base+"/message", nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := r.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func (r *replicas) serves(base, kid string) bool {
	resp, err := r.http.Get(base + "/.well-known/jwks.json")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return err == nil && strings.Contains(string(body), kid)
}

// everywhere waits until each Widget API serves the key, or has dropped it.
func (r *replicas) everywhere(t *testing.T, kid string, served bool) {
	t.Helper()
	for _, base := range r.widgets {
		eventually(t, "the keys being read by "+base, func() error {
			if r.serves(base, kid) != served {
				return fmt.Errorf("serving %s: want %v", kid, served)
			}
			return nil
		})
	}
}

// visits registers continuously at one Widget API and uses the tokens, new and earlier ones, at the other.
type visits struct {
	stop   context.CancelFunc
	done   sync.WaitGroup
	rounds atomic.Int64
	faults chan error
}

func (r *replicas) startVisits(before string) *visits {
	ctx, cancel := context.WithCancel(context.Background())
	v := &visits{stop: cancel, faults: make(chan error, 100)}
	for i := range r.widgets {
		v.done.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				token, err := r.register(r.widgets[i], fmt.Sprintf("v%d@example.com", n%5))
				for _, token := range []string{token, before} {
					status := 0
					if err == nil {
						status, err = r.history(r.widgets[1-i], token)
					}
					if err != nil || status != http.StatusOK {
						v.faults <- fmt.Errorf("round %d: got %d, %w", n, status, err)
						return
					}
				}
				v.rounds.Add(1)
			}
		})
	}
	return v
}

// more waits for some rounds of each kind.
func (v *visits) more(t *testing.T) {
	t.Helper()
	enough := v.rounds.Load() + 20
	eventually(t, "visits", func() error {
		select {
		case err := <-v.faults:
			t.Fatalf("a visitor was refused: %v", err)
		default:
		}
		if got := v.rounds.Load(); got < enough {
			return fmt.Errorf("got %d rounds, want %d", got, enough)
		}
		return nil
	})
}

// Visitor keys rotate while visitors write, register and stay connected, and no token is refused; then the
// old key's tokens are refused everywhere.
func TestVisitorKeysRotateUnderVisitors(t *testing.T) {
	t.Parallel()
	r := startReplicas(t)
	before := ""
	eventually(t, "the services", func() (err error) { before, err = r.register(r.widgets[0], "before@example.com"); return err })
	var live []*socket
	for _, gateway := range r.gateways {
		live = append(live, connected(t, gateway, before, "websocket"))
	}
	visits := r.startVisits(before)
	t.Cleanup(func() { visits.stop(); visits.done.Wait() })
	visits.more(t)

	file, err := credential.OpenKeyFile(r.keysFile)
	check(t, err)
	old := file.Keys()[0].ID
	now := time.Now()
	added, err := file.Add(now)
	check(t, err)
	r.everywhere(t, added.ID, true)
	visits.more(t)

	_, err = file.Promote("", now.Add(credential.KeyPropagation), false)
	check(t, err)
	after := ""
	for _, base := range r.widgets {
		eventually(t, "the new key signing at "+base, func() (err error) {
			if after, err = r.register(base, "after@example.com"); err == nil && kidOf(t, after) != added.ID {
				return fmt.Errorf("signed by %s", kidOf(t, after))
			}
			return err
		})
	}
	visits.more(t)
	for _, gateway := range r.gateways {
		for _, token := range []string{before, after} {
			connected(t, gateway, token, "websocket")
		}
	}
	for i, s := range live {
		select {
		case e := <-s.events:
			t.Errorf("socket %d: got %s %s, want it to stay", i, e.Kind, e.Message)
		default:
		}
	}
	visits.stop()
	visits.done.Wait()

	gone, err := file.Retire(now.Add(1000*time.Hour), 720*time.Hour)
	if err != nil || len(gone) != 1 || gone[0].ID != old {
		t.Fatalf("Retire: got %v, %v, want the old key", gone, err)
	}
	r.everywhere(t, old, false)
	for i := range r.widgets {
		eventually(t, "the old token being refused", func() error {
			if status, err := r.history(r.widgets[i], before); err != nil || status != http.StatusUnauthorized {
				return fmt.Errorf("got %d, %w", status, err)
			}
			return nil
		})
		eventually(t, "the old token being refused by the gateway", func() error {
			if e := openSocket(t, r.gateways[i], before, "websocket").await(t, "connect", "connect_error"); e.Message != "Unauthorized" {
				return fmt.Errorf("got %s %s", e.Kind, e.Message)
			}
			return nil
		})
		if status, err := r.history(r.widgets[i], after); err != nil || status != http.StatusOK {
			t.Errorf("the new token: got %d, %v, want 200", status, err)
		}
		connected(t, r.gateways[i], after, "websocket")
	}
}

func kidOf(t *testing.T, token string) string {
	t.Helper()
	head, _, _ := strings.Cut(token, ".")
	var h struct{ Kid string }
	text, err := base64.RawURLEncoding.DecodeString(head)
	check(t, err)
	check(t, json.Unmarshal(text, &h))
	return h.Kid
}
