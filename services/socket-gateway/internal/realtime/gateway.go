package realtime

// The gateway as the service sees it: construction, background work, and the events of Redis.

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/presence"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/pkg/tracing"
)

// Config configures a gateway. Tracer, Revoked, the rates and Presence are optional.
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

	RecoveryRate  config.Rate // per visitor; the zero Rate is no limit
	RecoveryBytes config.Rate // per company: what its visitors recover waits in the memory of the gateway

	Limits *ratelimit.Redis // where gateways share the bound of recovered replies' reports; nil: this one counts alone

	Presence presence.Store // connected visitors are written to it; nil: presence is not stored
	ID       string         // of this gateway in Presence
}

// Gateway serves the visitors' namespace. It owns the parts of this package and the wiring between them: New
// makes them, Run and Read run them, and they end when the contexts of both are done. Its fields are set once.
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
	reader := newReplyStream(cfg.Bus)
	receipts := newReceiptQueue(cfg.Bus, cfg.Metrics, cfg.Logger, newRecoveryReports(cfg.Limits, cfg.Now), cfg.Now)
	rooms := newRooms(roomsConfig{
		sockets: cfg.Namespace,
		metrics: cfg.Metrics,
		now:     cfg.Now,
		receipt: receipts.report,
		tracer:  cfg.Tracer,
	})
	watermarks := newLowWatermarks(reader, func() {
		rooms.resetOffsets()
		receipts.recovered.reset()
	})
	g := &Gateway{
		cfg:        cfg,
		rooms:      rooms,
		receipts:   receipts,
		watermarks: watermarks,
		outages:    newOutageReplay(rooms, reader, watermarks, cfg.Logger),
		expiry:     newExpiry(cfg.Now),
		origins:    newOriginCache(cfg.Origins, cfg.Now),
		live:       newLiveEvents(cfg, rooms),
		presence:   newPresenceWriter(cfg),
		replies: &replyPublisher{
			namespace: cfg.Namespace,
			metrics:   cfg.Metrics,
			now:       cfg.Now,
			traced:    cfg.Tracer != nil,
		},
		parts: &partPublisher{namespace: cfg.Namespace, metrics: cfg.Metrics, now: cfg.Now},
	}
	g.authenticator = newAuthenticator(g, reader)
	cfg.Namespace.OnBroadcast(rooms.handleBroadcast)
	g.authenticator.handleConnections()
	g.live.handleEvents()
	return g
}

// Run runs all background work except the consumers until ctx is done.
func (g *Gateway) Run(ctx context.Context) error {
	stop, err := g.cfg.Bus.RPC().OnInvalidate(g.origins.forget)
	if err != nil {
		return err
	}
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	for _, run := range []func(context.Context){
		g.watermarks.run,
		g.outages.run,
		g.rooms.run,
		g.expiry.run,
		g.receipts.run,
		g.followRevocations,
		g.live.run,
		g.presence.run,
	} {
		running.Go(func() { run(ctx) })
	}
	<-ctx.Done()
	return nil
}

// Authenticate returns the claims of a token that is valid, not revoked, and presented by a page of an allowed
// origin. The origin is empty if the client is not a page.
func (g *Gateway) Authenticate(ctx context.Context, token, origin string) (credential.VisitorClaims, error) {
	return g.authenticator.authenticate(ctx, token, origin)
}

// Drain closes all sockets evenly over the duration within, or immediately when ctx is done.
func (g *Gateway) Drain(ctx context.Context, within time.Duration) {
	drain(ctx, g.cfg.Namespace.Sockets(), within)
}

// RedisLost must be called when Redis subscriptions are lost, before they are restored.
func (g *Gateway) RedisLost() { g.outages.subscriptionsLost() }

// RedisRestored must be called when all subscriptions are restored, before later events are delivered. since is
// the time at which the connection was last known to work.
func (g *Gateway) RedisRestored(since time.Time) { g.outages.subscriptionsRestored(since) }
