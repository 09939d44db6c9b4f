package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/presence"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/pkg/service/storage"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/tracing"
	clientapi "github.com/parley-chat/parley/services/client-api"
	"github.com/parley-chat/parley/services/panel"
	"github.com/parley-chat/parley/services/processor"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
	"github.com/parley-chat/parley/services/standalone/internal/phone"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
)

// services are the five services in one process: each has its own connection to NATS, as in its own process,
// and all share the store.
type services struct {
	client    *clientapi.Service
	widget    *widgetapi.Service
	gateway   *socketgateway.Service
	processor *processor.Service
	panel     *panel.Service
	phone     *phone.Phone // of the demo; nil: none
}

type servicesConfig struct {
	natsURL   string
	store     store.Store
	storePath string
	// secretsPath is the key file of the shared store's secrets.
	secretsPath string
	keys        *credential.KeySet // for the gateway, which would otherwise fetch them over HTTP
	keysFile    string             // for the Widget API
	client      net.Listener       // the Client API's
	panel       net.Listener       // the panel's
	panelURL    string             // public address of the panel; empty: its listener
	widgetURL   string             // address of the demo page and the bot's picture
	clientURL   string
	chats       config.Chats
	phones      config.Phones
	phoneOf     string // the company that has the phone of the demo; empty: there is none
	files       widgetapi.FileConfig
	tokens      config.VisitorTokens
	limits      string // the value of LIMITS
	proxies     config.Prefixes
	bot         processor.BotConfig
	webhooks    processor.WebhookConfig
	presence    presence.Store
	registry    *prometheus.Registry
	tracer      func(service string) *tracing.Tracer
	log         *slog.Logger
}

// newServices builds the services. Each builder sets the defaults of the environment's variables, and then what is
// different in one process: the site and the operations server of standalone replace the listeners of the services.
func newServices(c servicesConfig) (*services, error) {
	s := new(services)
	c.presence = presence.NewMemory(time.Now)
	builders := []func(*services, servicesConfig) error{
		buildClient, buildWidget, buildGateway, buildProcessor, buildPanel,
	}
	for _, build := range builders {
		if err := build(s, c); err != nil {
			return nil, err
		}
	}
	if c.phoneOf != "" {
		s.phone = phone.New(c.base("demo-phone"), c.phoneOf)
	}
	return s, nil
}

// runPhone runs the phone of the demo, or waits for ctx without one.
func (s *services) runPhone(ctx context.Context) error {
	if s.phone == nil {
		<-ctx.Done()
		return nil
	}
	return s.phone.Run(ctx)
}

func buildClient(s *services, c servicesConfig) (err error) {
	cfg := clientapi.Config{Base: c.base("client-api"), Storage: c.storage()}
	if err := config.SetDefaults(&cfg); err != nil {
		return err
	}
	cfg.HTTPAddr = ""
	cfg.OpsAddr = ""
	cfg.Listener = c.client
	cfg.Phones = c.phones
	cfg.DemoPhone = c.phoneOf
	cfg.TrustedProxies = c.proxies
	s.client, err = clientapi.New(cfg)
	return named("client-api", err)
}

func buildWidget(s *services, c servicesConfig) (err error) {
	cfg := widgetapi.Config{
		Base:            c.base("widget-api"),
		Storage:         c.storage(),
		Secrets:         c.secrets(),
		VisitorKeysFile: c.keysFile,
		VisitorTokens:   c.tokens,
		FileConfig:      c.files,
		Presence:        c.presence,
	}
	if err := config.SetDefaults(&cfg); err != nil {
		return err
	}
	cfg.HTTPAddr = ""
	cfg.OpsAddr = ""
	cfg.TrustedProxies = c.proxies
	s.widget, err = widgetapi.New(cfg)
	return named("widget-api", err)
}

func buildGateway(s *services, c servicesConfig) (err error) {
	cfg := socketgateway.Config{Base: c.base("socket-gateway"), KeySource: c.keys, Presence: c.presence}
	if err := config.SetDefaults(&cfg); err != nil {
		return err
	}
	cfg.HTTPAddr = ""
	cfg.OpsAddr = ""
	cfg.DrainTimeout = 0 // no other gateway takes the sockets over
	cfg.TrustedProxies = c.proxies
	s.gateway, err = socketgateway.New(cfg)
	return named("socket-gateway", err)
}

func buildProcessor(s *services, c servicesConfig) (err error) {
	cfg := processor.Config{
		Base:          c.base("processor"),
		Storage:       c.storage(),
		Secrets:       c.secrets(),
		BotConfig:     c.bot,
		WebhookConfig: c.webhooks,
		Recorder:      true,
		Dispatcher:    true,
		AssetsURL:     c.widgetURL,
	}
	if err := config.SetDefaults(&cfg); err != nil {
		return err
	}
	cfg.OpsAddr = ""
	s.processor, err = processor.New(cfg)
	return named("processor", err)
}

func buildPanel(s *services, c servicesConfig) (err error) {
	cfg := panel.Config{
		Base:      c.base("panel"),
		Storage:   c.storage(),
		Secrets:   c.secrets(),
		PanelURL:  c.panelURL,
		WidgetURL: c.widgetURL,
		ClientURL: c.clientURL,
		Files:     c.files.Files,
		Uploads:   c.files.Uploads,
		Presence:  c.presence,
	}
	if err := config.SetDefaults(&cfg); err != nil {
		return err
	}
	cfg.HTTPAddr = ""
	cfg.OpsAddr = ""
	cfg.Listener = c.panel
	cfg.TrustedProxies = c.proxies
	s.panel, err = panel.New(cfg)
	return named("panel", err)
}

// base adds the service's name to its logs and metrics: the five services of the process have the same metrics.
func (c servicesConfig) base(name string) service.Base {
	return service.Base{
		NATS:       config.NATS{NATSURL: c.natsURL},
		Limits:     config.Limits{Limits: c.limits},
		Logger:     c.log.With("service", name),
		Tracer:     c.tracer(name),
		Registerer: prometheus.WrapRegistererWith(prometheus.Labels{"service": name}, c.registry),
	}
}

func (c servicesConfig) storage() storage.Config {
	return storage.Config{Store: config.Store{SQLitePath: c.storePath}, Chats: c.chats, SharedStore: c.store}
}

func (c servicesConfig) secrets() config.Secrets {
	return config.Secrets{SecretsKeyFile: c.secretsPath}
}

func named(service string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", service, err)
	}
	return nil
}
