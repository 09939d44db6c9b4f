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

// Config is what a gateway works with. All fields but Tracer, RecoveryRate and Presence are needed.
type Config struct {
	Namespace *socketio.Namespace
	Bus       *bus.Bus
	Tokens    Tokens
	Origins   AskOrigins
	Metrics   *Metrics
	Logger    *slog.Logger
	Now       func() time.Time
	Tracer    *tracing.Tracer                              // nil: no traces
	Revoked   func(ctx context.Context, chatUserID string) // called when a visitor's tokens are revoked; nil: only this gateway has sockets

	RecoveryRate config.Rate // of one visitor; the zero Rate is no limit

	Presence presence.Store // where it is kept which visitors are connected; nil: nowhere
	ID       string         // tells gateways apart in Presence
}

// Gateway is the namespace of the visitors and what happens in it.
type Gateway struct {
	cfg           Config
	authenticator *Authenticator
	deliverer     *Deliverer
	parts         *Parts
	rooms         *Rooms
	receipts      *Receipts
	floors        *Floors
	gap           *Gap
	expiry        *Expiry
	origins       *Origins
	live          *Live
	presence      *Presence
}

// New puts a gateway into its namespace. Sockets are admitted while Run runs.
func New(cfg Config) *Gateway {
	g := &Gateway{cfg: cfg, expiry: NewExpiry(cfg.Now), origins: NewOrigins(cfg.Origins, cfg.Now)}
	log := NewLog(cfg.Bus)
	g.receipts = NewReceipts(cfg.Bus, cfg.Metrics, cfg.Logger, cfg.Now)
	g.rooms = NewRooms(cfg.Namespace, cfg.Metrics, cfg.Now, g.receipts.Note)
	g.rooms.tracer = cfg.Tracer
	g.floors = NewFloors(log, g.rooms.Renew)
	g.gap = NewGap(g.rooms, log, g.floors, cfg.Logger)
	g.live = &Live{
		namespace: cfg.Namespace, rooms: g.rooms, signals: cfg.Bus, reader: cfg.Bus, metrics: cfg.Metrics, now: cfg.Now, logger: cfg.Logger,
		typing: ratelimit.New(ratelimit.Config{Name: "typing", Rate: typingRate, Now: cfg.Now}),
		reads:  ratelimit.New(ratelimit.Config{Name: "read", Rate: readRate, Now: cfg.Now}),
		coming: make(chan *socketio.Broadcast, signalRoom),
	}
	g.presence = NewPresence(cfg.Presence, cfg.Namespace, cfg.ID, cfg.Now, cfg.Logger)
	g.authenticator = &Authenticator{
		namespace: cfg.Namespace, tokens: cfg.Tokens, expiry: g.expiry, revocations: newRevocations(), origins: g.origins, rooms: g.rooms,
		receipts: g.receipts, log: log, unfinished: NewUnfinished(cfg.Bus, cfg.Now),
		recoveries: ratelimit.New(ratelimit.Config{Name: "recovery", Rate: cfg.RecoveryRate, Now: cfg.Now}),
		floors:     g.floors, metrics: cfg.Metrics, now: cfg.Now, logger: cfg.Logger, live: g.live, presence: g.presence,
	}
	g.deliverer = &Deliverer{namespace: cfg.Namespace, metrics: cfg.Metrics, now: cfg.Now, traced: cfg.Tracer != nil}
	g.parts = &Parts{namespace: cfg.Namespace, metrics: cfg.Metrics, now: cfg.Now}
	cfg.Namespace.OnBroadcast(g.rooms.Arrive)
	g.authenticator.guard()
	g.live.listen()
	return g
}

// Run runs the background work beside the deliveries, until ctx is done.
func (g *Gateway) Run(ctx context.Context) error {
	stop, err := g.cfg.Bus.OnInvalidate(g.origins.Forget)
	if err != nil {
		return err
	}
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	for _, run := range []func(context.Context){g.floors.Run, g.gap.Run, g.rooms.Run, g.expiry.Run, g.receipts.Run, g.followRevocations, g.live.Run, g.presence.Run} {
		running.Go(func() { run(ctx) })
	}
	<-ctx.Done()
	return nil
}

// Enter returns the visitor of a token that is valid, not revoked, and allowed on pages of that origin. The
// origin is empty where it is no page.
func (g *Gateway) Enter(ctx context.Context, token, origin string) (credential.VisitorClaims, error) {
	return g.authenticator.enter(ctx, token, origin)
}

// Deliver takes replies and parts and emits them until ctx is done; then another gateway does. It returns when none is in hand.
func (g *Gateway) Deliver(ctx context.Context) error {
	group, delivering := errgroup.WithContext(ctx)
	for _, c := range []bus.Consumer{g.deliverer.consumer(), g.parts.consumer()} {
		group.Go(func() error { return g.cfg.Bus.Consume(delivering, c) })
	}
	return group.Wait()
}

// Drain closes all sockets, spread over a time; at once when ctx is done.
func (g *Gateway) Drain(ctx context.Context, within time.Duration) {
	drain(ctx, g.cfg.Namespace.Sockets(), within)
}

// RedisLost is to be called when the subscriptions at Redis are lost, before they are made again.
func (g *Gateway) RedisLost() { g.gap.Lost() }

// RedisBack is to be called when all subscriptions are there again, before anything is delivered that follows. since is
// when the connection was last known to be good.
func (g *Gateway) RedisBack(since time.Time) { g.gap.Back(since) }
