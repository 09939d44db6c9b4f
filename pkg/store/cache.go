package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/webhook"
)

// Kinds of cache entries: the first argument of [Cache.Forget].
const (
	CachedAccessToken = "access_token"
	CachedApplication = "application"
	CachedTemplate    = "template"
	CachedChat        = "chat"
	CachedVisitor     = "visitor"
	CachedWebhooks    = "webhooks" // of a company, by its id
	CachedBot         = "bot"      // by application

	CachedModelConnection = "model_connection"
	CachedKnowledge       = "knowledge" // settings of a company's documents
)

// CacheConfig bounds a [Cache]. The zero value uses the defaults.
type CacheConfig struct {
	TokenTTL   time.Duration         // how long an access token is cached; default 1 s
	TTL        time.Duration         // how long everything else is cached; default 2 s
	Size       int                   // entries per kind; default 10,000
	Bytes      int                   // estimated memory per kind; default 8 MiB
	Now        func() time.Time      // default time.Now
	Registerer prometheus.Registerer // optional
	// TokenUsed is called with each access token read from the store, on a miss or a refresh. A token in constant use is
	// read at least once per TokenTTL, so its last use is accurate, at no cost to cache hits. Optional; it must not block.
	TokenUsed func(chat.AccessToken)
}

// Cache caches lookups by id for a short time. Concurrent callers with the same id share one read. Missing values and
// errors are not cached. It is safe for concurrent use; its results are shared and must not be modified.
type Cache struct {
	tokens       *lookups[chat.AccessToken]
	applications *lookups[chat.Application]
	templates    *lookups[chat.MessageTemplate]
	chats        *lookups[chat.Chat]
	visitors     *lookups[chat.Visitor]
	webhooks     *lookups[CompanyWebhooks]
	bots         *lookups[bots.Bot]
	connections  *lookups[bots.Connection]
	knowledge    *lookups[knowledge.Settings]
}

// CompanyWebhooks is the data needed to deliver a company's events.
type CompanyWebhooks struct {
	Endpoints []webhook.Endpoint // ordered by id, including disabled ones
	Retention time.Duration      // of finished deliveries
}

// Cached is the data source of a [Cache]; [Store] implements it.
type Cached interface {
	AccessToken(ctx context.Context, hash string) (chat.AccessToken, error)
	Application(ctx context.Context, id string) (chat.Application, error)
	Template(ctx context.Context, id string) (chat.MessageTemplate, error)
	Chat(ctx context.Context, id string) (chat.Chat, error)
	Visitor(ctx context.Context, chatUserID string) (chat.Visitor, error)
	Company(ctx context.Context, id string) (chat.Company, error)
	WebhookEndpoints(ctx context.Context, companyID string, p Page) ([]webhook.Endpoint, error)
	Bot(ctx context.Context, appID string) (bots.Bot, error)
	ModelConnection(ctx context.Context, id string) (bots.Connection, error)
	KnowledgeSettings(ctx context.Context, companyID string) (knowledge.Settings, error)
}

// NewCache returns an empty cache in front of s.
func NewCache(s Cached, c CacheConfig) *Cache {
	c = c.withDefaults()
	requests := requestCounter(c.Registerer)
	return &Cache{
		tokens:       newLookups(c, CachedAccessToken, c.TokenTTL, requests, c.reportingUse(s.AccessToken), sizeOfToken),
		applications: newLookups(c, CachedApplication, c.TTL, requests, s.Application, sizeOfApplication),
		templates:    newLookups(c, CachedTemplate, c.TTL, requests, s.Template, SizeOfTemplate),
		chats:        newLookups(c, CachedChat, c.TTL, requests, s.Chat, sizeOfChat),
		visitors:     newLookups(c, CachedVisitor, c.TTL, requests, s.Visitor, sizeOfVisitor),
		webhooks: newLookups(
			c,
			CachedWebhooks,
			c.TTL,
			requests,
			func(ctx context.Context, companyID string) (CompanyWebhooks, error) {
				return companyWebhooks(ctx, s, companyID)
			},
			sizeOfWebhooks,
		),
		bots: newLookups(
			c,
			CachedBot,
			c.TTL,
			requests,
			func(ctx context.Context, appID string) (bots.Bot, error) { return knownBot(ctx, s, appID) },
			sizeOfBot,
		),
		connections: newLookups(c, CachedModelConnection, c.TTL, requests, s.ModelConnection, sizeOfConnection),
		knowledge:   newLookups(c, CachedKnowledge, c.TTL, requests, s.KnowledgeSettings, sizeOfKnowledge),
	}
}

func (c CacheConfig) withDefaults() CacheConfig {
	if c.TokenTTL <= 0 {
		c.TokenTTL = time.Second
	}
	if c.TTL <= 0 {
		c.TTL = 2 * time.Second
	}
	if c.Size <= 0 {
		c.Size = 10_000
	}
	if c.Bytes <= 0 {
		c.Bytes = 8 << 20
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// companyWebhooks reads a company's endpoints and, if it has any, its retention.
func companyWebhooks(ctx context.Context, s Cached, companyID string) (w CompanyWebhooks, err error) {
	w.Retention = webhook.DefaultRetention
	if w.Endpoints, err = s.WebhookEndpoints(ctx, companyID, Page{}); err != nil || len(w.Endpoints) == 0 {
		return w, err
	}
	company, err := s.Company(ctx, companyID)
	if err == nil && company.WebhookRetention > 0 {
		w.Retention = company.WebhookRetention
	}
	return w, err
}

// knownBot reads what answers for an application, without the draft and earlier versions. The zero bot is that of an
// application whose bot was never changed: a missing one would not be cached.
func knownBot(ctx context.Context, s Cached, appID string) (bots.Bot, error) {
	b, err := s.Bot(ctx, appID)
	if apperr.Is(err, apperr.NotFound) {
		return bots.Bot{AppID: appID}, nil
	}
	b.Draft = bots.Settings{}
	b.Versions = slices.Clone(b.Versions[:min(len(b.Versions), 1)])
	return b, err
}

// reportingUse wraps read with a call of TokenUsed after each successful read.
func (c CacheConfig) reportingUse(
	read func(context.Context, string) (chat.AccessToken, error),
) func(context.Context, string) (chat.AccessToken, error) {
	if c.TokenUsed == nil {
		return read
	}
	return func(ctx context.Context, hash string) (chat.AccessToken, error) {
		t, err := read(ctx, hash)
		if err == nil {
			c.TokenUsed(t)
		}
		return t, err
	}
}

// AccessToken is [Store.AccessToken], cached by hash.
func (c *Cache) AccessToken(ctx context.Context, hash string) (chat.AccessToken, error) {
	return c.tokens.get(ctx, hash)
}

// Application is [Store.Application], cached.
func (c *Cache) Application(ctx context.Context, id string) (chat.Application, error) {
	return c.applications.get(ctx, id)
}

// Template is [Store.Template], cached.
func (c *Cache) Template(ctx context.Context, id string) (chat.MessageTemplate, error) {
	return c.templates.get(ctx, id)
}

// Chat is [Store.Chat], cached.
func (c *Cache) Chat(ctx context.Context, id string) (chat.Chat, error) { return c.chats.get(ctx, id) }

// FreshChat reads the chat from the store and refreshes the cache, for decisions that must not use a stale window.
func (c *Cache) FreshChat(ctx context.Context, id string) (chat.Chat, error) {
	c.chats.forget(id)
	return c.chats.load(ctx, id)
}

// Visitor is [Store.Visitor], cached by chatUserId.
func (c *Cache) Visitor(ctx context.Context, chatUserID string) (chat.Visitor, error) {
	return c.visitors.get(ctx, chatUserID)
}

// Webhooks returns the webhook endpoints of a company, cached.
func (c *Cache) Webhooks(ctx context.Context, companyID string) (CompanyWebhooks, error) {
	return c.webhooks.get(ctx, companyID)
}

// Bot returns the bot of an application in force, cached. It has no draft and no earlier versions.
func (c *Cache) Bot(ctx context.Context, appID string) (bots.Bot, error) {
	return c.bots.get(ctx, appID)
}

// ModelConnection is [Store.ModelConnection], cached.
func (c *Cache) ModelConnection(ctx context.Context, id string) (bots.Connection, error) {
	return c.connections.get(ctx, id)
}

// KnowledgeSettings is [Store.KnowledgeSettings], cached. Their work may be over.
func (c *Cache) KnowledgeSettings(ctx context.Context, companyID string) (knowledge.Settings, error) {
	return c.knowledge.get(ctx, companyID)
}

// Forget removes an entry. It can be passed to bus.OnInvalidate. Unknown kinds are ignored.
func (c *Cache) Forget(kind, key string) {
	switch kind {
	case CachedAccessToken:
		c.tokens.forget(key)
	case CachedApplication:
		c.applications.forget(key)
	case CachedTemplate:
		c.templates.forget(key)
	case CachedChat:
		c.chats.forget(key)
	case CachedWebhooks:
		c.webhooks.forget(key)
	case CachedVisitor:
		c.visitors.forget(key)
	case CachedBot:
		c.bots.forget(key)
	case CachedModelConnection:
		c.connections.forget(key)
	case CachedKnowledge:
		c.knowledge.forget(key)
	}
}

// lookups caches the values of one kind.
type lookups[V any] struct {
	ttl          time.Duration
	now          func() time.Time
	read         func(ctx context.Context, key string) (V, error)
	hits, misses prometheus.Counter

	size  func(V) int
	most  struct{ entries, bytes int }
	reads chan struct{} // holds an element for each read that runs; nil: they are not bounded

	entries *lru.Cache[string, entry[V]]
	flights singleflight.Group

	mu        sync.Mutex // guards writes against concurrent invalidations
	forgotten uint64     // number of invalidations
	bytes     int        // of the entries
}

// readsAtOnce bounds the reads of a kind whose values may be large: enough for thousands of them in a second.
const readsAtOnce = 16

// newReads bounds the reads of a kind. An application may have 1 MiB and a template 125 KiB, several times in
// memory while it is read; values of the other kinds are small.
func newReads(kind string) chan struct{} {
	if kind == CachedApplication || kind == CachedTemplate {
		return make(chan struct{}, readsAtOnce)
	}
	return nil
}

type entry[V any] struct {
	value    V
	bytes    int
	renew    time.Time // at or after this time, the next hit starts a refresh in the background
	until    time.Time // expiry
	renewing *atomic.Bool
}

func newLookups[V any](
	c CacheConfig,
	kind string,
	ttl time.Duration,
	requests *prometheus.CounterVec,
	read func(context.Context, string) (V, error),
	size func(V) int,
) *lookups[V] {
	entries, err := lru.New[string, entry[V]](c.Size)
	if err != nil {
		panic("store: creating a cache: " + err.Error()) // only for a size <= 0; withDefaults sets a positive one
	}
	l := &lookups[V]{
		ttl: ttl, now: c.Now, read: read, entries: entries, size: size, reads: newReads(kind),
		hits: requests.WithLabelValues(kind, "hit"), misses: requests.WithLabelValues(kind, "miss"),
	}
	l.most.entries, l.most.bytes = c.Size, c.Bytes
	return l
}

func (l *lookups[V]) get(ctx context.Context, key string) (V, error) {
	now := l.now()
	if e, ok := l.entries.Get(key); ok && now.Before(e.until) {
		l.hits.Inc()
		if !now.Before(e.renew) && e.renewing.CompareAndSwap(false, true) {
			l.sharedRead(ctx, key)
		}
		return e.value, nil
	}
	l.misses.Inc()
	return l.join(ctx, key)
}

// sharedRead shares one read among concurrent callers. The read ignores the cancellation of its first caller,
// because others may wait for it; the store bounds its duration.
func (l *lookups[V]) sharedRead(ctx context.Context, key string) <-chan singleflight.Result {
	return l.flights.DoChan(key, func() (any, error) { return l.load(context.WithoutCancel(ctx), key) })
}

func (l *lookups[V]) join(ctx context.Context, key string) (V, error) {
	var zero V
	select {
	case <-ctx.Done():
		return zero, ctx.Err()
	case result := <-l.sharedRead(ctx, key):
		if result.Err != nil {
			return zero, result.Err
		}
		return result.Val.(V), nil
	}
}

// load reads the value, and caches it unless any key was invalidated during the read.
func (l *lookups[V]) load(ctx context.Context, key string) (V, error) {
	l.mu.Lock()
	forgotten := l.forgotten
	l.mu.Unlock()
	began, value, err := l.boundedRead(ctx, key)
	if err != nil {
		return value, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if forgotten == l.forgotten {
		l.add(key, entry[V]{
			value: value, bytes: l.size(value),
			renew: began.Add(l.ttl * 7 / 8), until: began.Add(l.ttl), renewing: new(atomic.Bool),
		})
	}
	return value, nil
}

// boundedRead reads the value when one of the reads at once is free, and returns when it began.
func (l *lookups[V]) boundedRead(ctx context.Context, key string) (began time.Time, value V, err error) {
	if l.reads != nil {
		select {
		case l.reads <- struct{}{}:
			defer func() { <-l.reads }()
		case <-ctx.Done():
			return began, value, ctx.Err()
		}
	}
	began = l.now()
	value, err = l.read(ctx, key)
	return began, value, err
}

// add caches an entry. Those that have expired go, and then the ones that were used the longest ago, until all
// have room.
func (l *lookups[V]) add(key string, e entry[V]) {
	l.remove(key)
	for {
		oldest, old, found := l.entries.GetOldest()
		expired := !l.now().Before(old.until)
		full := l.entries.Len() >= l.most.entries || l.bytes+e.bytes > l.most.bytes
		if !found || !expired && !full {
			break
		}
		l.remove(oldest)
	}
	l.entries.Add(key, e)
	l.bytes += e.bytes
}

func (l *lookups[V]) remove(key string) {
	if e, found := l.entries.Peek(key); found {
		l.entries.Remove(key)
		l.bytes -= e.bytes
	}
}

func (l *lookups[V]) forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgotten++
	l.remove(key)
	l.flights.Forget(key)
}

// requestCounter counts lookups. Two caches on one registerer share it.
func requestCounter(r prometheus.Registerer) *prometheus.CounterVec {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_cache_requests_total",
		Help: "Lookups of documents, by kind and result: hit (from memory) or miss (from the store).",
	}, []string{"kind", "result"})
	if r == nil {
		return counter
	}
	err := r.Register(counter)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if existing, ok := already.ExistingCollector.(*prometheus.CounterVec); ok {
			return existing
		}
	}
	return counter
}
