package main

import (
	"fmt"
	"log/slog"
	"net"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/tracing"
	clientapi "github.com/parley-chat/parley/services/client-api"
	"github.com/parley-chat/parley/services/panel"
	"github.com/parley-chat/parley/services/processor"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
)

// services are the five services, configured for one process: each has its own connection to NATS, as when it runs by itself, and
// all share the store.
type services struct {
	client    *clientapi.Service
	widget    *widgetapi.Service
	gateway   *socketgateway.Service
	processor *processor.Service
	panel     *panel.Service
}

type servicesConfig struct {
	natsURL   string
	store     store.Store
	storePath string
	keys      *credential.KeySet // for the gateway, which would otherwise fetch them over HTTP
	keysFile  string             // for the Widget API
	client    net.Listener       // the Client API's
	panel     net.Listener       // the panel's
	panelURL  string             // where browsers reach the panel; empty: its listener
	widgetURL string             // where the demo page and the bot's picture are
	clientURL string
	chats     config.Chats
	files     widgetapi.FileConfig
	limits    Limits
	bot       processor.BotConfig
	webhooks  processor.WebhookConfig
	registry  *prometheus.Registry
	tracer    func(service string) *tracing.Tracer
	log       *slog.Logger
}

func newServices(c servicesConfig) (*services, error) {
	s := new(services)
	for _, build := range []func(*services, servicesConfig) error{buildClient, buildWidget, buildGateway, buildProcessor, buildPanel} {
		if err := build(s, c); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func buildClient(s *services, c servicesConfig) (err error) {
	cfg := clientapi.Config{NATS: c.nats(), Store: c.sqlite(), SharedStore: c.store}
	if err := config.SetDefaults(&cfg); err != nil {
		return err
	}
	cfg.HTTPAddr, cfg.OpsAddr, cfg.Chats = "", "", c.chats
	cfg.Listener, cfg.Logger, cfg.Registerer, cfg.Tracer = c.client, c.logger("client-api"), c.registerer("client-api"), c.tracer("client-api")
	c.limits.limitClient(&cfg)
	s.client, err = clientapi.New(cfg)
	return named("client-api", err)
}

func buildWidget(s *services, c servicesConfig) (err error) {
	cfg := widgetapi.Config{NATS: c.nats(), Store: c.sqlite(), SharedStore: c.store, VisitorKeysFile: c.keysFile, FileConfig: c.files}
	if err := config.SetDefaults(&cfg); err != nil {
		return err
	}
	cfg.HTTPAddr, cfg.OpsAddr, cfg.Chats = "", "", c.chats
	cfg.Logger, cfg.Registerer, cfg.Tracer = c.logger("widget-api"), c.registerer("widget-api"), c.tracer("widget-api")
	c.limits.limitWidget(&cfg)
	s.widget, err = widgetapi.New(cfg)
	return named("widget-api", err)
}

func buildGateway(s *services, c servicesConfig) (err error) {
	cfg := socketgateway.Config{NATS: c.nats()}
	if err := config.SetDefaults(&cfg); err != nil {
		return err
	}
	cfg.HTTPAddr, cfg.OpsAddr, cfg.DrainTimeout = "", "", 0
	c.limits.limitGateway(&cfg)
	cfg.KeySource, cfg.Logger, cfg.Registerer, cfg.Tracer = c.keys, c.logger("socket-gateway"), c.registerer("socket-gateway"), c.tracer("socket-gateway")
	s.gateway, err = socketgateway.New(cfg)
	return named("socket-gateway", err)
}

func buildProcessor(s *services, c servicesConfig) (err error) {
	cfg := processor.Config{NATS: c.nats(), Store: c.sqlite(), SharedStore: c.store, BotConfig: c.bot, WebhookConfig: c.webhooks, Recorder: true, Dispatcher: true, AssetsURL: c.widgetURL}
	if err := config.SetDefaults(&cfg); err != nil {
		return err
	}
	cfg.OpsAddr, cfg.Chats = "", c.chats
	cfg.Logger, cfg.Registerer, cfg.Tracer = c.logger("processor"), c.registerer("processor"), c.tracer("processor")
	s.processor, err = processor.New(cfg)
	return named("processor", err)
}

func buildPanel(s *services, c servicesConfig) (err error) {
	cfg := panel.Config{NATS: c.nats(), Store: c.sqlite(), SharedStore: c.store, PanelURL: c.panelURL, WidgetURL: c.widgetURL, ClientURL: c.clientURL,
		FileConfig: panel.FileConfig{
			FileStore: c.files.FileStore, FileMaxBytes: c.files.FileMaxBytes, FileRetention: c.files.FileRetention, S3Endpoint: c.files.S3Endpoint,
			S3Region: c.files.S3Region, S3Bucket: c.files.S3Bucket, S3AccessKeyID: c.files.S3AccessKeyID, S3SecretAccessKey: c.files.S3SecretAccessKey,
		},
	}
	if err := config.SetDefaults(&cfg); err != nil {
		return err
	}
	cfg.HTTPAddr, cfg.OpsAddr, cfg.Chats, cfg.TrustedProxies = "", "", c.chats, c.limits.TrustedProxies
	cfg.Listener, cfg.Logger, cfg.Registerer, cfg.Tracer = c.panel, c.logger("panel"), c.registerer("panel"), c.tracer("panel")
	c.limits.limitPanel(&cfg)
	s.panel, err = panel.New(cfg)
	return named("panel", err)
}

func (c servicesConfig) nats() config.NATS { return config.NATS{NATSURL: c.natsURL} }

func (c servicesConfig) sqlite() config.Store { return config.Store{SQLitePath: c.storePath} }

func (c servicesConfig) logger(service string) *slog.Logger { return c.log.With("service", service) }

// registerer puts the service's name on each of its metrics: five services count the same things in one process.
func (c servicesConfig) registerer(service string) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"service": service}, c.registry)
}

func named(service string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", service, err)
	}
	return nil
}
