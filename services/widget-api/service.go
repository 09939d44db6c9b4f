package widgetapi

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
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/backend"
	"github.com/parley-chat/parley/pkg/tracing"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/widget-api/internal/application"
	"github.com/parley-chat/parley/services/widget-api/internal/attachment"
	"github.com/parley-chat/parley/services/widget-api/internal/conversation"
	api "github.com/parley-chat/parley/services/widget-api/internal/http"
	"github.com/parley-chat/parley/services/widget-api/internal/registration"
)

const (
	serviceName = "widget-api"

	// grace is how long requests that are in flight at the stop may take: longer than a publish waits for its ack.
	grace = 10 * time.Second
)

//go:embed openapi.json
var openAPI []byte

// OpenAPI returns the API's contract, an OpenAPI 3.0 document in JSON. Its version is that of this build.
func OpenAPI() []byte { return httpapi.WithVersion(openAPI, ops.ReadBuild().Version) }

// Config is what the Widget API needs.
type Config struct {
	config.Ops
	config.NATS
	config.Store
	config.Chats
	config.Tracing

	config.Callers
	config.Budgets

	HTTPAddr        string        `env:"HTTP_ADDR" envDefault:":8080" doc:"address of the API"`
	VisitorKeysFile string        `env:"VISITOR_KEYS_FILE,required" doc:"JWK Set file with the private keys of visitors' tokens: the first signs, all verify; read again when it changes"`
	VisitorTokenTTL time.Duration `env:"VISITOR_TOKEN_TTL" envDefault:"720h" doc:"how long a visitor's token holds"`
	FileConfig

	RateVisitor  config.Rate `env:"RATE_LIMIT_VISITOR" envDefault:"300/1m" doc:"requests of one visitor, count/time; 0: no limit"`
	RateAddress  config.Rate `env:"RATE_LIMIT_ADDRESS" envDefault:"3000/1m" doc:"requests of one address (an IPv6 /64) to the Widget API, count/time; 0: no limit"`
	RateRegister config.Rate `env:"RATE_LIMIT_REGISTER" envDefault:"300/1m" doc:"registrations from one address, count/time; 0: no limit"`

	BytesVisitor     config.Rate `env:"BYTE_BUDGET_VISITOR" envDefault:"16MiB/168h" doc:"bytes of one visitor's events, bytes/time; 0: no limit"`
	BytesAddress     config.Rate `env:"BYTE_BUDGET_ADDRESS" envDefault:"64MiB/168h" doc:"bytes of the visitors' events from one address (an IPv6 /64), bytes/time; 0: no limit"`
	BytesApplication config.Rate `env:"BYTE_BUDGET_APPLICATION" envDefault:"128MiB/168h" doc:"bytes of the events of one application's visitors, bytes/time; size it with STREAM_MAX_BYTES and STREAM_MAX_AGE; 0: no limit"`
	HistoryMemory    int64       `env:"HISTORY_MEMORY_BYTES" envDefault:"67108864" doc:"bytes of histories that are in memory at once, one application's at most half; more wait; at least 12 MiB"`

	Logger      *slog.Logger               `env:"-"`
	Registerer  prometheus.Registerer      `env:"-"` // nil: no metrics
	Tracer      *tracing.Tracer            `env:"-"` // nil: no traces
	Listener    net.Listener               `env:"-"` // taken over instead of HTTPAddr
	OpsListener net.Listener               `env:"-"` // taken over instead of OpsAddr
	InProcess   nats.InProcessConnProvider `env:"-"` // connects to a NATS server in this process, without a socket
	SharedStore store.Store                `env:"-"` // used instead of opening one; its owner closes it
	CacheTTL    time.Duration              `env:"-"` // how long look-ups are believed; zero: the cache's defaults
	FileSweep   time.Duration              `env:"-"` // between two removals of expired files; zero: 10 minutes
	Now         func() time.Time           `env:"-"` // the clock; nil: the real one
}

func (c Config) problems() []string {
	var problems []string
	if c.Logger == nil {
		problems = append(problems, "Logger is missing")
	}
	if c.VisitorTokenTTL <= 0 || c.VisitorTokenTTL > bus.RevocationAge {
		problems = append(problems, "VISITOR_TOKEN_TTL must be positive and at most "+bus.RevocationAge.String()) // so long are revocations kept
	}
	if c.HistoryMemory != 0 && c.HistoryMemory < conversation.MinReadMemory {
		problems = append(problems, fmt.Sprintf("HISTORY_MEMORY_BYTES must be at least %d", conversation.MinReadMemory))
	}
	if c.PublicURL == "" && c.HTTPAddr != "" && c.Listener == nil && !config.LoopbackAddr(c.HTTPAddr) {
		problems = append(problems, "PUBLIC_URL is required unless HTTP_ADDR is a loopback address")
	}
	return problems
}

// Service is one Widget API. It is run once.
type Service struct {
	cfg     Config
	keys    *credential.KeySet
	bus     *bus.Bus
	store   store.Store
	cache   *store.Cache
	once    *idempotency.Executor
	files   *attachment.Service
	redis   *ratelimit.Redis // nil: this replica counts by itself
	handler http.Handler

	closeFiles func()
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
	s.cache = store.NewCache(s.store, store.CacheConfig{TokenTTL: cfg.CacheTTL, TTL: cfg.CacheTTL, Registerer: cfg.Registerer})
	s.once = idempotency.NewExecutor(s.store, cfg.Now, cfg.Logger)
	s.handler = s.api()
	return s, nil
}

func (s *Service) api() http.Handler {
	applications := application.NewFinder(s.cache)
	verifier := credential.NewVerifier(s.keys, s.cfg.Now)
	return api.New(api.Config{
		Applications: applications,
		Registrations: registration.New(registration.Config{
			Applications: applications, Visitors: s.store, Publisher: s.bus, Signer: s.keys, Tokens: verifier,
			Changed: s.visitorChanged, TokenTTL: s.cfg.VisitorTokenTTL, Now: s.cfg.Now,
		}),
		Conversations: conversation.New(conversation.Config{
			Applications: applications, Directory: s.cache, Chats: s.store, Receipts: s.store, Replies: replies{s.bus}, Publisher: s.bus,
			Files: s.files, Reads: conversation.NewReads(s.cfg.HistoryMemory), Logger: s.cfg.Logger, Now: s.cfg.Now,
		}),
		Once:       s.once,
		Files:      s.files,
		Uploads:    s.cfg.uploads(),
		PublicURL:  s.cfg.PublicURL,
		Now:        s.cfg.Now,
		Limits:     s.limits(),
		Proxies:    s.cfg.TrustedProxies,
		Verifier:   verifier,
		Keys:       s.keys,
		OpenAPI:    OpenAPI(),
		Logger:     s.cfg.Logger,
		Registerer: s.cfg.Registerer,
		Tracer:     s.cfg.Tracer,
	})
}

// replies looks at the stream of replies for the conversations.
type replies struct{ bus *bus.Bus }

// LastReply implements [conversation.Replies].
func (r replies) LastReply(ctx context.Context, appID, chatUserID string) (event.Reply, time.Time, error) {
	d, err := r.bus.Last(ctx, subject.Replies, subject.Reply(appID, chatUserID))
	if err != nil {
		return event.Reply{}, time.Time{}, err
	}
	reply, err := event.Decode[event.Reply](d.Subject, d.Data)
	return reply, d.Time, err
}

// keysChanged makes the gateways fetch the keys. Should the word be lost, they do so by themselves a little later.
func (s *Service) keysChanged(ctx context.Context) {
	_ = s.bus.Invalidate(ctx, credential.KindVisitorKeys, credential.AllVisitorKeys)
}

// visitorChanged makes this replica forget at once what it knew of a visitor, and the others soon. Should the word be lost, they
// show an old name for as long as the cache believes itself.
func (s *Service) visitorChanged(ctx context.Context, chatUserID string) {
	s.cache.Forget(store.CachedVisitor, chatUserID)
	_ = s.bus.Invalidate(ctx, store.CachedVisitor, chatUserID)
}

func (s *Service) limits() api.Limits {
	limiter := func(name string, rate config.Rate) *ratelimit.Limiter {
		return ratelimit.New(ratelimit.Config{Name: name, Rate: rate, Redis: s.redis, Now: s.cfg.Now, Registerer: s.cfg.Registerer})
	}
	budget := func(name string, rate config.Rate) *ratelimit.Limiter {
		return ratelimit.New(ratelimit.Bytes(name, rate, s.redis, s.cfg.Now, s.cfg.Registerer))
	}
	return api.Limits{
		Address: limiter("address", s.cfg.RateAddress), Register: limiter("register", s.cfg.RateRegister),
		Visitor: limiter("visitor", s.cfg.RateVisitor), AuthFailures: limiter("auth-failures", s.cfg.RateAuth),
		Keys: limiter("idempotency-keys-application", s.cfg.RateKeys),
		Bytes: api.Bytes{
			Visitor: budget("bytes-visitor", s.cfg.BytesVisitor), Address: budget("bytes-address", s.cfg.BytesAddress),
			Application: budget("bytes-application", s.cfg.BytesApplication), Company: budget("bytes-company-visitors", s.cfg.BytesCompany),
		},
	}
}

func (s *Service) open() (err error) {
	if s.cfg.RedisURL != "" {
		if s.redis, err = ratelimit.OpenRedis(s.cfg.RedisURL, s.cfg.Logger); err != nil {
			return err
		}
	}
	if s.keys, err = credential.LoadKeySet(s.cfg.VisitorKeysFile); err != nil {
		return fmt.Errorf("VISITOR_KEYS_FILE: %w", err)
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
		Streams: s.streams(),
		Logger:  s.cfg.Logger, Registerer: s.cfg.Registerer, Tracer: s.cfg.Tracer,
	})
	if err != nil {
		return errors.Join(err, backend.Close(s.store))
	}
	if err = s.openAttachments(); err != nil {
		s.bus.Close()
		return errors.Join(err, backend.Close(s.store))
	}
	return nil
}

// Handler returns the API. It works from New until Run returns.
func (s *Service) Handler() http.Handler { return s.handler }

// Run serves until ctx is done, finishes the requests that are in flight and returns nil. NATS and MongoDB may be away when it
// starts; requests are answered with 503 until they are there.
func (s *Service) Run(ctx context.Context) (err error) {
	defer func() { s.closeFiles(); s.bus.Close(); err = errors.Join(err, backend.Close(s.store), s.redis.Close()) }()
	stopForgetting, err := s.bus.OnInvalidate(s.cache.Forget)
	if err != nil {
		return fmt.Errorf("listening for invalidations: %w", err)
	}
	defer stopForgetting()
	stopAnswering, err := s.bus.AnswerOrigins(s.allowedOrigins)
	if err != nil {
		return fmt.Errorf("listening for gateways: %w", err)
	}
	defer stopAnswering()
	return s.serve(ctx)
}

// allowedOrigins answers the gateways, which do not know applications.
func (s *Service) allowedOrigins(ctx context.Context, appID string) ([]string, error) {
	app, err := application.NewFinder(s.cache).FindWidget(ctx, appID)
	return app.AllowedOrigins, err
}

// serve returns when the API has answered its last request, and after it the operations server: until then that answers,
// not ready.
func (s *Service) serve(ctx context.Context) error {
	server := ops.New(ops.Config{
		Addr: s.cfg.OpsAddr, PprofAddr: s.cfg.PprofAddr, Listener: s.cfg.OpsListener, Service: serviceName, Logger: s.cfg.Logger, Gatherer: gatherer(s.cfg.Registerer),
		Checks: s.checks(),
	})
	opsCtx, stopOps := context.WithCancel(context.WithoutCancel(ctx))
	group, running := errgroup.WithContext(ctx)
	defer context.AfterFunc(running, server.SetStopping)()
	if s.cfg.OpsAddr != "" || s.cfg.OpsListener != nil {
		group.Go(func() error { return server.Run(opsCtx) })
	}
	group.Go(func() error { return s.keys.Run(running, s.cfg.Logger, func() { s.keysChanged(running) }) })
	group.Go(func() error { return s.files.Run(running) })
	group.Go(func() error {
		defer stopOps()
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
