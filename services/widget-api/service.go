package widgetapi

import (
	"cmp"
	"context"
	_ "embed" // the contract
	"fmt"
	"iter"
	"net"
	"net/http"
	"time"

	"github.com/parley-chat/parley/pkg/attachment"
	"github.com/parley-chat/parley/pkg/budget"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/control"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/event"
	filebackend "github.com/parley-chat/parley/pkg/file/backend"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/httpapi/form"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/notice"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/presence"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/pkg/service/storage"
	"github.com/parley-chat/parley/pkg/service/web"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/widget-api/internal/application"
	"github.com/parley-chat/parley/services/widget-api/internal/conversation"
	api "github.com/parley-chat/parley/services/widget-api/internal/http"
	"github.com/parley-chat/parley/services/widget-api/internal/registration"
)

const (
	serviceName = "widget-api"

	// grace bounds how long in-flight requests may take at shutdown: longer than a publish waits for its ack.
	grace = 10 * time.Second
)

//go:embed openapi.json
var openAPI []byte

// OpenAPI returns the API's contract, an OpenAPI 3.1 document in JSON, with the version of this build.
func OpenAPI() []byte { return httpapi.WithVersion(openAPI, ops.ReadBuild().Version) }

// Config holds the settings of the Widget API.
type Config struct {
	service.Base
	Storage storage.Config
	config.Secrets
	config.Callers
	config.Budgets
	config.Keys

	HTTPAddr        string `env:"HTTP_ADDR" envDefault:":8080" doc:"address of the API"`
	VisitorKeysFile string `env:"VISITOR_KEYS_FILE,required" doc:"JWK Set file with the private keys of visitors' tokens: the first signs, all verify; read again when it changes"`
	config.VisitorTokens
	FileConfig

	RateVisitor  config.Rate `env:"-" none:"0" constant:"300/1m" doc:"requests of one visitor"`
	RateAddress  config.Rate `env:"-" none:"0" small:"750/1m" medium:"3000/1m" large:"12000/1m" doc:"requests of one address (an IPv6 /64) to the Widget API"`
	RateRegister config.Rate `env:"-" none:"0" small:"75/1m" medium:"300/1m" large:"1200/1m" doc:"registrations from one address"`

	// HistoryMemory is the number of bytes of histories that are in memory at once, one application's at most half;
	// more wait. It is at least [conversation.MinPageMemory].
	HistoryMemory int64 `env:"-" constant:"67108864"`

	Presence  presence.Store `env:"-"` // stores which agents are online; nil: Redis if configured
	Listener  net.Listener   `env:"-"` // used instead of HTTPAddr
	CacheTTL  time.Duration  `env:"-"` // TTL of cached look-ups; zero: the cache's defaults
	FileSweep time.Duration  `env:"-"` // interval between two removals of expired files; zero: 10 minutes
}

func (c Config) problems() []string {
	var problems []string
	if c.HistoryMemory != 0 && c.HistoryMemory < conversation.MinPageMemory {
		problems = append(problems, fmt.Sprintf("HistoryMemory must be at least %d", conversation.MinPageMemory))
	}
	if c.PublicURL == "" && c.HTTPAddr != "" && c.Listener == nil && !config.LoopbackAddr(c.HTTPAddr) {
		problems = append(problems, "PUBLIC_URL is required unless HTTP_ADDR is a loopback address")
	}
	return problems
}

// Service is one Widget API. Run may be called once.
type Service struct {
	cfg     Config
	handler *web.Handler
}

// New returns a service without opening anything. Its error names everything that is missing or invalid.
func New(cfg Config) (*Service, error) {
	if err := service.Check(&cfg, cfg.problems()...); err != nil {
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

// engines holds the connections of the API.
type engines struct {
	keys   *credential.KeySet
	bus    *bus.Bus
	store  store.Store
	board  *notice.Board
	cache  *store.Cache
	files  *attachment.Service
	redis  *ratelimit.Redis     // nil: this replica counts alone
	agents *conversation.Agents // nil: the agents' presence is unknown
	now    func() time.Time     // the clock of chats
}

func (s *Service) open(p *service.Process) (service.Work, error) {
	e, err := s.openEngines(p)
	if err != nil {
		return nil, err
	}
	stopForgetting, err := e.bus.RPC().OnInvalidate(e.cache.Forget)
	if err != nil {
		return nil, fmt.Errorf("subscribing to invalidations: %w", err)
	}
	p.OnClose(func() error { stopForgetting(); return nil })
	applications := application.NewFinder(e.cache)
	stopAnswering, err := e.bus.RPC().HandleOrigins(
		func(ctx context.Context, appID string) ([]string, error) { // gateways have no store
			app, err := applications.FindWidget(ctx, appID)
			return app.AllowedOrigins, err
		},
	)
	if err != nil {
		return nil, fmt.Errorf("subscribing to origin requests: %w", err)
	}
	p.OnClose(func() error { stopAnswering(); return nil })
	p.Background(func(ctx context.Context) error {
		return e.keys.Run(ctx, s.cfg.Logger, func() { e.keysChanged(ctx) })
	})
	p.Background(e.files.Run)
	conversations := s.conversations(e, applications)
	stopReading, err := e.bus.RPC().HandleReading(conversations.SocketReading) // gateways have no store
	if err != nil {
		return nil, fmt.Errorf("subscribing to read requests: %w", err)
	}
	p.OnClose(func() error { stopReading(); return nil })
	s.handler.Open(s.api(e, applications, conversations))
	return func(ctx context.Context) error {
		return web.Serve(ctx, p, s.cfg.Listener, s.cfg.HTTPAddr, s.handler, grace)
	}, nil
}

func (s *Service) openEngines(p *service.Process) (e *engines, err error) {
	e = new(engines)
	if e.keys, err = credential.LoadKeySet(s.cfg.VisitorKeysFile); err != nil {
		return nil, fmt.Errorf("VISITOR_KEYS_FILE: %w", err)
	}
	if e.redis, err = storage.RateLimits(p, s.cfg.RedisURL); err != nil {
		return nil, err
	}
	kept, err := web.Presence(p, s.cfg.Presence, s.cfg.RedisURL)
	if err != nil {
		return nil, err
	}
	e.agents = conversation.NewAgents(kept, s.cfg.Now)
	if e.store, err = storage.OpenWithSecrets(p, s.cfg.Storage, s.cfg.Secrets); err != nil {
		return nil, err
	}
	e.board = notice.NewBoard(e.store, s.cfg.Now, s.cfg.Logger)
	if e.bus, err = p.Bus(s.meter(e), s.streams()...); err != nil {
		return nil, err
	}
	e.now = p.Now()
	e.cache = store.NewCache(
		e.store,
		store.CacheConfig{TokenTTL: s.cfg.CacheTTL, TTL: s.cfg.CacheTTL, Registerer: s.cfg.Registerer},
	)
	files, closeFiles, err := filebackend.Open(s.cfg.Files, e.bus)
	if err != nil {
		return nil, err
	}
	p.OnClose(func() error { closeFiles(); return nil })
	attachments := attachment.Bounds(s.cfg.Files, s.cfg.Uploads)
	attachments.Store = files
	attachments.Records = e.store
	attachments.Sweep = cmp.Or(s.cfg.FileSweep, defaultFileSweep)
	attachments.Notices = e.board
	attachments.Logger = s.cfg.Logger
	attachments.Now = e.now
	e.files = attachment.New(attachments)
	return e, nil
}

func (s *Service) meter(e *engines) *budget.Meter {
	return budget.New(budget.Config{
		Rates: s.cfg.Budgets, Redis: e.redis, Notices: e.board, Now: s.cfg.Now, Registerer: s.cfg.Registerer,
	})
}

func (s *Service) conversations(e *engines, applications *application.Finder) *conversation.Service {
	return conversation.New(conversation.Config{
		Applications: applications,
		Directory:    e.cache,
		Chats:        e.store,
		Receipts:     e.store,
		Unread:       e.store,
		Replies:      replies{e.bus},
		Bots:         e.bus.RPC(),
		Publisher:    e.bus,
		Signals:      e.bus.RPC(),
		Agents:       e.agents,
		Controls:     control.New(e.store, e.bus, e.now),
		Visitors:     e.store,
		Changed:      e.visitorChanged,
		PageMemory:   conversation.NewPageMemory(s.cfg.HistoryMemory),
		Logger:       s.cfg.Logger,
		Now:          e.now,
	})
}

func (s *Service) api(e *engines, applications *application.Finder, conversations *conversation.Service) http.Handler {
	verifier := credential.NewVerifier(e.keys, e.now)
	return api.New(api.Config{
		Applications: applications,
		Registrations: registration.New(registration.Config{
			Applications: applications, Visitors: e.store, Publisher: e.bus, Signer: e.keys, Tokens: verifier,
			Changed: e.visitorChanged, TokenTTL: s.cfg.VisitorTokenTTL, Now: e.now,
		}),
		Conversations: conversations,
		Idempotent: httpapi.Idempotent{
			Executor: idempotency.NewExecutor(e.store, idempotency.Stored{Messages: e.store}, e.now, s.cfg.Logger),
		},
		Files:      e.files,
		Uploads:    form.Limits{MaxBytes: s.cfg.FileMaxBytes, Timeout: s.cfg.UploadTimeout},
		PublicURL:  s.cfg.PublicURL,
		Now:        e.now,
		Limits:     s.limits(e.redis),
		Proxies:    s.cfg.TrustedProxies,
		Verifier:   verifier,
		Keys:       e.keys,
		OpenAPI:    OpenAPI(),
		Logger:     s.cfg.Logger,
		Registerer: s.cfg.Registerer,
		Tracer:     s.cfg.Tracer,
	})
}

// replies reads the replies to a visitor from the stream.
type replies struct{ bus *bus.Bus }

// LastReply implements [conversation.Replies].
func (r replies) LastReply(ctx context.Context, appID, chatUserID string) (event.Reply, time.Time, error) {
	d, err := r.bus.Last(ctx, subject.Replies, subject.Reply(appID, chatUserID))
	if err != nil {
		return event.Reply{}, time.Time{}, err
	}
	// The recorder makes a malformed one a dead letter: the zero reply is in no chat.
	reply, _ := event.DecodeStored[event.Reply](d.Subject, d.Data, d.Time)
	return reply, d.Time, nil
}

// repliesTimeout bounds one read of RepliesSince, for which a visitor waits.
const repliesTimeout = 2 * time.Second

// RepliesSince implements [conversation.Replies]. It skips malformed ones, which the recorder makes dead letters.
func (r replies) RepliesSince(
	ctx context.Context,
	appID, chatUserID string,
	at time.Time,
) iter.Seq2[event.Reply, error] {
	return func(yield func(event.Reply, error) bool) {
		ctx, cancel := context.WithTimeout(ctx, repliesTimeout)
		defer cancel()
		read := 0
		for d, err := range r.bus.Since(ctx, subject.Replies, subject.Reply(appID, chatUserID), at) {
			if err != nil {
				yield(event.Reply{}, err)
				return
			}
			reply, err := event.DecodeStored[event.Reply](d.Subject, d.Data, d.Time)
			if err == nil && !yield(reply, nil) {
				return
			}
			if read++; read == conversation.MaxPage {
				return
			}
		}
	}
}

// keysChanged makes the gateways fetch the keys. If the announcement is lost, they fetch them at their next interval.
func (e *engines) keysChanged(ctx context.Context) {
	_ = e.bus.RPC().Invalidate(ctx, credential.KindVisitorKeys, credential.AllVisitorKeys)
}

// visitorChanged invalidates the cached visitor in this replica at once, and in the others soon. If the
// announcement is lost, they show the old name until their cache expires.
func (e *engines) visitorChanged(ctx context.Context, chatUserID string) {
	e.cache.Forget(store.CachedVisitor, chatUserID)
	_ = e.bus.RPC().Invalidate(ctx, store.CachedVisitor, chatUserID)
}

const (
	// visitorKeys: a visitor may add a 64th of an application's idempotency keys.
	visitorKeys = 64
	// siteKeys: the visitors of a site may add a 16th, so that none of them uses up its neighbours' keys alone.
	siteKeys = 16
)

func (s *Service) limits(redis *ratelimit.Redis) api.Limits {
	limiter := func(name string, rate config.Rate) *ratelimit.Limiter {
		return ratelimit.New(
			ratelimit.Config{Name: name, Rate: rate, Redis: redis, Now: s.cfg.Now, Registerer: s.cfg.Registerer},
		)
	}
	return api.Limits{
		Address: limiter("address", s.cfg.RateAddress), Register: limiter("register", s.cfg.RateRegister),
		Visitor: limiter("visitor", s.cfg.RateVisitor), AuthFailures: limiter("auth-failures", s.cfg.RateAuth),
		Keys:        limiter("idempotency-keys-application", s.cfg.RateKeys),
		KeysVisitor: limiter("idempotency-keys-visitor", s.cfg.RateKeys.Part(1, visitorKeys)),
		KeysSite:    limiter("idempotency-keys-address", s.cfg.RateKeys.Part(1, siteKeys)),
	}
}
