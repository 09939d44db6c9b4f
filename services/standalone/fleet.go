package main

import (
	"fmt"
	"log/slog"
	"net"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/tracing"
	clientapi "github.com/parley-chat/parley/services/client-api"
	"github.com/parley-chat/parley/services/processor"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
	"github.com/parley-chat/parley/services/standalone/internal/engines"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
)

// fleet is the four services, configured for one process: each has its own connections, as when it runs by itself.
type fleet struct {
	client    *clientapi.Service
	widget    *widgetapi.Service
	gateway   *socketgateway.Service
	processor *processor.Service
}

type fleetConfig struct {
	engines   *engines.Set
	keys      *credential.KeySet // for the gateway, which would otherwise fetch them over HTTP
	keysFile  string             // for the Widget API
	client    net.Listener       // the Client API's
	widgetURL string             // where the demo page and the bot's picture are
	chats     config.Chats
	files     widgetapi.FileConfig
	limits    Limits
	bot       processor.BotConfig
	registry  *prometheus.Registry
	tracer    func(service string) *tracing.Tracer
	log       *slog.Logger
}

func newFleet(c fleetConfig) (*fleet, error) {
	f := new(fleet)
	for _, build := range []func(*fleet, fleetConfig) error{buildClient, buildWidget, buildGateway, buildProcessor} {
		if err := build(f, c); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func buildClient(f *fleet, c fleetConfig) (err error) {
	cfg := clientapi.Config{NATS: c.nats(), MongoDB: c.mongodb()}
	if err := config.SetDefaults(&cfg); err != nil {
		return err
	}
	cfg.HTTPAddr, cfg.OpsAddr, cfg.Chats = "", "", c.chats
	cfg.Listener, cfg.Logger, cfg.Registerer, cfg.Tracer = c.client, c.logger("client-api"), c.registerer("client-api"), c.tracer("client-api")
	c.limits.limitClient(&cfg, c.engines.RedisURL())
	f.client, err = clientapi.New(cfg)
	return named("client-api", err)
}

func buildWidget(f *fleet, c fleetConfig) (err error) {
	cfg := widgetapi.Config{NATS: c.nats(), MongoDB: c.mongodb(), VisitorKeysFile: c.keysFile, FileConfig: c.files}
	if err := config.SetDefaults(&cfg); err != nil {
		return err
	}
	cfg.HTTPAddr, cfg.OpsAddr, cfg.Chats = "", "", c.chats
	cfg.Logger, cfg.Registerer, cfg.Tracer = c.logger("widget-api"), c.registerer("widget-api"), c.tracer("widget-api")
	c.limits.limitWidget(&cfg, c.engines.RedisURL())
	f.widget, err = widgetapi.New(cfg)
	return named("widget-api", err)
}

func buildGateway(f *fleet, c fleetConfig) (err error) {
	cfg := socketgateway.Config{NATS: c.nats(), Redis: config.Redis{RedisURL: c.engines.RedisURL()}}
	if err := config.SetDefaults(&cfg); err != nil {
		return err
	}
	cfg.HTTPAddr, cfg.OpsAddr, cfg.DrainTimeout = "", "", 0
	c.limits.limitGateway(&cfg)
	cfg.KeySource, cfg.Logger, cfg.Registerer, cfg.Tracer = c.keys, c.logger("socket-gateway"), c.registerer("socket-gateway"), c.tracer("socket-gateway")
	f.gateway, err = socketgateway.New(cfg)
	return named("socket-gateway", err)
}

func buildProcessor(f *fleet, c fleetConfig) (err error) {
	cfg := processor.Config{NATS: c.nats(), MongoDB: c.mongodb(), BotConfig: c.bot, Recorder: true, Dispatcher: true, AssetsURL: c.widgetURL}
	if err := config.SetDefaults(&cfg); err != nil {
		return err
	}
	cfg.OpsAddr, cfg.Chats = "", c.chats
	cfg.Logger, cfg.Registerer, cfg.Tracer = c.logger("processor"), c.registerer("processor"), c.tracer("processor")
	f.processor, err = processor.New(cfg)
	return named("processor", err)
}

func (c fleetConfig) nats() config.NATS { return config.NATS{NATSURL: c.engines.NATSURL()} }

func (c fleetConfig) mongodb() config.MongoDB {
	return config.MongoDB{MongoDBURI: c.engines.MongoDBURI(), MongoDBDatabase: database}
}

func (c fleetConfig) logger(service string) *slog.Logger { return c.log.With("service", service) }

// registerer puts the service's name on each of its metrics: four services count the same things in one process.
func (c fleetConfig) registerer(service string) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"service": service}, c.registry)
}

func named(service string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", service, err)
	}
	return nil
}
