package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/embedded"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/secret"
	"github.com/parley-chat/parley/services/processor"
	"github.com/parley-chat/parley/services/standalone/internal/datadir"
	"github.com/parley-chat/parley/services/standalone/internal/demo"
	"github.com/parley-chat/parley/services/standalone/internal/guide"
	"github.com/parley-chat/parley/services/standalone/internal/router"
	"github.com/parley-chat/parley/services/standalone/internal/seed"
	"github.com/parley-chat/parley/services/standalone/internal/supervisor"
)

const (
	demoFile = "demo.json"
	keysFile = "visitor-keys.json"

	// partitions is the number of partitions of a stream that one process reads. Each has a consumer, which
	// costs memory when idle.
	partitions = 4

	// grace bounds how long in-flight requests may take at shutdown.
	grace = 10 * time.Second
)

// app is everything that runs on the engines.
type app struct {
	ports    *ports
	keys     *credential.KeySet
	secrets  *secret.KeySet
	registry *prometheus.Registry
	log      *slog.Logger
	nats     *embedded.NATS
	services *services
	public   http.Handler // the widget's address: Widget API, sockets, demo page
	site     http.Handler // a page of another origin with the widget
	probes   *probes
}

// serve runs everything until ctx is done.
func serve(ctx context.Context, cfg Config, log *slog.Logger, out io.Writer) (err error) {
	dir, err := datadir.Open(cfg.DataDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	p, err := listen(cfg)
	if err != nil {
		return err
	}
	defer p.Close()
	cfg.StreamPartitions = cmp.Or(cfg.StreamPartitions, partitions)
	e, err := startEngines(cfg, dir, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.stop()) }()

	d, keys, err := prepare(
		ctx,
		dir,
		e,
		seed.Start{
			Bot:    cfg.Bot,
			Client: baseURL(p.client),
			Widget: baseURL(p.widget),
			Panel:  cmp.Or(cfg.PanelURL, baseURL(p.panel)),
		},
	)
	if err != nil {
		return err
	}
	t, err := openTraces(log)
	if err != nil {
		return err
	}
	defer t.stop()
	a, err := build(cfg, dir, p, e, d, keys, t, log)
	if err != nil {
		return err
	}
	return a.run(ctx, func() error {
		debug.FreeOSMemory() // startup needs more memory than idling: password hashing, the migrations
		answering := guide.Bot{Name: cfg.Bot, Webhook: cfg.BotWebhookURL, Model: cfg.LLMModel, ModelURL: cfg.LLMBaseURL}
		phoneURL := ""
		if cfg.showsPhone() {
			phoneURL = d.WidgetBaseURL + "/demo/phone"
		}
		return guide.HowTo(out, d, answering, dir.Path(demoFile), baseURL(p.ops), baseURL(p.site), phoneURL)
	})
}

// serveEngines runs only the engines, until ctx is done.
func serveEngines(ctx context.Context, cfg Config, log *slog.Logger, out io.Writer) (err error) {
	dir, err := datadir.Open(cfg.DataDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	e, err := startEngines(cfg, dir, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.stop()) }()
	start := seed.Start{
		Bot:    cfg.Bot,
		Client: "http://" + cfg.ClientAddr,
		Widget: "http://" + cfg.WidgetAddr,
		Panel:  cmp.Or(cfg.PanelURL, "http://"+cfg.PanelAddr),
	}
	if _, _, err := prepare(ctx, dir, e, start); err != nil {
		return err
	}
	keys, err := dir.Absolute(keysFile)
	if err != nil {
		return err
	}
	err = guide.Engines(out, []guide.Setting{
		{Name: "NATS_URL", Value: e.nats.URL()},
		{Name: "SQLITE_PATH", Value: e.storePath},
		{Name: "SECRETS_KEY_FILE", Value: e.secretsPath},
		{Name: "VISITOR_KEYS_FILE", Value: keys},
	})
	if err != nil {
		return err
	}
	return e.nats.Recover(ctx)
}

// prepare creates the demo company, its file and the visitor keys at the first start.
func prepare(
	ctx context.Context,
	dir *datadir.Dir,
	e *engines,
	start seed.Start,
) (d seed.Demo, keys *credential.KeySet, err error) {
	keys, err = visitorKeys(dir.Path(keysFile))
	if err != nil {
		return d, nil, err
	}
	start.NATS = e.nats.URL()
	start.SQLitePath = e.storePath
	d, err = seed.Run(ctx, e.store, dir.Path(demoFile), start, time.Now())
	return d, keys, err
}

// build wires everything without starting it.
func build(
	cfg Config,
	dir *datadir.Dir,
	p *ports,
	e *engines,
	d seed.Demo,
	keys *credential.KeySet,
	t *traces,
	log *slog.Logger,
) (*app, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector())
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	c := servicesConfig{
		natsURL:     e.nats.URL(),
		store:       e.store,
		storePath:   e.storePath,
		secretsPath: e.secretsPath,
		keys:        keys,
		keysFile:    dir.Path(keysFile),
		client:      p.client,
		panel:       p.panel,
		panelURL:    cfg.PanelURL,
		widgetURL:   d.WidgetBaseURL,
		clientURL:   d.ClientBaseURL,

		chats:    cfg.Chats,
		phones:   cfg.Phones,
		files:    cfg.FileConfig,
		tokens:   cfg.VisitorTokens,
		limits:   cfg.Limits,
		proxies:  cfg.TrustedProxies,
		bot:      cfg.BotConfig,
		webhooks: cfg.WebhookConfig,
		registry: registry,
		tracer:   t.of,
		log:      log,
	}
	if cfg.showsPhone() {
		c.phoneOf = d.CompanyID
	}
	s, err := newServices(c)
	if err != nil {
		return nil, err
	}
	pages := demo.Config{
		AppID:         d.AppID,
		WidgetBaseURL: d.WidgetBaseURL,
		ClientBaseURL: d.ClientBaseURL,
		TokenCommand:  guide.TokenCommand(dir.Path(demoFile)),
		SiteURL:       baseURL(p.site),
	}
	if s.phone != nil {
		pages.Phone = s.phone.Handler()
	}
	page, err := demo.Handler(pages, processor.DemoAssets())
	if err != nil {
		return nil, err
	}
	site, err := demo.Site(pages)
	if err != nil {
		return nil, err
	}
	probes, err := newProbes(e.nats, e.store, log)
	if err != nil {
		return nil, err
	}
	public := router.Handler(s.widget.Handler(), s.gateway.Handler(), page)
	return &app{
		ports:    p,
		keys:     keys,
		secrets:  e.secrets,
		registry: registry,
		log:      log,
		nats:     e.nats,
		services: s,
		public:   public,
		site:     site,
		probes:   probes,
	}, nil
}

// run starts the members in the order of their dependencies, calls ready when all of them work, and stops
// them in the opposite order: first readiness ends, then requests finish and sockets close, then consumers
// drain.
func (a *app) run(ctx context.Context, ready func() error) (err error) {
	defer a.probes.Close()
	status := ops.New(ops.Config{
		Listener: a.ports.ops, Service: "standalone", Checks: a.probes.Checks(), Gatherer: a.registry, Logger: a.log,
	})
	c := supervisor.New(ctx)
	operations := c.Start("ops", status.Run)
	engine := c.Start("nats", a.nats.Recover)
	processing := c.Start("processor", a.services.processor.Run)
	widget := c.Start("widget-api", a.services.widget.Run)
	keys := c.Start("visitor keys", func(ctx context.Context) error { return a.keys.Run(ctx, a.log, nil) })
	secrets := c.Start("keys of secrets", func(ctx context.Context) error { return a.secrets.Run(ctx, a.log) })
	gateway := c.Start("socket-gateway", a.services.gateway.Run)
	public := c.Start("widget server", func(ctx context.Context) error {
		return httpapi.Serve(ctx, a.ports.widget, a.public, a.log, grace)
	})
	site := c.Start(
		"demo site",
		func(ctx context.Context) error { return httpapi.Serve(ctx, a.ports.site, a.site, a.log, grace) },
	)
	client := c.Start("client-api", a.services.client.Run)
	panel := c.Start("panel", a.services.panel.Run)
	phone := c.Start("demo phone", a.services.runPhone)

	err = a.probes.Await(c.Ended())
	if err == nil {
		err = ready()
	}
	if err == nil {
		<-c.Ended().Done()
	}
	status.SetStopping()
	supervisor.Stop(client, gateway, public, site, panel, phone)
	supervisor.Stop(widget, keys, secrets)
	supervisor.Stop(processing)
	supervisor.Stop(operations, engine)
	if ctx.Err() != nil { // stopped during the start
		err = nil
	}
	return errors.Join(err, c.Close())
}
