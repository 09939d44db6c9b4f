package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/services/processor"
	"github.com/parley-chat/parley/services/standalone/internal/crew"
	"github.com/parley-chat/parley/services/standalone/internal/datadir"
	"github.com/parley-chat/parley/services/standalone/internal/demo"
	"github.com/parley-chat/parley/services/standalone/internal/edge"
	"github.com/parley-chat/parley/services/standalone/internal/engines"
	"github.com/parley-chat/parley/services/standalone/internal/guide"
	"github.com/parley-chat/parley/services/standalone/internal/seed"
)

const (
	demoFile = "demo.json"
	keysFile = "visitor-keys.json"

	// grace is how long requests that are in flight may take when the process stops.
	grace = 10 * time.Second
)

// house is everything that runs on the engines.
type house struct {
	ports    *ports
	keys     *credential.KeySet
	registry *prometheus.Registry
	log      *slog.Logger
	fleet    *fleet
	public   http.Handler // the widget's address: Widget API, sockets, demo page
	site     http.Handler // a page of another origin with the widget
	probes   *probes
}

// serve runs everything until ctx is done.
func serve(ctx context.Context, cfg Config, log *slog.Logger, out io.Writer) error {
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
	set, err := startEngines(cfg, dir, log)
	if err != nil {
		return err
	}
	defer set.Stop()

	urls := seed.URLs{Client: baseURL(p.client), Widget: baseURL(p.widget), NATS: set.NATSURL(), MongoDB: set.MongoDBAddress()}
	d, keys, err := prepare(ctx, dir, set, urls, log)
	if err != nil {
		return err
	}
	t, err := openTraces(cfg.Tracing, log)
	if err != nil {
		return err
	}
	defer t.stop()
	h, err := build(cfg, dir, p, set, d, keys, t, log)
	if err != nil {
		return err
	}
	return h.run(ctx, func() error { return guide.HowTo(out, d, dir.Path(demoFile), baseURL(p.ops), baseURL(p.site)) })
}

// serveEngines runs only the engines, until ctx is done.
func serveEngines(ctx context.Context, cfg Config, log *slog.Logger, out io.Writer) error {
	dir, err := datadir.Open(cfg.DataDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	set, err := startEngines(cfg, dir, log)
	if err != nil {
		return err
	}
	defer set.Stop()
	urls := seed.URLs{Client: "http://" + cfg.ClientAddr, Widget: "http://" + cfg.WidgetAddr, NATS: set.NATSURL(), MongoDB: set.MongoDBAddress()}
	if _, _, err := prepare(ctx, dir, set, urls, log); err != nil {
		return err
	}
	keys, err := dir.Absolute(keysFile)
	if err != nil {
		return err
	}
	err = guide.Engines(out, []guide.Setting{
		{Name: "NATS_URL", Value: set.NATSURL()},
		{Name: "MONGODB_URI", Value: set.MongoDBURI()},
		{Name: "REDIS_URL", Value: set.RedisURL()},
		{Name: "VISITOR_KEYS_FILE", Value: keys},
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func startEngines(cfg Config, dir *datadir.Dir, log *slog.Logger) (*engines.Set, error) {
	for _, e := range []struct{ name, addr string }{
		{"PARLEY_NATS_ADDR", cfg.NATSAddr}, {"PARLEY_MONGODB_ADDR", cfg.MongoDBAddr}, {"PARLEY_REDIS_ADDR", cfg.RedisAddr},
	} {
		if err := probe(e.name, e.addr); err != nil {
			return nil, err
		}
	}
	return engines.Start(engines.Config{
		NATSAddr: cfg.NATSAddr, MongoDBAddr: cfg.MongoDBAddr, RedisAddr: cfg.RedisAddr, Logger: log,
	}, dir)
}

// prepare makes what the first start makes: the demo company with its file, and the visitor keys.
func prepare(ctx context.Context, dir *datadir.Dir, set *engines.Set, urls seed.URLs, log *slog.Logger) (
	d seed.Demo, keys *credential.KeySet, err error,
) {
	s, err := openStore(set.MongoDBURI(), log)
	if err != nil {
		return d, nil, err
	}
	defer func() { err = errors.Join(err, closeStore(s)) }()
	if keys, err = visitorKeys(dir.Path(keysFile)); err != nil {
		return d, nil, err
	}
	d, err = seed.Run(ctx, s, dir.Path(demoFile), urls, time.Now())
	return d, keys, err
}

// build wires everything; nothing runs yet.
func build(cfg Config, dir *datadir.Dir, p *ports, set *engines.Set, d seed.Demo, keys *credential.KeySet, t *traces, log *slog.Logger) (*house, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f, err := newFleet(fleetConfig{
		engines: set, keys: keys, keysFile: dir.Path(keysFile), client: p.client, widgetURL: d.WidgetBaseURL,
		chats: cfg.Chats, files: cfg.FileConfig, limits: cfg.Limits, bot: cfg.BotConfig, registry: registry, tracer: t.of, log: log,
	})
	if err != nil {
		return nil, err
	}
	pages := demo.Config{
		AppID: d.AppID, WidgetBaseURL: d.WidgetBaseURL, ClientBaseURL: d.ClientBaseURL, TokenCommand: guide.TokenCommand(dir.Path(demoFile)),
		SiteURL: baseURL(p.site),
	}
	page, err := demo.Handler(pages, processor.DemoAssets())
	if err != nil {
		return nil, err
	}
	site, err := demo.Site(pages)
	if err != nil {
		return nil, err
	}
	probes, err := newProbes(set, log)
	if err != nil {
		return nil, err
	}
	public := edge.Handler(f.widget.Handler(), f.gateway.Handler(), page)
	return &house{ports: p, keys: keys, registry: registry, log: log, fleet: f, public: public, site: site, probes: probes}, nil
}

// run starts the members in the order of their dependencies, calls ready when all of it works, and stops them from the outside
// in: first nobody is sent here any more, then requests finish and sockets close, then consumers drain.
func (h *house) run(ctx context.Context, ready func() error) (err error) {
	defer func() { err = errors.Join(err, h.probes.Close()) }()
	status := ops.New(ops.Config{
		Listener: h.ports.ops, Service: "standalone", Checks: h.probes.Checks(), Gatherer: h.registry, Logger: h.log,
	})
	c := crew.New(ctx)
	operations := c.Start("ops", status.Run)
	processing := c.Start("processor", h.fleet.processor.Run)
	widget := c.Start("widget-api", h.fleet.widget.Run)
	keys := c.Start("visitor keys", func(ctx context.Context) error { return h.keys.Run(ctx, h.log, nil) })
	gateway := c.Start("socket-gateway", h.fleet.gateway.Run)
	public := c.Start("widget server", func(ctx context.Context) error {
		return httpapi.Serve(ctx, h.ports.widget, h.public, h.log, grace)
	})
	site := c.Start("demo site", func(ctx context.Context) error { return httpapi.Serve(ctx, h.ports.site, h.site, h.log, grace) })
	client := c.Start("client-api", h.fleet.client.Run)

	err = h.probes.Await(c.Ended())
	if err == nil {
		err = ready()
	}
	if err == nil {
		<-c.Ended().Done()
	}
	status.SetStopping()
	crew.Stop(client, gateway, public, site)
	crew.Stop(widget, keys)
	crew.Stop(processing)
	crew.Stop(operations)
	if ctx.Err() != nil { // asked to stop while it was still starting
		err = nil
	}
	return errors.Join(err, c.Close())
}
