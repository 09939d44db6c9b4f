package panel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/backend"
	"github.com/parley-chat/parley/pkg/tracing"
	api "github.com/parley-chat/parley/services/panel/internal/http"
	"github.com/parley-chat/parley/services/panel/internal/signin"
	"github.com/parley-chat/parley/services/panel/internal/upload"
)

const (
	serviceName = "panel"

	// grace is how long requests that are in flight at the stop may take: longer than a publish waits for its ack.
	grace = 10 * time.Second

	// defaultFileBytes is FILE_MAX_BYTES of a Config that was written by hand.
	defaultFileBytes = 25 << 20
)

// Config is what the panel needs.
type Config struct {
	config.Ops
	config.NATS
	config.Store
	config.Chats
	config.Tracing

	HTTPAddr       string          `env:"HTTP_ADDR" envDefault:":8080" doc:"address of the panel"`
	PanelURL       string          `env:"PANEL_URL" doc:"https address under which browsers reach the panel, such as https://panel.example.com; required unless HTTP_ADDR is a loopback address"`
	WidgetURL      string          `env:"WIDGET_URL,required" doc:"address under which browsers reach the Widget API: for the snippet, the preview and visitors' files"`
	ClientURL      string          `env:"CLIENT_URL,required" doc:"address under which companies' systems reach the Client API: for the examples"`
	RedisURL       string          `env:"REDIS_URL" doc:"redis:// or rediss:// URL; several for a cluster, separated by commas; replicas count their limits there"`
	TrustedProxies config.Prefixes `env:"TRUSTED_PROXIES" doc:"networks, separated by commas, whose X-Forwarded-For is believed: the load balancers before the panel"`
	FileConfig

	OIDCIssuer       string `env:"OIDC_ISSUER" doc:"URL of an OpenID Connect issuer with whose verified e-mail addresses users sign in; empty: none. Needs PANEL_URL; the redirect address is {PANEL_URL}/api/oidc/callback"`
	OIDCClientID     string `env:"OIDC_CLIENT_ID" doc:"the panel's client id at the issuer"`
	OIDCClientSecret string `env:"OIDC_CLIENT_SECRET" doc:"the panel's client secret at the issuer"`
	OIDCName         string `env:"OIDC_NAME" envDefault:"your identity provider" doc:"what the sign-in page calls the issuer"`

	RateSignIn  config.Rate `env:"RATE_LIMIT_SIGN_IN" envDefault:"20/15m" doc:"attempts to sign in from one address (an IPv6 /64), count/time; 0: no limit"`
	RateAccount config.Rate `env:"RATE_LIMIT_ACCOUNT" envDefault:"100/1h" doc:"attempts to sign in as one user, count/time; 0: no limit"`

	Logger      *slog.Logger               `env:"-"`
	Registerer  prometheus.Registerer      `env:"-"` // nil: no metrics
	Tracer      *tracing.Tracer            `env:"-"` // nil: no traces
	Listener    net.Listener               `env:"-"` // taken over instead of HTTPAddr
	OpsListener net.Listener               `env:"-"` // taken over instead of OpsAddr
	InProcess   nats.InProcessConnProvider `env:"-"` // connects to a NATS server in this process, without a socket
	SharedStore store.Store                `env:"-"` // used instead of opening one; its owner closes it
	Now         func() time.Time           `env:"-"` // the clock; nil: the real one
}

// Validate says what is wrong with the panel's own variables; see [config.Check].
func (c Config) Validate() []string {
	var problems []string
	for _, u := range []struct{ name, value string }{{"PANEL_URL", c.PanelURL}, {"WIDGET_URL", c.WidgetURL}, {"CLIENT_URL", c.ClientURL}} {
		if u.value != "" && !isBaseURL(u.value) {
			problems = append(problems, u.name+" must be an http or https URL")
		}
	}
	if c.PanelURL == "" && c.HTTPAddr != "" && c.Listener == nil && !config.LoopbackAddr(c.HTTPAddr) {
		problems = append(problems, "PANEL_URL is required unless HTTP_ADDR is a loopback address")
	}
	if c.OIDCIssuer != "" && (!isBaseURL(c.OIDCIssuer) || c.OIDCClientID == "" || c.PanelURL == "") {
		problems = append(problems, "OIDC_ISSUER must be an http or https URL and needs OIDC_CLIENT_ID and PANEL_URL")
	}
	return append(problems, config.Redis{RedisURL: c.RedisURL}.Validate()...)
}

func isBaseURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.RawQuery == "" && u.Fragment == "" && u.User == nil
}

// Service is one panel. It is run once.
type Service struct {
	cfg        Config
	bus        *bus.Bus
	store      store.Store
	files      file.Store
	closeFiles func()
	redis      *ratelimit.Redis // nil: this replica counts by itself
	handler    http.Handler

	stopping context.Context // done when streams of events are to end
	stop     context.CancelFunc
}

// New returns a service that connects in the background but does not listen yet; Run closes what it has opened. Its error names
// everything that is missing or wrong.
func New(cfg Config) (*Service, error) {
	var problems []string
	if cfg.Logger == nil {
		problems = append(problems, "Logger is missing")
	}
	if err := config.Check(&cfg, problems...); err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Service{cfg: cfg}
	s.stopping, s.stop = context.WithCancel(context.Background())
	if err := s.open(); err != nil {
		return nil, err
	}
	s.handler = s.api()
	return s, nil
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
		Logger: s.cfg.Logger, Registerer: s.cfg.Registerer, Tracer: s.cfg.Tracer,
	})
	if err != nil {
		return errors.Join(err, backend.Close(s.store))
	}
	if err := s.openFiles(); err != nil {
		s.bus.Close()
		return errors.Join(err, backend.Close(s.store))
	}
	return nil
}

func (s *Service) api() http.Handler {
	limiter := func(name string, rate config.Rate) *ratelimit.Limiter {
		return ratelimit.New(ratelimit.Config{Name: name, Rate: rate, Redis: s.redis, Now: s.cfg.Now, Registerer: s.cfg.Registerer})
	}
	operations := admin.New(s.store, s.bus, s.cfg.Now)
	return api.New(api.Config{
		SignIn: signin.New(signin.Config{
			Store: s.store, Admin: operations, ByAddress: limiter("sign-in", s.cfg.RateSignIn), ByAccount: limiter("account", s.cfg.RateAccount),
			Logger: s.cfg.Logger, Now: s.cfg.Now,
		}),
		OIDC:  s.cfg.oidc(),
		Admin: operations, Store: s.store, Bus: s.bus, Streams: s.bus, Files: s.files,
		Uploads: &upload.Service{
			Store: s.files, Records: s.store, BaseURL: s.cfg.WidgetURL, MaxBytes: cmp.Or(s.cfg.FileMaxBytes, defaultFileBytes), Retention: s.cfg.FileRetention, Now: s.cfg.Now,
		},
		Once: idempotency.NewExecutor(s.store, s.cfg.Now, s.cfg.Logger), Stopping: s.stopping,
		PublicURL: s.cfg.PanelURL, WidgetBaseURL: s.cfg.WidgetURL, ClientBaseURL: s.cfg.ClientURL, Version: ops.ReadBuild().Version,
		Proxies: s.cfg.TrustedProxies, Now: s.cfg.Now, Logger: s.cfg.Logger, Registerer: s.cfg.Registerer, Tracer: s.cfg.Tracer,
	})
}

// oidc is nil where no issuer is set up.
func (c Config) oidc() *signin.OIDC {
	if c.OIDCIssuer == "" {
		return nil
	}
	return &signin.OIDC{
		Issuer: c.OIDCIssuer, ClientID: c.OIDCClientID, ClientSecret: c.OIDCClientSecret, Name: c.OIDCName,
		RedirectURL: strings.TrimSuffix(c.PanelURL, "/") + "/api/oidc/callback",
	}
}

// Handler returns the panel. It works from New until Run returns.
func (s *Service) Handler() http.Handler { return s.handler }

// Run serves until ctx is done, finishes the requests that are in flight and returns nil.
func (s *Service) Run(ctx context.Context) (err error) {
	defer func() { s.closeFiles(); s.bus.Close(); err = errors.Join(err, backend.Close(s.store), s.redis.Close()) }()
	server := ops.New(ops.Config{
		Addr: s.cfg.OpsAddr, PprofAddr: s.cfg.PprofAddr, Listener: s.cfg.OpsListener, Service: serviceName, Logger: s.cfg.Logger, Gatherer: gatherer(s.cfg.Registerer),
		Checks: []ops.Check{{Name: "nats", Check: s.bus.Ready}, {Name: "store", Check: s.store.Ready}},
	})
	opsCtx, stopOps := context.WithCancel(context.WithoutCancel(ctx))
	group, running := errgroup.WithContext(ctx)
	defer context.AfterFunc(running, server.SetStopping)()
	defer s.stop()
	defer context.AfterFunc(running, s.stop)()
	if s.cfg.OpsAddr != "" || s.cfg.OpsListener != nil {
		group.Go(func() error { return server.Run(opsCtx) })
	}
	group.Go(func() error {
		defer stopOps()
		return s.serve(running)
	})
	return group.Wait()
}

func (s *Service) serve(ctx context.Context) error {
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

// Routes lists the routes that need a session, as "METHOD /path".
func Routes() []string { return api.Routes() }
