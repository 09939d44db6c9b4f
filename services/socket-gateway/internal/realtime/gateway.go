package realtime

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/presence"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/pkg/tracing"
)

// Config configures a gateway. Tracer, Revoked, RecoveryRate and Presence are optional.
type Config struct {
	Namespace *socketio.Namespace
	Bus       *bus.Bus
	Tokens    tokenVerifier
	Origins   originFetcher
	Metrics   *Metrics
	Logger    *slog.Logger
	Now       func() time.Time
	Tracer    *tracing.Tracer // nil: no traces
	// called when a visitor's tokens are revoked, for sockets outside the namespace; may be nil
	Revoked func(ctx context.Context, chatUserID string)

	RecoveryRate config.Rate // per visitor; the zero Rate is no limit

	Presence presence.Store // connected visitors are written to it; nil: presence is not stored
	ID       string         // of this gateway in Presence
}

// Gateway serves the visitors' namespace.
type Gateway struct {
	cfg           Config
	authenticator *authenticator
	replies       *replyPublisher
	parts         *partPublisher
	rooms         *rooms
	receipts      *receiptQueue
	watermarks    *lowWatermarks
	outages       *outageReplay
	expiry        *expiry
	origins       *originCache
	live          *liveEvents
	presence      *presenceWriter
}

// New installs a gateway's handlers in its namespace. Sockets are admitted while Run runs.
func New(cfg Config) *Gateway {
	g := &Gateway{cfg: cfg, expiry: newExpiry(cfg.Now), origins: newOriginCache(cfg.Origins, cfg.Now)}
	log := newReplyLog(cfg.Bus)
	g.receipts = newReceiptQueue(cfg.Bus, cfg.Metrics, cfg.Logger, cfg.Now)
	g.rooms = newRooms(cfg.Namespace, cfg.Metrics, cfg.Now, g.receipts.report)
	g.rooms.tracer = cfg.Tracer
	g.watermarks = newLowWatermarks(log, g.rooms.resetOffsets)
	g.outages = newOutageReplay(g.rooms, log, g.watermarks, cfg.Logger)
	g.live = &liveEvents{
		namespace:   cfg.Namespace,
		rooms:       g.rooms,
		signals:     cfg.Bus,
		reader:      cfg.Bus,
		metrics:     cfg.Metrics,
		now:         cfg.Now,
		logger:      cfg.Logger,
		typing:      ratelimit.New(ratelimit.Config{Name: "typing", Rate: typingRate, Now: cfg.Now}),
		reads:       ratelimit.New(ratelimit.Config{Name: "read", Rate: readRate, Now: cfg.Now}),
		signalQueue: make(chan *socketio.Broadcast, signalQueueSize),
	}
	g.presence = newPresenceWriter(cfg.Presence, cfg.Namespace, cfg.ID, cfg.Now, cfg.Logger)
	g.authenticator = &authenticator{
		namespace:   cfg.Namespace,
		tokens:      cfg.Tokens,
		expiry:      g.expiry,
		revocations: newRevocations(cfg.Now),
		origins:     g.origins,
		rooms:       g.rooms,
		receipts:    g.receipts, log: log, unfinished: newUnfinishedMessages(cfg.Bus, cfg.Now),
		recoveries: ratelimit.New(ratelimit.Config{Name: "recovery", Rate: cfg.RecoveryRate, Now: cfg.Now}),
		renewals:   ratelimit.New(ratelimit.Config{Name: "token", Rate: renewRate, Now: cfg.Now}),
		watermarks: g.watermarks, metrics: cfg.Metrics, now: cfg.Now, logger: cfg.Logger, live: g.live, presence: g.presence,
	}
	g.replies = &replyPublisher{namespace: cfg.Namespace, metrics: cfg.Metrics, now: cfg.Now, traced: cfg.Tracer != nil}
	g.parts = &partPublisher{namespace: cfg.Namespace, metrics: cfg.Metrics, now: cfg.Now}
	cfg.Namespace.OnBroadcast(g.rooms.handleBroadcast)
	g.authenticator.guard()
	g.live.handleEvents()
	return g
}

// Run runs all background work except the consumers until ctx is done.
func (g *Gateway) Run(ctx context.Context) error {
	stop, err := g.cfg.Bus.OnInvalidate(g.origins.forget)
	if err != nil {
		return err
	}
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	for _, run := range []func(context.Context){g.watermarks.run, g.outages.run, g.rooms.run, g.expiry.run, g.receipts.run, g.followRevocations, g.live.run, g.presence.run} {
		running.Go(func() { run(ctx) })
	}
	<-ctx.Done()
	return nil
}

// Enter returns the claims of a token that is valid, not revoked, and presented by a page of an allowed origin. The
// origin is empty if the client is not a page.
func (g *Gateway) Authenticate(ctx context.Context, token, origin string) (credential.VisitorClaims, error) {
	return g.authenticator.authenticate(ctx, token, origin)
}

// Deliver consumes replies and parts and emits them until ctx is done. It returns when none is in progress;
// other gateways take over.
func (g *Gateway) Read(ctx context.Context) error {
	group, delivering := errgroup.WithContext(ctx)
	for _, c := range []bus.Consumer{g.replies.consumer(), g.parts.consumer()} {
		group.Go(func() error { return g.cfg.Bus.Consume(delivering, c) })
	}
	return group.Wait()
}

// Drain closes all sockets evenly over the duration within, or immediately when ctx is done.
func (g *Gateway) Drain(ctx context.Context, within time.Duration) {
	drain(ctx, g.cfg.Namespace.Sockets(), within)
}

// RedisLost must be called when Redis subscriptions are lost, before they are restored.
func (g *Gateway) RedisLost() { g.outages.subscriptionsLost() }

// RedisBack must be called when all subscriptions are restored, before later events are delivered. since is
// the time at which the connection was last known to work.
func (g *Gateway) RedisRestored(since time.Time) { g.outages.subscriptionsRestored(since) }
