package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/backend"
	"github.com/parley-chat/parley/pkg/tracing"
	"github.com/parley-chat/parley/services/processor/internal/bot"
	"github.com/parley-chat/parley/services/processor/internal/dispatcher"
	"github.com/parley-chat/parley/services/processor/internal/recorder"
	"github.com/parley-chat/parley/services/processor/internal/webhook"
)

const serviceName = "processor"

// What BOT may be.
const (
	BotDemo    = "demo"    // answers by itself
	BotWebhook = "webhook" // lets the server at BOT_WEBHOOK_URL answer
	BotNone    = "none"    // nobody answers, or another reader of the stream does
)

// BotConfig says who answers visitors.
type BotConfig struct {
	Bot               string        `env:"BOT" envDefault:"demo" doc:"who answers visitors: demo, webhook or none"`
	BotWebhookURL     string        `env:"BOT_WEBHOOK_URL" doc:"where BOT=webhook posts visitors' messages"`
	BotWebhookSecret  string        `env:"BOT_WEBHOOK_SECRET" doc:"key of the webhook's signature: whsec_ and 24 to 64 bytes in base64"`
	BotWebhookTimeout time.Duration `env:"BOT_WEBHOOK_TIMEOUT" envDefault:"10s" doc:"how long one call of the webhook may take"`

	BotWebhookDeadline time.Duration `env:"BOT_WEBHOOK_DEADLINE" envDefault:"30s" doc:"how long calls of the webhook are repeated for one message before it is put back"`
	BotConcurrency     int           `env:"BOT_CONCURRENCY" envDefault:"1000" doc:"messages that the bot of one process answers at once"`
}

// Validate says what is wrong with the bot's variables; see [config.Check].
func (c BotConfig) Validate() []string {
	if !slices.Contains([]string{BotDemo, BotWebhook, BotNone}, c.Bot) {
		return []string{fmt.Sprintf("BOT must be demo, webhook or none, not %q", c.Bot)}
	}
	var problems []string
	if c.BotConcurrency < 0 {
		problems = append(problems, "BOT_CONCURRENCY must not be negative")
	}
	if c.Bot == BotWebhook {
		problems = append(problems, c.webhook().Problems()...)
	}
	return problems
}

func (c BotConfig) webhook() bot.WebhookConfig {
	return bot.WebhookConfig{
		URL: c.BotWebhookURL, Secret: c.BotWebhookSecret, Timeout: c.BotWebhookTimeout, Deadline: c.BotWebhookDeadline,
		Concurrency: c.BotConcurrency, Now: time.Now,
	}
}

// WebhookConfig says how events are delivered to the webhook endpoints of companies.
type WebhookConfig struct {
	Webhooks           bool            `env:"WEBHOOKS" envDefault:"true" doc:"deliver events to the webhook endpoints of companies"`
	WebhookTimeout     time.Duration   `env:"WEBHOOK_TIMEOUT" envDefault:"15s" doc:"how long one request of an outgoing webhook may take"`
	WebhookConcurrency int             `env:"WEBHOOK_CONCURRENCY" envDefault:"256" doc:"requests of outgoing webhooks that one process makes at once"`
	WebhookPerEndpoint int             `env:"WEBHOOK_ENDPOINT_CONCURRENCY" envDefault:"10" doc:"requests that one process makes to one webhook endpoint at once"`
	WebhookWarnAfter   time.Duration   `env:"WEBHOOK_WARN_AFTER" envDefault:"24h" doc:"how long a webhook endpoint fails before each of three warnings; that much later it is disabled"`
	WebhookAllow       config.Prefixes `env:"WEBHOOK_ALLOW_CIDRS" doc:"networks that webhooks may reach although they are not of the internet, separated by commas, such as 10.0.0.0/8; empty: none"`
}

// Validate says what is wrong with the variables of webhooks; see [config.Check].
func (c WebhookConfig) Validate() []string {
	var problems []string
	for name, value := range map[string]int64{
		"WEBHOOK_TIMEOUT": int64(c.WebhookTimeout), "WEBHOOK_CONCURRENCY": int64(c.WebhookConcurrency),
		"WEBHOOK_ENDPOINT_CONCURRENCY": int64(c.WebhookPerEndpoint), "WEBHOOK_WARN_AFTER": int64(c.WebhookWarnAfter),
	} {
		if c.Webhooks && value <= 0 {
			problems = append(problems, name+" must be positive")
		}
	}
	slices.Sort(problems)
	return problems
}

// Config is what the processor needs.
type Config struct {
	config.Ops
	config.NATS
	config.Store
	config.Chats
	config.Tracing

	BotConfig
	WebhookConfig

	Recorder   bool   `env:"RECORDER" envDefault:"true" doc:"keep the history of all chats"`
	Dispatcher bool   `env:"DISPATCHER" envDefault:"true" doc:"bring company messages and pushes to their channel"`
	AssetsURL  string `env:"ASSETS_URL" doc:"http or https address under which the demo bot's picture is served; empty: it shows none"`

	Logger      *slog.Logger               `env:"-"`
	Registerer  prometheus.Registerer      `env:"-"` // nil: no metrics
	Tracer      *tracing.Tracer            `env:"-"` // nil: no traces
	OpsListener net.Listener               `env:"-"` // taken over instead of OpsAddr
	InProcess   nats.InProcessConnProvider `env:"-"` // connects to a NATS server in this process, without a socket
	SharedStore store.Store                `env:"-"` // used instead of opening one; its owner closes it
}

// Validate says what is wrong with the processor's own variables; see [config.Check].
func (c Config) Validate() []string {
	if c.AssetsURL != "" && !bot.WebURL(c.AssetsURL) {
		return []string{"ASSETS_URL must be an http or https URL"}
	}
	return nil
}

// Service is one processor. It is run once.
type Service struct{ cfg Config }

// New returns a service that has opened nothing yet. Its error names everything that is missing or wrong.
func New(cfg Config) (*Service, error) {
	var problems []string
	if cfg.Logger == nil {
		problems = append(problems, "Logger is missing")
	}
	if err := config.Check(&cfg, problems...); err != nil {
		return nil, err
	}
	return &Service{cfg: cfg}, nil
}

// Run consumes until ctx is done and returns nil when the handlers that ran have finished. NATS and MongoDB may be away
// when it starts; it waits for them, and is ready when they are there.
func (s *Service) Run(ctx context.Context) (err error) {
	b, err := s.openBus()
	if err != nil {
		return err
	}
	defer b.Close()
	documents, err := backend.Open(backend.Config{
		Store: s.cfg.Store, Shared: s.cfg.SharedStore, AppName: serviceName, Logger: s.cfg.Logger, IdleClose: s.cfg.ChatIdleClose,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close(documents)) }()
	cache := store.NewCache(documents, store.CacheConfig{Registerer: s.cfg.Registerer})
	stopForgetting, err := b.OnInvalidate(cache.Forget)
	if err != nil {
		return fmt.Errorf("listening for invalidations: %w", err)
	}
	defer stopForgetting()
	consumers, stopAnswering, err := s.consumers(b, documents, cache)
	if err != nil {
		return err
	}
	defer stopAnswering()
	var webhooks *webhook.Service // nil: switched off
	if s.cfg.Webhooks {
		webhooks = s.webhooks(documents, cache)
		consumers = append(consumers, webhookRoutes(webhooks)...)
	}
	return s.run(ctx, b, documents, consumers, webhooks)
}

// webhookPoll is how often due deliveries of webhooks are looked for: replays, tests and retries begin that much later at most.
const webhookPoll = time.Second

func (s *Service) webhooks(documents store.Store, cache *store.Cache) *webhook.Service {
	return webhook.New(webhook.Config{
		Store: documents, Cache: cache, Timeout: s.cfg.WebhookTimeout, Concurrent: s.cfg.WebhookConcurrency, PerTarget: s.cfg.WebhookPerEndpoint,
		Allow: s.cfg.WebhookAllow, WarnAfter: s.cfg.WebhookWarnAfter, PollEvery: webhookPoll, Now: time.Now, Logger: s.cfg.Logger,
		Registerer: s.cfg.Registerer,
	})
}

func (s *Service) openBus() (*bus.Bus, error) {
	return bus.Open(bus.Config{
		URL: s.cfg.NATSURL, CredsFile: s.cfg.NATSCreds, Name: serviceName, InProcess: s.cfg.InProcess,
		CAFile: s.cfg.NATSCA, CertFile: s.cfg.NATSCert, KeyFile: s.cfg.NATSKey,
		Logger: s.cfg.Logger, Registerer: s.cfg.Registerer, Tracer: s.cfg.Tracer,
	})
}

// consumers are those that are switched on.
func (s *Service) consumers(b *bus.Bus, documents store.Store, cache *store.Cache) (on []bus.Consumer, stop func(), err error) {
	if s.cfg.Recorder {
		on = append(on, recorderRoutes(recorder.New(documents, cache, documents, documents, time.Now))...)
	}
	if s.cfg.Dispatcher {
		on = append(on, dispatcherRoutes(dispatcher.New(cache, documents, b))...)
	}
	switch s.cfg.Bot {
	case BotDemo:
		on = append(on, botRoutes(bot.New(bot.NewDemo(s.cfg.AssetsURL), cache, documents, b, time.Now), s.cfg.BotConcurrency)...)
	case BotWebhook:
		config := s.cfg.webhook()
		config.Registerer = s.cfg.Registerer
		webhook, err := bot.NewWebhook(config)
		if err != nil {
			return nil, nil, err
		}
		return append(on, botRoutes(bot.New(webhook, cache, documents, b, time.Now), s.cfg.BotConcurrency)...), webhook.Close, nil
	}
	return on, func() {}, nil
}

// run returns when all consumers have finished what they had begun, and after them the operations server: until then it
// answers, not ready.
func (s *Service) run(ctx context.Context, b *bus.Bus, documents store.Store, consumers []bus.Consumer, webhooks *webhook.Service) error {
	server := ops.New(ops.Config{
		Addr: s.cfg.OpsAddr, PprofAddr: s.cfg.PprofAddr, Listener: s.cfg.OpsListener, Service: serviceName, Logger: s.cfg.Logger,
		Gatherer: gatherer(s.cfg.Registerer),
		Checks:   []ops.Check{{Name: "nats", Check: b.Ready}, {Name: "store", Check: documents.Ready}},
	})
	opsCtx, stopOps := context.WithCancel(context.WithoutCancel(ctx))
	group, running := errgroup.WithContext(ctx)
	defer context.AfterFunc(running, server.SetStopping)()
	if s.cfg.OpsAddr != "" || s.cfg.OpsListener != nil {
		group.Go(func() error { return server.Run(opsCtx) })
	}
	group.Go(func() error {
		defer stopOps()
		return s.consume(running, b, consumers, webhooks)
	})
	return group.Wait()
}

// consume returns when ctx is done and all consumers have stopped.
func (s *Service) consume(ctx context.Context, b *bus.Bus, consumers []bus.Consumer, webhooks *webhook.Service) error {
	s.cfg.Logger.InfoContext(ctx, "started", "recorder", s.cfg.Recorder, "dispatcher", s.cfg.Dispatcher, "bot", s.cfg.Bot, "webhooks", s.cfg.Webhooks)
	defer s.cfg.Logger.InfoContext(ctx, "stopped")
	group, running := errgroup.WithContext(ctx)
	for _, c := range consumers {
		group.Go(func() error {
			if err := b.Consume(running, c); err != nil {
				return fmt.Errorf("consuming %s as %s: %w", c.Stream, c.Durable, err)
			}
			return nil
		})
	}
	if webhooks != nil {
		group.Go(func() error { return webhooks.Run(running) })
	}
	<-running.Done() // also when everything is switched off
	return group.Wait()
}

// gatherer shows what was registered, where the registerer can do both; nil is the default registry.
func gatherer(r prometheus.Registerer) prometheus.Gatherer {
	g, _ := r.(prometheus.Gatherer)
	return g
}
