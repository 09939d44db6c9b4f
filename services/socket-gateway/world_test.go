package socketgateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/service"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
	"github.com/parley-chat/parley/services/socket-gateway/internal/legacy"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/redistest"
	"github.com/parley-chat/parley/testkit/servicetest"
)

// runAsGateway makes this test's binary a gateway, which reads its configuration from the environment.
const runAsGateway = "PARLEY_TEST_RUN_AS_GATEWAY"

// childBounds are the bounds of such a gateway that no variable sets; it reads them from [boundsVariable].
type childBounds struct {
	AddressRate               addressRate // zero: no limit, as all clients of a test have one address
	MaxPendingPerAddress      int         // zero: no limit
	MaxFrameRate              int
	PingInterval, PingTimeout time.Duration
}

// addressRate is a [config.Rate] that encodes to JSON.
type addressRate struct {
	Count int
	Per   time.Duration
}

// boundsVariable has the childBounds in JSON.
const boundsVariable = "PARLEY_TEST_GATEWAY_BOUNDS"

// defaultBounds are the gateway's own, without those of an address.
func defaultBounds() childBounds {
	return childBounds{MaxFrameRate: 100, PingInterval: 25 * time.Second, PingTimeout: 20 * time.Second}
}

// applyBounds reads the bounds into cfg.
func applyBounds(cfg *socketgateway.Config, text string) error {
	var b childBounds
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return err
	}
	cfg.AddressRate = config.Rate(b.AddressRate)
	cfg.MaxPendingPerAddress, cfg.MaxFrameRate = b.MaxPendingPerAddress, b.MaxFrameRate
	cfg.PingInterval, cfg.PingTimeout = b.PingInterval, b.PingTimeout
	return nil
}

func TestMain(m *testing.M) {
	logging.Disable()
	if len(os.Args) == 2 && os.Args[1] == legacy.Command {
		os.Exit(legacy.Main())
	}
	if os.Getenv(runAsGateway) != "" {
		os.Exit(ops.Main("socket-gateway", runGateway))
	}
	if url := os.Getenv(runAsForger); url != "" {
		forgerMain(url)
		return
	}
	goleak.VerifyTestMain(m, bustest.LeftByNATS()...)
}

func runGateway(ctx context.Context, log *slog.Logger) error {
	cfg, err := config.Load[socketgateway.Config]()
	if err != nil {
		return err
	}
	if err := applyBounds(&cfg, os.Getenv(boundsVariable)); err != nil {
		return err
	}
	cfg.Logger, cfg.Registerer = log, prometheus.NewRegistry()
	s, err := socketgateway.New(cfg)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// world is a NATS, a Redis, the keys of the visitor tokens, and the gateways on them.
type world struct {
	t        *testing.T
	natsURL  string
	redisURL string
	bus      *bus.Bus
	keys     *credential.KeySet
}

func newWorld(t *testing.T) *world {
	t.Helper()
	redis, err := redistest.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Stop)
	return newWorldOn(t, redis.URL())
}

func newWorldOn(t *testing.T, redisURL string) *world {
	t.Helper()
	return newWorldWith(t, bustest.Start(t).URL(), redisURL)
}

func newWorldWith(t *testing.T, natsURL, redisURL string) *world {
	t.Helper()
	w := &world{t: t, natsURL: natsURL, redisURL: redisURL, keys: newKeys(t)}
	w.bus = bustest.Open(t, w.natsURL)
	return w
}

func newKeys(t *testing.T) *credential.KeySet {
	t.Helper()
	file, err := credential.GenerateKeySet()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := credential.ParseKeySet(file)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// gateway is one gateway that runs.
type gateway struct {
	url  string
	ops  string
	stop func()
}

func (w *world) config() socketgateway.Config {
	return socketgateway.Config{
		Base: service.Base{
			NATS: config.NATS{NATSURL: w.natsURL}, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(), OpsListener: nettest.Listen(w.t),
		},
		Redis:     config.Redis{RedisURL: w.redisURL},
		KeySource: w.keys,
		Listener:  nettest.Listen(w.t),
	}
}

// start runs a gateway until its stop is called or the test ends.
func (w *world) start(change ...func(*socketgateway.Config)) *gateway {
	w.t.Helper()
	cfg := w.config()
	for _, c := range change {
		c(&cfg)
	}
	g := &gateway{url: "http://" + cfg.Listener.Addr().String(), ops: "http://" + cfg.OpsListener.Addr().String()}
	s, err := socketgateway.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	g.stop = servicetest.Run(w.t, s.Run)
	return g
}

// clock is the real one and a while that a test adds, so that tokens expire when the test says.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// startWithClock runs a gateway with a clock of its own.
func (w *world) startWithClock() (*gateway, *clock) {
	w.t.Helper()
	c := new(clock)
	return w.start(func(cfg *socketgateway.Config) { cfg.Now = c.now }), c
}

// get returns the status of a GET; 0 when there is no answer.
func (w *world) get(url string) int {
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, Timeout: limit}).Get(url)
	if err != nil {
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

// visitor is someone with a token.
type visitor struct {
	appID, chatUserID, chatID string
	token                     string
}

func (w *world) visitor() visitor {
	w.t.Helper()
	v := visitor{appID: uuid.NewString(), chatUserID: uuid.NewString(), chatID: uuid.NewString()}
	v.token = w.sign(w.keys, v, time.Now().Add(time.Hour))
	return v
}

func (w *world) sign(keys *credential.KeySet, v visitor, expires time.Time) string {
	w.t.Helper()
	token, err := keys.Sign(credential.VisitorClaims{
		ChatUserID: v.chatUserID, AppID: v.appID, CompanyID: "company", TokenID: uuid.NewString(), IssuedAt: time.Now().Add(-time.Hour), ExpiresAt: expires,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

// reply publishes a reply and returns what the visitor's sockets are to get.
func (w *world) reply(v visitor, data string) string {
	w.t.Helper()
	e := event.Reply{CompanyID: "company", AppID: v.appID, ChatUserID: v.chatUserID, ChatID: v.chatID, Message: chat.Message{
		ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: time.Now().UTC().Truncate(time.Millisecond), Type: chat.Text,
		Data: json.RawMessage(data), NameOfSender: "Nora", IsFromSupport: true,
	}}
	if err := w.bus.Publish(w.t.Context(), event.Derived(), e); err != nil {
		w.t.Fatal(err)
	}
	at, err := w.bus.StoredAt(w.t.Context(), e)
	if err != nil || at.IsZero() {
		w.t.Fatalf("reading when a reply was stored: got %v, %v", at, err)
	}
	e.Message.CreatedAt = at
	return string(e.Message.AppendDelivery(nil, v.chatID))
}

// realRedis is a redis-server process that can be stopped and started again at the same address.
type realRedis struct {
	t    *testing.T
	addr string
	cmd  *exec.Cmd
}

// newRealRedis takes an address and starts nothing yet.
func newRealRedis(t *testing.T) *realRedis {
	t.Helper()
	needs.Program(t, "redis-server")
	r := &realRedis{t: t, addr: nettest.Addr(t)}
	t.Cleanup(r.stop)
	return r
}

func (r *realRedis) url() string { return "redis://" + r.addr }

// start returns when Redis has said that it takes connections.
func (r *realRedis) start() {
	r.t.Helper()
	_, port, _ := net.SplitHostPort(r.addr)
	r.cmd = exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", r.t.TempDir())
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if strings.Contains(strings.ToLower(lines.Text()), "ready to accept connections") {
			return
		}
	}
	r.t.Fatal("redis-server ended before it was ready")
}

// stop ends the process that start has started.
func (r *realRedis) stop() {
	if r.cmd == nil {
		return
	}
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
	r.cmd = nil
}
