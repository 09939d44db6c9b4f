package processor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/budget"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/control"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/notice"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/pkg/service/storage"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/streammark"
	"github.com/parley-chat/parley/services/processor/internal/bot"
	"github.com/parley-chat/parley/services/processor/internal/dispatcher"
	"github.com/parley-chat/parley/services/processor/internal/embedding"
	"github.com/parley-chat/parley/services/processor/internal/fetch"
	"github.com/parley-chat/parley/services/processor/internal/recorder"
	"github.com/parley-chat/parley/services/processor/internal/webhook"
)

const serviceName = "processor"

// Values of BOT.
const (
	BotDemo     = "demo"     // the built-in bot
	BotWebhook  = "webhook"  // the server at BOT_WEBHOOK_URL answers
	BotLLM      = "llm"      // the language model at LLM_BASE_URL answers
	BotNone     = "none"     // no bot: visitors wait for an agent
	BotExternal = "external" // another process answers: another processor or a processing layer
)

// BotConfig selects the bot of applications that have none of their own.
type BotConfig struct {
	Bot               string        `env:"BOT" envDefault:"demo" doc:"bot of applications that have none of their own: demo, webhook or llm; none: agents answer; external: another process answers for all applications"`
	BotWebhookURL     string        `env:"BOT_WEBHOOK_URL" doc:"where BOT=webhook posts visitors' messages"`
	BotWebhookSecret  string        `env:"BOT_WEBHOOK_SECRET" doc:"key of the webhook's signature: whsec_ and 24 to 64 bytes in base64"`
	BotWebhookTimeout time.Duration `env:"BOT_WEBHOOK_TIMEOUT" envDefault:"0s" valid:"min 0s" doc:"timeout of one call of the webhook or the language model, with its whole answer; then the call is repeated; 0: only BOT_WEBHOOK_DEADLINE ends it"`

	BotWebhookDeadline time.Duration `env:"BOT_WEBHOOK_DEADLINE" envDefault:"90s" valid:"min 0s" doc:"how long the webhook or the language model may fail or take to answer one message before the bot gives up on it"`
	BotWebhookAttempts int           `env:"-" constant:"12"` // failed calls for one message before the bot gives it up
	BotFailureText     string        `env:"BOT_FAILURE_TEXT" envDefault:"Sorry, I cannot answer right now. Please try again later." doc:"text for the visitor when the bot gives up on a message; none: no text"`
	LLMConfig

	BotConcurrency int `env:"BOT_CONCURRENCY" envDefault:"1000" valid:"min 0" doc:"messages that the bot of one process answers at once, and so calls of the webhook or the language model; companies share them, and of each its applications: one company gets at most half, one application a quarter"`
}

// LLMConfig configures the language model of BOT=llm.
type LLMConfig struct {
	LLMBaseURL       string      `env:"LLM_BASE_URL" doc:"address of a server that speaks the chat-completions protocol of OpenAI, without /chat/completions"`
	LLMAPIKey        string      `env:"LLM_API_KEY" doc:"its API key, sent as Authorization: Bearer; empty: none"`
	LLMModel         string      `env:"LLM_MODEL" doc:"the model that answers"`
	LLMSystemPrompt  string      `env:"LLM_SYSTEM_PROMPT" doc:"system prompt of each chat"`
	LLMHistory       int         `env:"LLM_HISTORY" envDefault:"20" doc:"messages of the chat that the model reads, the visitor's last one included"`
	LLMMaxTokens     int         `env:"LLM_MAX_TOKENS" envDefault:"0" valid:"min 0" doc:"maximum number of tokens of an answer; 0: the server's default"`
	LLMTokens        config.Rate `env:"LLM_TOKENS_APPLICATION" envDefault:"10000000/24h" doc:"tokens of one application, number/time; a question counts as at least 1,000; 0: no limit"`
	LLMModerationURL string      `env:"LLM_MODERATION_URL" valid:"url" doc:"URL of a hook that checks the model's text before the visitor receives it; empty: none"`
}

// failureNone turns the failure text off.
const failureNone = "none"

func (c BotConfig) failureText() string {
	if text := strings.TrimSpace(c.BotFailureText); text != failureNone {
		return text
	}
	return ""
}

// kind returns what answers for applications without a bot of their own.
func (c BotConfig) kind() bots.Kind {
	if c.Bot == BotLLM {
		return bots.Model
	}
	return bots.Kind(c.Bot)
}

// Validate returns the errors of the bot's variables; see [config.Check].
func (c BotConfig) Validate() []string {
	if !slices.Contains([]string{BotDemo, BotWebhook, BotLLM, BotNone, BotExternal}, c.Bot) {
		return []string{fmt.Sprintf("BOT must be demo, webhook, llm, none or external, not %q", c.Bot)}
	}
	var problems []string
	if faults := chat.ValidateData(chat.Text, bot.TextData(c.failureText())); c.failureText() != "" && len(faults) > 0 {
		problems = append(problems, "BOT_FAILURE_TEXT "+faults[0].Message)
	}
	if c.Bot == BotWebhook {
		problems = append(problems, c.webhook().Problems()...)
	}
	if c.Bot == BotLLM {
		problems = append(problems, c.llm().Problems()...)
	}
	return problems
}

func (c BotConfig) webhook() bot.WebhookConfig {
	w := bot.WebhookConfig{CallConfig: c.calls()}
	if c.Bot == BotWebhook {
		w.URL, w.Secret = c.BotWebhookURL, c.BotWebhookSecret
	}
	return w
}

func (c BotConfig) llm() bot.LLMConfig {
	m := bot.LLMConfig{Tokens: c.LLMTokens, ModerationURL: c.LLMModerationURL, CallConfig: c.calls()}
	if c.Bot == BotLLM {
		m.BaseURL, m.APIKey = c.LLMBaseURL, c.LLMAPIKey
		m.Model = bots.ModelSettings{
			Model: c.LLMModel, Prompt: c.LLMSystemPrompt, History: c.LLMHistory, MaxTokens: c.LLMMaxTokens,
		}
	}
	return m
}

// calls returns the bounds of the calls of the webhook and of the language model.
func (c BotConfig) calls() bot.CallConfig {
	return bot.CallConfig{
		Timeout:     c.BotWebhookTimeout,
		Deadline:    c.BotWebhookDeadline,
		Attempts:    c.BotWebhookAttempts,
		Concurrency: c.BotConcurrency,
		Now:         time.Now,
	}
}

// WebhookConfig configures the deliveries to the webhook endpoints of companies.
type WebhookConfig struct {
	Webhooks           bool            `env:"WEBHOOKS" envDefault:"true" doc:"deliver events to the webhook endpoints of companies"`
	WebhookTimeout     time.Duration   `env:"WEBHOOK_TIMEOUT" envDefault:"15s" valid:"min 0s" doc:"timeout of one request of an outgoing webhook"`
	WebhookConcurrency int             `env:"-" constant:"256"` // requests of one process at once; one company gets at most half
	WebhookPerEndpoint int             `env:"-" constant:"10"`  // of these, those to one endpoint
	WebhookWarnAfter   time.Duration   `env:"-" constant:"24h"` // of failures, before each of three warnings; then it is disabled
	WebhookAllow       config.Prefixes `env:"WEBHOOK_ALLOW_CIDRS" doc:"private networks that webhooks, the servers of companies' bots and the addresses of documents may be in, separated by commas, such as 10.0.0.0/8; empty: none"`
}

// Validate returns the errors of the webhook variables; see [config.Check].
func (c WebhookConfig) Validate() []string {
	if !c.Webhooks {
		return nil
	}
	var problems []string
	if c.WebhookTimeout <= 0 {
		problems = append(problems, "WEBHOOK_TIMEOUT must be positive")
	}
	if c.WebhookConcurrency <= 0 || c.WebhookPerEndpoint <= 0 || c.WebhookWarnAfter <= 0 {
		problems = append(problems, "the concurrency and the time to the warning of webhooks must be positive")
	}
	return problems
}

// Config holds the settings of the processor.
type Config struct {
	service.Base
	Storage storage.Config
	config.Secrets

	config.Redis
	config.Budgets
	BotConfig
	WebhookConfig

	Recorder   bool   `env:"RECORDER" envDefault:"true" doc:"keep the history of all chats"`
	Dispatcher bool   `env:"DISPATCHER" envDefault:"true" doc:"bring company messages and pushes to their channel"`
	AssetsURL  string `env:"ASSETS_URL" valid:"url" doc:"http or https address under which the demo bot's picture is served; empty: it shows none"`
}

// Service is one processor. Run may be called once.
type Service struct{ cfg Config }

// New returns a service without opening anything. Its error names everything that is missing or invalid.
func New(cfg Config) (*Service, error) {
	if err := service.Check(&cfg); err != nil {
		return nil, err
	}
	return &Service{cfg: cfg}, nil
}

// Run consumes until ctx is done and returns nil when the running handlers have finished. NATS and MongoDB
// may be down when it starts; it waits for them, and is ready when they are connected.
func (s *Service) Run(ctx context.Context) error {
	return service.Run(ctx, serviceName, s.cfg.Base, s.open)
}

func (s *Service) open(p *service.Process) (service.Work, error) {
	r, err := s.openResources(p)
	if err != nil {
		return nil, err
	}
	again := repeats{stored: r.store, lastLoss: lastLoss(r.bus), now: r.now}
	var consumers []bus.Consumer
	if s.cfg.Recorder {
		consumers = append(consumers, recorderRoutes(s.recorder(r))...)
	}
	if s.cfg.Dispatcher {
		dispatched := again
		dispatched.found = s.recorder(r).StoredBefore
		consumers = append(consumers, dispatcherRoutes(dispatcher.New(r.cache, r.store, r.bus), dispatched)...)
		p.Background(newOutboundGauge(r.bus, p.Now(), s.cfg.Logger, s.cfg.Registerer).run)
	}
	var meanings *embedding.Service // nil: without a bot
	if s.cfg.Bot != BotExternal {
		meanings, err = s.embeddings(p, r)
		if err != nil {
			return nil, err
		}
		answering, err := s.bot(p, r, meanings)
		if err != nil {
			return nil, err
		}
		consumers = append(consumers, botRoutes(answering, again, s.cfg.BotConcurrency, r.bots)...)
	}
	var webhooks *webhook.Service // nil: switched off
	if s.cfg.Webhooks {
		webhooks = s.webhooks(r)
		consumers = append(consumers, webhookRoutes(webhooks)...)
	}
	fetches := s.fetches(r)
	return func(ctx context.Context) error {
		return s.consume(ctx, r, consumers, webhooks, fetches, meanings)
	}, nil
}

// resources are what the parts share. The process closes them.
type resources struct {
	bus   *bus.Bus
	store store.Store
	cache *store.Cache     // of store; a record may be a second or two old
	redis *ratelimit.Redis // nil without REDIS_URL
	now   func() time.Time // the clock of chats
	bots  *bus.Replicas    // of the processes that answer
}

func (s *Service) openResources(p *service.Process) (resources, error) {
	redis, err := storage.RateLimits(p, s.cfg.RedisURL)
	if err != nil {
		return resources{}, err
	}
	meter := budget.New(budget.Config{Rates: s.cfg.Budgets, Redis: redis, Now: s.cfg.Now, Registerer: s.cfg.Registerer})
	b, err := p.Bus(meter)
	if err != nil {
		return resources{}, err
	}
	documents, err := storage.OpenWithSecrets(p, s.cfg.Storage, s.cfg.Secrets)
	if err != nil {
		return resources{}, err
	}
	cache := store.NewCache(documents, store.CacheConfig{Registerer: s.cfg.Registerer})
	stopForgetting, err := b.RPC().OnInvalidate(cache.Forget)
	if err != nil {
		return resources{}, fmt.Errorf("subscribing to invalidations: %w", err)
	}
	p.OnClose(func() error { stopForgetting(); return nil })
	return resources{bus: b, store: documents, cache: cache, redis: redis, now: p.Now(), bots: &bus.Replicas{}}, nil
}

func (s *Service) recorder(r resources) *recorder.Recorder {
	return recorder.New(recorder.Config{
		History:      r.store,
		Chats:        r.cache,
		Statuses:     r.store,
		Controls:     r.store,
		Applications: r.cache,
		Publisher:    r.bus,
		Now:          r.now,
	})
}

// webhookPoll is the interval of the polls for due webhook deliveries, and so the maximum delay of replays,
// tests and retries.
const webhookPoll = time.Second

func (s *Service) webhooks(r resources) *webhook.Service {
	return webhook.New(webhook.Config{
		Store:      r.store,
		Cache:      r.cache,
		Timeout:    s.cfg.WebhookTimeout,
		Concurrent: s.cfg.WebhookConcurrency,
		PerTarget:  s.cfg.WebhookPerEndpoint,
		Allow:      s.cfg.WebhookAllow,
		WarnAfter:  s.cfg.WebhookWarnAfter,
		PollEvery:  webhookPoll,
		Now:        r.now,
		Logger:     s.cfg.Logger,
		Registerer: s.cfg.Registerer,
	})
}

func (s *Service) fetches(r resources) *fetch.Service {
	return fetch.New(fetch.Config{
		Store:      r.store,
		Allow:      s.cfg.WebhookAllow,
		Now:        r.now,
		Logger:     s.cfg.Logger,
		Registerer: s.cfg.Registerer,
	})
}

// embeddingPoll is how often passages without embeddings are looked for that nothing has announced.
const embeddingPoll = 15 * time.Second

// embeddings returns what ranks passages by meaning.
func (s *Service) embeddings(p *service.Process, r resources) (*embedding.Service, error) {
	e := embedding.New(embedding.Config{
		Store:      r.store,
		Cache:      r.cache,
		Allow:      s.cfg.WebhookAllow,
		PollEvery:  embeddingPoll,
		Now:        r.now,
		Logger:     s.cfg.Logger,
		Registerer: s.cfg.Registerer,
	})
	p.OnClose(func() error { e.Close(); return nil })
	stopWaking, err := r.bus.RPC().OnInvalidate(func(kind, companyID string) {
		if kind == store.CachedKnowledge {
			e.Wake(companyID)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("subscribing to changes of documents: %w", err)
	}
	p.OnClose(func() error { stopWaking(); return nil })
	stop, err := r.bus.RPC().HandleEmbeddings(e.Embed)
	if err != nil {
		return nil, err
	}
	p.OnClose(func() error { stop(); return nil })
	return e, nil
}

// bot returns the bot of all applications. Until the process closes, visitors can stop its streamed messages.
func (s *Service) bot(p *service.Process, r resources, passages bot.Passages) (*bot.Bot, error) {
	router, err := s.router(p, r, passages)
	if err != nil {
		return nil, err
	}
	p.OnClose(func() error { router.Close(); return nil })
	stopTests, err := r.bus.RPC().HandleBotTests(router.Test)
	if err != nil {
		return nil, err
	}
	p.OnClose(func() error { stopTests(); return nil })
	stopLists, err := r.bus.RPC().HandleToolLists(router.Tools)
	if err != nil {
		return nil, err
	}
	p.OnClose(func() error { stopLists(); return nil })
	answering := bot.New(bot.Config{
		Answerer:     router,
		Settings:     router.Settings,
		Applications: r.cache,
		Chats:        r.store, // not the cache: an agent may have taken the chat a moment ago
		Controls:     control.New(r.store, r.bus, r.now),
		Publisher:    r.bus,
		Replies:      newReplies(r.bus),
		Signal:       func(e event.Signal) error { return r.bus.RPC().Signal(e) },
		Now:          r.now,
	})
	release, err := r.bus.RPC().HandleStops(answering.Stop)
	if err != nil {
		return nil, err
	}
	p.OnClose(func() error {
		release()
		answering.Close()
		return nil
	})
	return answering, nil
}

// router returns what answers the visitors of each application.
func (s *Service) router(p *service.Process, r resources, passages bot.Passages) (*bot.Router, error) {
	calls := s.cfg.calls()
	calls.Registerer = s.cfg.Registerer
	calls.Log = bot.NewCallLog(r.store, r.now, s.cfg.Registerer)
	p.OnClose(func() error { calls.Log.Close(); return nil })
	calls.Bounds = bot.NewBounds(bot.BoundsConfig{
		Usage:      r.store,
		Notices:    notice.NewBoard(r.store, r.now, s.cfg.Logger),
		Replicas:   r.bots.Count,
		Now:        r.now,
		Registerer: s.cfg.Registerer,
	})
	hooks := s.cfg.webhook()
	hooks.CallConfig = calls
	server, err := bot.NewWebhook(hooks)
	if err != nil {
		return nil, err
	}
	models := s.cfg.llm()
	models.CallConfig = calls
	models.Histories = histories{r.store}
	models.Passages = passages
	models.Actions = r.store
	models.Visitors = r.store
	models.Redis = r.redis
	model, err := bot.NewLLM(models)
	if err != nil {
		return nil, err
	}
	return bot.NewRouter(bot.RouterConfig{
		Bots:    r.cache,
		Default: bots.Settings{Kind: s.cfg.kind(), FailureText: s.cfg.failureText()},
		Allow:   s.cfg.WebhookAllow,
		Demo:    bot.NewDemo(s.cfg.AssetsURL),
		Webhook: server,
		LLM:     model,
	}), nil
}

// histories reads chats for the language model.
type histories struct{ store store.Store }

// maxRecent bounds the stored data of a prompt's messages in bytes, and so the memory of a question. It is far above
// the 16 KiB of text that the bot puts into a prompt.
const maxRecent = 128 << 10

// Recent implements [bot.Histories].
func (h histories) Recent(ctx context.Context, chatID, before string, limit int) ([]chat.Message, error) {
	query := store.HistoryQuery{Before: before, Limit: limit, MaxBytes: maxRecent}
	messages, _, err := h.store.History(ctx, chatID, query)
	return messages, err
}

// consume returns when ctx is done and all consumers have stopped.
func (s *Service) consume(
	ctx context.Context, r resources, consumers []bus.Consumer, webhooks *webhook.Service, fetches *fetch.Service,
	meanings *embedding.Service,
) error {
	marks := streammark.New(r.bus, r.store, s.cfg.Logger)
	if err := s.settleLosses(ctx, r, marks); err != nil {
		if ctx.Err() != nil {
			return nil // stopped while it waited
		}
		return err
	}
	s.cfg.Logger.InfoContext(
		ctx, "started", "recorder", s.cfg.Recorder, "dispatcher", s.cfg.Dispatcher, "bot", s.cfg.Bot,
		"webhooks", s.cfg.Webhooks,
	)
	defer s.cfg.Logger.InfoContext(ctx, "stopped")
	group, running := errgroup.WithContext(ctx)
	for _, c := range consumers {
		group.Go(func() error {
			if err := r.bus.Consume(running, c); err != nil {
				return fmt.Errorf("consuming %s as %s: %w", c.Stream, c.Durable, err)
			}
			return nil
		})
	}
	if webhooks != nil {
		group.Go(func() error { return webhooks.Run(running) })
	}
	group.Go(func() error { return fetches.Run(running) })
	if meanings != nil {
		group.Go(func() error { meanings.Run(running); return nil })
	}
	group.Go(func() error { marks.Run(running); return nil })
	<-running.Done() // also when everything is switched off
	return group.Wait()
}
