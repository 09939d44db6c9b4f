package clientapi

import (
	"context"
	_ "embed" // the contract
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/backend"
	"github.com/parley-chat/parley/pkg/tracing"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/client-api/internal/access"
	api "github.com/parley-chat/parley/services/client-api/internal/http"
	"github.com/parley-chat/parley/services/client-api/internal/message"
	"github.com/parley-chat/parley/services/client-api/internal/push"
	"github.com/parley-chat/parley/services/client-api/internal/record"
	"github.com/parley-chat/parley/services/client-api/internal/status"
)

const (
	serviceName = "client-api"

	// grace is how long requests that are in flight at the stop may take: longer than a publish waits for its ack.
	grace = 10 * time.Second
)

//go:embed openapi.json
var openAPI []byte

// OpenAPI returns the API's contract, an OpenAPI 3.0 document in JSON. Its version is that of this build.
func OpenAPI() []byte { return httpapi.WithVersion(openAPI, ops.ReadBuild().Version) }

// Config is what the Client API needs.
type Config struct {
	config.Ops
	config.NATS
	config.Store
	config.Chats
	config.Tracing

	config.Callers
	config.Budgets

	HTTPAddr  string      `env:"HTTP_ADDR" envDefault:":8080" doc:"address of the API"`
	RateToken config.Rate `env:"RATE_LIMIT_TOKEN" envDefault:"60000/1m" doc:"requests with one company access token, count/time; 0: no limit"`

	Logger      *slog.Logger               `env:"-"`
	Registerer  prometheus.Registerer      `env:"-"` // nil: no metrics
	Tracer      *tracing.Tracer            `env:"-"` // nil: no traces
	Listener    net.Listener               `env:"-"` // taken over instead of HTTPAddr
	OpsListener net.Listener               `env:"-"` // taken over instead of OpsAddr
	InProcess   nats.InProcessConnProvider `env:"-"` // connects to a NATS server in this process, without a socket
	SharedStore store.Store                `env:"-"` // used instead of opening one; its owner closes it
	CacheTTL    time.Duration              `env:"-"` // how long look-ups are believed; zero: the cache's defaults
	Now         func() time.Time           `env:"-"` // the clock; nil: the real one
}

func (c Config) problems() []string {
	if c.Logger == nil {
		return []string{"Logger is missing"}
	}
	return nil
}

// Service is one Client API. It is run once.
type Service struct {
	cfg     Config
	bus     *bus.Bus
	store   store.Store
	cache   *store.Cache
	usage   *access.Usage
	once    *idempotency.Executor
	redis   *ratelimit.Redis // nil: this replica counts by itself
	handler http.Handler
}

// New returns a service that connects in the background but does not listen yet; Run closes what it has opened. Its error
// names everything that is missing or wrong.
func New(cfg Config) (*Service, error) {
	if err := config.Check(&cfg, cfg.problems()...); err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Service{cfg: cfg}
	if err := s.open(); err != nil {
		return nil, err
	}
	s.usage = access.NewUsage(s.store, cfg.Logger, cfg.Now)
	s.cache = store.NewCache(s.store, store.CacheConfig{
		TokenTTL: cfg.CacheTTL, TTL: cfg.CacheTTL, Registerer: cfg.Registerer, TokenUsed: s.usage.Note,
	})
	s.once = idempotency.NewExecutor(s.store, cfg.Now, cfg.Logger)
	s.handler = api.New(api.Config{
		Authenticator: access.NewAuthenticator(s.cache, cfg.Now),
		Messages:      message.NewSender(s.cache, s.store, s.bus, cfg.Now),
		Pushes: push.New(push.Config{
			Templates: s.cache, Histories: s.store, Recipients: s.store, Publisher: s.bus, Logger: cfg.Logger, Now: cfg.Now,
		}),
		Statuses:   status.New(s.store, inbound{s.bus}),
		Records:    record.New(s.store, cfg.Now),
		Once:       s.once,
		Limits:     s.limits(),
		Proxies:    cfg.TrustedProxies,
		OpenAPI:    OpenAPI(),
		Logger:     cfg.Logger,
		Registerer: cfg.Registerer,
		Tracer:     cfg.Tracer,
	})
	return s, nil
}

// inbound looks at the stream of what was accepted for the status of a message.
type inbound struct{ bus *bus.Bus }

// Accepted implements [status.Inbound].
func (i inbound) Accepted(ctx context.Context, companyID, messageID string) (at time.Time, chatID string, err error) {
	d, err := i.bus.Accepted(ctx, companyID, messageID)
	if err != nil {
		return time.Time{}, "", err
	}
	chatID, _ = subject.ChatOf(d.Subject)
	return d.EventTime(), chatID, nil
}

func (s *Service) limits() api.Limits {
	limiter := func(name string, rate config.Rate) *ratelimit.Limiter {
		return ratelimit.New(ratelimit.Config{Name: name, Rate: rate, Redis: s.redis, Now: s.cfg.Now, Registerer: s.cfg.Registerer})
	}
	return api.Limits{
		Token: limiter("token", s.cfg.RateToken), AuthFailures: limiter("auth-failures", s.cfg.RateAuth),
		Bytes: ratelimit.New(ratelimit.Bytes("bytes-company", s.cfg.BytesCompany, s.redis, s.cfg.Now, s.cfg.Registerer)),
		Keys:  limiter("idempotency-keys-company", s.cfg.RateKeys),
	}
}

func (s *Service) open() (err error) {
	if s.cfg.RedisURL != "" {
		if s.redis, err = ratelimit.OpenRedis(s.cfg.RedisURL, s.cfg.Logger); err != nil {
			return err
		}
	}
	s.store, err = backend.Open(backend.Config{
		Store: s.cfg.Store, Shared: s.cfg.SharedStore, AppName: serviceName, Logger: s.cfg.Logger, IdleClose: s.cfg.ChatIdleClose,
	})
	if err != nil {
		return err
	}
	s.bus, err = bus.Open(bus.Config{
		URL: s.cfg.NATSURL, CredsFile: s.cfg.NATSCreds, Name: serviceName, InProcess: s.cfg.InProcess,
		CAFile: s.cfg.NATSCA, CertFile: s.cfg.NATSCert, KeyFile: s.cfg.NATSKey,
		Streams: []string{subject.Sends},
		Logger:  s.cfg.Logger, Registerer: s.cfg.Registerer, Tracer: s.cfg.Tracer,
	})
	if err != nil {
		return errors.Join(err, backend.Close(s.store))
	}
	return nil
}

// Handler returns the API. It works from New until Run returns.
func (s *Service) Handler() http.Handler { return s.handler }

// Run serves until ctx is done, finishes the requests that are in flight and returns nil. NATS and MongoDB may be away when it
// starts; requests are answered with 503 until they are there.
func (s *Service) Run(ctx context.Context) (err error) {
	defer func() { s.bus.Close(); err = errors.Join(err, backend.Close(s.store), s.redis.Close()) }()
	stopForgetting, err := s.bus.OnInvalidate(s.cache.Forget)
	if err != nil {
		return fmt.Errorf("listening for invalidations: %w", err)
	}
	defer stopForgetting()
	return s.serve(ctx)
}

// serve returns when the API has answered its last request, and after it the operations server: until then that answers,
// not ready.
func (s *Service) serve(ctx context.Context) error {
	server := ops.New(ops.Config{
		Addr: s.cfg.OpsAddr, PprofAddr: s.cfg.PprofAddr, Listener: s.cfg.OpsListener, Service: serviceName, Logger: s.cfg.Logger, Gatherer: gatherer(s.cfg.Registerer),
		Checks: s.checks(),
	})
	opsCtx, stopOps := context.WithCancel(context.WithoutCancel(ctx))
	usageCtx, stopUsage := context.WithCancel(context.WithoutCancel(ctx))
	group, running := errgroup.WithContext(ctx)
	defer context.AfterFunc(running, server.SetStopping)()
	if s.cfg.OpsAddr != "" || s.cfg.OpsListener != nil {
		group.Go(func() error { return server.Run(opsCtx) })
	}
	group.Go(func() error { s.usage.Run(usageCtx); return nil })
	group.Go(func() error {
		defer stopOps()
		defer stopUsage()
		return s.serveAPI(running)
	})
	return group.Wait()
}

// checks are the dependencies. Without Redis each replica counts limits by itself.
func (s *Service) checks() []ops.Check {
	checks := []ops.Check{{Name: "nats", Check: s.bus.Ready}, {Name: "store", Check: s.store.Ready}}
	if s.redis != nil {
		checks = append(checks, ops.Check{Name: "redis", Check: s.redis.Ready, Optional: true})
	}
	return checks
}

func (s *Service) serveAPI(ctx context.Context) error {
	ln := s.cfg.Listener
	if ln == nil && s.cfg.HTTPAddr == "" { // somebody else serves Handler
		<-ctx.Done()
		return nil
	}
	if ln == nil {
		var err error
		if ln, err = net.Listen("tcp", s.cfg.HTTPAddr); err != nil {
			return fmt.Errorf("HTTP_ADDR: %w", err)
		}
	}
	s.cfg.Logger.InfoContext(ctx, "serving", "addr", ln.Addr().String())
	defer s.cfg.Logger.InfoContext(ctx, "stopped")
	return httpapi.Serve(ctx, ln, s.handler, s.cfg.Logger, grace)
}

// gatherer shows what was registered, where the registerer can do both; nil is the default registry.
func gatherer(r prometheus.Registerer) prometheus.Gatherer {
	g, _ := r.(prometheus.Gatherer)
	return g
}
