package panel

import (
	"context"
	_ "embed"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/attachment"
	"github.com/parley-chat/parley/pkg/budget"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/file"
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
	api "github.com/parley-chat/parley/services/panel/internal/http"
	"github.com/parley-chat/parley/services/panel/internal/signin"
)

const (
	serviceName = "panel"

	// grace bounds how long in-flight requests may take at shutdown: longer than a publish waits for its ack.
	grace = 10 * time.Second
)

//go:embed openapi.json
var openAPI []byte

// OpenAPI returns the API's contract, an OpenAPI 3.1 document in JSON, with the version of this build.
func OpenAPI() []byte { return httpapi.WithVersion(openAPI, ops.ReadBuild().Version) }

// Config holds the settings of the panel.
type Config struct {
	service.Base
	Storage storage.Config
	config.Secrets

	HTTPAddr       string          `env:"HTTP_ADDR" envDefault:":8080" doc:"address of the panel"`
	PanelURL       string          `env:"PANEL_URL" valid:"baseurl" doc:"https address under which browsers reach the panel, such as https://panel.example.com; required unless HTTP_ADDR is a loopback address"`
	WidgetURL      string          `env:"WIDGET_URL,required" valid:"baseurl" doc:"address under which browsers reach the Widget API: for the snippet, the preview and visitors' files"`
	ClientURL      string          `env:"CLIENT_URL,required" valid:"baseurl" doc:"address under which companies' systems reach the Client API: for the examples"`
	RedisURL       string          `env:"REDIS_URL" doc:"redis:// or rediss:// URL; several for a cluster, separated by commas; replicas share their rate limits there"`
	TrustedProxies config.Prefixes `env:"TRUSTED_PROXIES" doc:"networks, separated by commas, whose X-Forwarded-For is trusted: the load balancers in front of the panel"`
	config.Files
	config.Uploads
	config.Budgets
	config.Keys

	OIDCIssuer       string `env:"OIDC_ISSUER" doc:"URL of an OpenID Connect issuer with whose verified e-mail addresses users sign in; empty: none. Needs PANEL_URL; the redirect address is {PANEL_URL}/api/oidc/callback"`
	OIDCClientID     string `env:"OIDC_CLIENT_ID" doc:"the panel's client id at the issuer"`
	OIDCClientSecret string `env:"OIDC_CLIENT_SECRET" doc:"the panel's client secret at the issuer"`
	OIDCName         string `env:"OIDC_NAME" envDefault:"your identity provider" doc:"name of the issuer on the sign-in page"`

	RateSignIn  config.Rate `env:"-" none:"100/15m" constant:"20/15m" doc:"failed sign-ins from one address (an IPv6 /64) or on one known device"`
	RateUser    config.Rate `env:"-" constant:"1200/1m"` // requests of one user; of one company's users together ten times as many
	RateAccount config.Rate `env:"-" constant:"100/1h"`  // failed sign-ins as one user on unknown devices
	RateChanges config.Rate `env:"-" none:"0" small:"10000/168h" medium:"20000/168h" large:"80000/168h" doc:"changes in the panel by one company's users; of one user an eighth"`
	RateStarts  config.Rate `env:"-" none:"0" constant:"100/24h" doc:"sign-ins of one user"`

	Presence presence.Store `env:"-"` // nil: Redis if configured
	Listener net.Listener   `env:"-"` // used instead of HTTPAddr

	Heartbeat time.Duration `env:"-"` // of event streams; zero: 15 s
}

// Validate returns the errors of the panel's own variables; see [config.Check].
func (c Config) Validate() []string {
	var problems []string
	if c.PanelURL == "" && c.HTTPAddr != "" && c.Listener == nil && !config.LoopbackAddr(c.HTTPAddr) {
		problems = append(problems, "PANEL_URL is required unless HTTP_ADDR is a loopback address")
	}
	if c.OIDCIssuer != "" && (!config.BaseURL(c.OIDCIssuer) || c.OIDCClientID == "" || c.PanelURL == "") {
		problems = append(problems, "OIDC_ISSUER must be an http or https URL and needs OIDC_CLIENT_ID and PANEL_URL")
	}
	return append(problems, config.Redis{RedisURL: c.RedisURL}.Validate()...)
}

// Service is one panel. Run may be called once.
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

// Handler returns the panel without a server. It answers 503 until Run has opened its engines, and after Run.
func (s *Service) Handler() http.Handler { return s.handler }

// Run serves until ctx is done, finishes the in-flight requests and returns nil.
func (s *Service) Run(ctx context.Context) error {
	return service.Run(ctx, serviceName, s.cfg.Base, s.open)
}

// engines holds the connections of the panel.
type engines struct {
	bus   *bus.Bus
	store store.Store
	files file.Store
	redis *ratelimit.Redis // nil: this replica counts alone
	now   func() time.Time // the clock of chats

	presence presence.Store // nil: presence is unknown
}

func (s *Service) open(p *service.Process) (_ service.Work, err error) {
	var e engines
	e.redis, err = storage.RateLimits(p, s.cfg.RedisURL)
	if err != nil {
		return nil, err
	}
	e.presence, err = web.Presence(p, s.cfg.Presence, s.cfg.RedisURL)
	if err != nil {
		return nil, err
	}
	e.store, err = storage.OpenWithSecrets(p, s.cfg.Storage, s.cfg.Secrets)
	if err != nil {
		return nil, err
	}
	e.bus, err = p.Bus(s.meter(e.redis))
	if err != nil {
		return nil, err
	}
	e.now = p.Now()
	files, closeFiles, err := filebackend.Open(s.cfg.Files, e.bus)
	if err != nil {
		return nil, err
	}
	e.files = files
	p.OnClose(func() error { closeFiles(); return nil })
	streaming, stopStreaming := context.WithCancel(context.Background())
	p.OnClose(func() error { stopStreaming(); return nil })
	s.handler.Open(s.api(e, streaming))
	return func(ctx context.Context) error {
		defer context.AfterFunc(ctx, stopStreaming)() // event streams would delay the shutdown
		return web.Serve(ctx, p, s.cfg.Listener, s.cfg.HTTPAddr, s.handler, grace)
	}, nil
}

func (s *Service) meter(redis *ratelimit.Redis) *budget.Meter {
	return budget.New(budget.Config{Rates: s.cfg.Budgets, Redis: redis, Now: s.cfg.Now, Registerer: s.cfg.Registerer})
}

// api returns the handler; its event streams end when streaming is done.
func (s *Service) api(e engines, streaming context.Context) http.Handler {
	limiter := func(name string, rate config.Rate) *ratelimit.Limiter {
		return ratelimit.New(
			ratelimit.Config{Name: name, Rate: rate, Redis: e.redis, Now: s.cfg.Now, Registerer: s.cfg.Registerer},
		)
	}
	operations := admin.New(e.store, e.bus, e.now)
	return api.New(api.Config{
		SignIn: signin.New(signin.Config{
			Store:     e.store,
			Admin:     operations,
			ByAddress: limiter("sign-in", s.cfg.RateSignIn),
			ByAccount: limiter("account", s.cfg.RateAccount),
			Starts:    limiter("sign-ins", s.cfg.RateStarts),
			Logger:    s.cfg.Logger, Now: e.now,
		}),
		OIDC:  s.cfg.oidc(),
		Admin: operations, Store: e.store, Bus: e.bus, Calls: e.bus.RPC(), Streams: e.bus, Files: e.files,
		Attachments: s.attachments(e), Forms: form.Limits{MaxBytes: s.cfg.FileMaxBytes, Timeout: s.cfg.UploadTimeout},
		Presence: e.presence, Typing: limiter("typing", config.Rate{Count: 1, Per: event.TypingPause}),
		Present: limiter("presence", config.Rate{Count: 1, Per: event.TypingPause}),
		Limits: api.Limits{
			User: limiter("user", s.cfg.RateUser), Company: limiter("company", companyRate(s.cfg.RateUser)),
			Address: limiter("panel-address", s.cfg.RateUser), Failures: limiter("panel-failures", s.cfg.RateUser),
			UserChanges:    limiter("panel-user-changes", s.cfg.RateChanges.Part(1, changesPart)),
			CompanyChanges: limiter("panel-changes", s.cfg.RateChanges),
			UserKeys:       limiter("idempotency-keys-agent", s.cfg.RateKeys.Part(1, keysPart)),
			CompanyKeys:    limiter("idempotency-keys-company-agents", s.cfg.RateKeys),
		},
		Idempotent: httpapi.Idempotent{
			Executor: idempotency.NewExecutor(e.store, idempotency.Stored{Messages: e.store}, e.now, s.cfg.Logger),
		},
		Stopping:      streaming,
		Heartbeat:     s.cfg.Heartbeat,
		PublicURL:     s.cfg.PanelURL,
		WidgetBaseURL: s.cfg.WidgetURL,
		ClientBaseURL: s.cfg.ClientURL,
		Version:       ops.ReadBuild().Version,
		OpenAPI:       OpenAPI(),
		Proxies:       s.cfg.TrustedProxies,
		Now:           e.now,
		Logger:        s.cfg.Logger,
		Registerer:    s.cfg.Registerer,
		Tracer:        s.cfg.Tracer,
	})
}

// companyRate returns what all users of a company may ask for: as much as ten busy ones.
func companyRate(user config.Rate) config.Rate {
	const busyUsers = 10
	user.Count *= busyUsers
	return user
}

const (
	// changesPart: a user may change an eighth of what a company's users may change together.
	changesPart = 8
	// keysPart: an agent may add a 64th of a company's idempotency keys.
	keysPart = 64
)

// attachments stores agents' files. The Widget APIs sweep them.
func (s *Service) attachments(e engines) *attachment.Service {
	files := attachment.Bounds(s.cfg.Files, s.cfg.Uploads)
	files.Store = e.files
	files.Records = e.store
	files.Notices = notice.NewBoard(e.store, e.now, s.cfg.Logger)
	files.Logger = s.cfg.Logger
	files.Now = e.now
	return attachment.New(files)
}

// oidc returns nil without an issuer.
func (c Config) oidc() *signin.OIDC {
	if c.OIDCIssuer == "" {
		return nil
	}
	return &signin.OIDC{
		Issuer: c.OIDCIssuer, ClientID: c.OIDCClientID, ClientSecret: c.OIDCClientSecret, Name: c.OIDCName,
		RedirectURL: strings.TrimSuffix(c.PanelURL, "/") + "/api/oidc/callback",
	}
}

// OpenRoutes lists the routes that need no session, as "METHOD /path".
func OpenRoutes() []string { return api.OpenRoutes() }

// Routes returns the permissions of the routes that need a session, by "METHOD /path"; empty: any session.
func Routes() map[string]account.Permission { return api.Routes() }
