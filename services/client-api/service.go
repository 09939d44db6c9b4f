package clientapi

import (
	"context"
	_ "embed" // the contract
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/budget"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/pkg/service/storage"
	"github.com/parley-chat/parley/pkg/service/web"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/client-api/internal/access"
	api "github.com/parley-chat/parley/services/client-api/internal/http"
	"github.com/parley-chat/parley/services/client-api/internal/lookup"
	"github.com/parley-chat/parley/services/client-api/internal/message"
	"github.com/parley-chat/parley/services/client-api/internal/push"
	"github.com/parley-chat/parley/services/client-api/internal/status"
)

const (
	serviceName = "client-api"

	// grace bounds how long in-flight requests may take at shutdown: longer than a publish waits for its ack.
	grace = 10 * time.Second
)

//go:embed openapi.json
var openAPI []byte

// OpenAPI returns the API's contract, an OpenAPI 3.1 document in JSON, with the version of this build.
func OpenAPI() []byte { return httpapi.WithVersion(openAPI, ops.ReadBuild().Version) }

// Config holds the settings of the Client API.
type Config struct {
	service.Base
	Storage storage.Config
	config.Callers
	config.Budgets
	config.Keys
	config.Phones

	HTTPAddr  string      `env:"HTTP_ADDR" envDefault:":8080" doc:"address of the API"`
	RateToken config.Rate `env:"-" none:"0" small:"15000/1m" medium:"60000/1m" large:"240000/1m" doc:"requests with one company access token"`

	// All companies share the dispatchers, and what waits for one number or chat waits in order.
	RateNumber config.Rate `env:"-" none:"0" constant:"60/1m" doc:"pushes of one company to one phone number"`
	RateChat   config.Rate `env:"-" none:"0" constant:"600/1m" doc:"messages of one company's systems into one chat"`

	Listener net.Listener `env:"-"` // used instead of HTTPAddr
	// DemoPhone is the company whose messages to phone numbers are shown by this process; empty: none.
	DemoPhone string        `env:"-"`
	CacheTTL  time.Duration `env:"-"` // TTL of cached look-ups; zero: the cache's defaults
}

// Service is one Client API. Run may be called once.
type Service struct {
	cfg     Config
	handler *web.Handler
}

// New returns a service without opening anything. Its error names everything that is missing or invalid.
func New(cfg Config) (*Service, error) {
	if err := service.Check(&cfg); err != nil {
		return nil, err
	}
	return &Service{cfg: cfg, handler: web.NewHandler()}, nil
}

// Handler returns the API. It serves while Run runs.
func (s *Service) Handler() http.Handler { return s.handler }

// Run serves until ctx is done, finishes the in-flight requests and returns nil. NATS and MongoDB may be down
// when it starts; requests are answered with 503 until they connect.
func (s *Service) Run(ctx context.Context) error {
	return service.Run(ctx, serviceName, s.cfg.Base, s.open)
}

func (s *Service) open(p *service.Process) (service.Work, error) {
	redis, err := storage.RateLimits(p, s.cfg.RedisURL)
	if err != nil {
		return nil, err
	}
	data, err := storage.Open(p, s.cfg.Storage)
	if err != nil {
		return nil, err
	}
	// It publishes to SENDS only; how full the others are, where its messages and their reports end, decides who may send.
	b, err := p.Bus(s.meter(redis), subject.Sends, subject.Replies, subject.Outbound, subject.Status)
	if err != nil {
		return nil, err
	}
	usage := access.NewUsage(data, s.cfg.Logger, s.cfg.Now)
	p.Background(func(ctx context.Context) error { usage.Run(ctx); return nil })
	cache := store.NewCache(data, store.CacheConfig{
		TokenTTL: s.cfg.CacheTTL, TTL: s.cfg.CacheTTL, Registerer: s.cfg.Registerer, TokenUsed: usage.Note,
	})
	stopForgetting, err := b.RPC().OnInvalidate(cache.Forget)
	if err != nil {
		return nil, fmt.Errorf("subscribing to invalidations: %w", err)
	}
	p.OnClose(func() error { stopForgetting(); return nil })
	s.handler.Open(s.api(data, cache, b, redis, p.Now()))
	return func(ctx context.Context) error {
		return web.Serve(ctx, p, s.cfg.Listener, s.cfg.HTTPAddr, s.handler, grace)
	}, nil
}

func (s *Service) api(
	data store.Store, cache *store.Cache, b *bus.Bus, redis *ratelimit.Redis, now func() time.Time,
) http.Handler {
	statuses := status.New(data, acceptances{b})
	return api.New(api.Config{
		Authenticator: access.NewAuthenticator(cache, now),
		Messages:      message.NewSender(cache, data, b, s.reachesPhones, now),
		Pushes: push.New(push.Config{
			Templates: cache, Messages: data, Recipients: data, Publisher: b, ReachesPhones: s.reachesPhones,
			Logger: s.cfg.Logger, Now: now,
		}),
		Statuses: statuses,
		Lookups:  lookup.New(data, now),
		Idempotent: httpapi.Idempotent{
			Executor: idempotency.NewExecutor(data, sends{data, statuses}, now, s.cfg.Logger),
		},
		Limits:     s.limits(redis),
		Proxies:    s.cfg.TrustedProxies,
		OpenAPI:    OpenAPI(),
		Logger:     s.cfg.Logger,
		Registerer: s.cfg.Registerer,
		Tracer:     s.cfg.Tracer,
	})
}

// reachesPhones reports whether something takes the messages of a company to phone numbers.
func (s *Service) reachesPhones(companyID string) bool {
	return s.cfg.PhoneConnector || companyID == s.cfg.DemoPhone
}

func (s *Service) meter(redis *ratelimit.Redis) *budget.Meter {
	return budget.New(budget.Config{Rates: s.cfg.Budgets, Redis: redis, Now: s.cfg.Now, Registerer: s.cfg.Registerer})
}

func (s *Service) limits(redis *ratelimit.Redis) api.Limits {
	limiter := func(name string, rate config.Rate) *ratelimit.Limiter {
		return ratelimit.New(
			ratelimit.Config{Name: name, Rate: rate, Redis: redis, Now: s.cfg.Now, Registerer: s.cfg.Registerer},
		)
	}
	return api.Limits{
		Token: limiter("token", s.cfg.RateToken), AuthFailures: limiter("auth-failures", s.cfg.RateAuth),
		Keys:   limiter("idempotency-keys-company", s.cfg.RateKeys),
		Number: limiter("pushes-number", s.cfg.RateNumber), Chat: limiter("messages-chat", s.cfg.RateChat),
	}
}

// acceptances looks up accepted messages in the stream SENDS.
type acceptances struct{ bus *bus.Bus }

// Accepted implements [status.Acceptances].
func (a acceptances) Accepted(
	ctx context.Context,
	companyID, messageID string,
) (at time.Time, chatID string, err error) {
	d, err := a.bus.Accepted(ctx, companyID, messageID)
	if err != nil {
		return time.Time{}, "", err
	}
	chatID, _ = subject.ChatOf(d.Subject) // a push has no chat in its subject
	return d.EventTime(), chatID, nil
}

// sends looks up the messages of answered requests.
type sends struct {
	stored   idempotency.Messages
	statuses *status.Service
}

// Exists implements [idempotency.Effects]. A message is in SENDS until the recorder has stored it.
func (s sends) Exists(ctx context.Context, r idempotency.Request, messageID string) (bool, error) {
	_, _, err := s.stored.FindMessage(ctx, messageID)
	if apperr.Is(err, apperr.NotFound) {
		_, _, err = s.statuses.Accepted(ctx, r.CompanyID, messageID)
	}
	if apperr.Is(err, apperr.NotFound) {
		return false, nil
	}
	return err == nil, err
}
