package peer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	keyPrefix = "parley:gateway:"

	// The entry of a dead gateway expires after expiry; a gateway that stops removes its entry.
	expiry      = 15 * time.Second
	refreshing  = 5 * time.Second
	redisWait   = 2 * time.Second
	fresh       = 2 * time.Second // how long a response of Redis is cached
	maxKnown    = 4096            // bounds the cache: clients may invent ids
	leavingWait = time.Second
)

// Registry maps gateways to their addresses. It is safe for concurrent use.
type Registry struct {
	client redis.UniversalClient
	id     ID
	log    *slog.Logger

	mu    sync.Mutex
	known map[ID]entry
}

// entry is a cached response of Redis; an empty address means that no such gateway is registered.
type entry struct {
	addr string
	at   time.Time
}

// NewRegistry returns a registry; this gateway is not registered yet. The caller closes client. A nil client
// means that this is the only gateway.
func NewRegistry(client redis.UniversalClient, id ID, log *slog.Logger) *Registry {
	return &Registry{client: client, id: id, log: log, known: make(map[ID]entry)}
}

// Register registers this gateway under addr. If it fails, Run retries.
func (r *Registry) Register(ctx context.Context, addr string) error {
	if r.client == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, redisWait)
	defer cancel()
	return r.client.Set(ctx, keyPrefix+string(r.id), addr, expiry).Err()
}

// Run keeps this gateway registered until ctx is done, then removes it.
func (r *Registry) Run(ctx context.Context, addr string) {
	tick := time.NewTicker(refreshing)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			r.leave(ctx)
			return
		case <-tick.C:
			if err := r.Register(ctx, addr); err != nil {
				// the loss of Redis is logged elsewhere
				r.log.DebugContext(ctx, "registering this gateway", "error", err)
			}
		}
	}
}

// leave removes this gateway. If that fails, its entry expires.
func (r *Registry) leave(ctx context.Context) {
	if r.client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leavingWait)
	defer cancel()
	if err := r.client.Del(ctx, keyPrefix+string(r.id)).Err(); err != nil {
		r.log.DebugContext(ctx, "removing this gateway from the registry", "error", err) // the entry expires
	}
}

// Lookup returns the address of a gateway, or false if the id is unknown. If Redis is unavailable, it returns
// the last known address.
func (r *Registry) Lookup(ctx context.Context, id ID) (addr string, ok bool) {
	if r.client == nil {
		return "", false
	}
	e, found := r.recall(id)
	if found && time.Since(e.at) < fresh {
		return e.addr, e.addr != ""
	}
	ctx, cancel := context.WithTimeout(ctx, redisWait)
	defer cancel()
	addr, err := r.client.Get(ctx, keyPrefix+string(id)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return e.addr, e.addr != ""
	}
	r.remember(id, addr)
	return addr, addr != ""
}

func (r *Registry) recall(id ID) (entry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.known[id]
	return e, ok
}

func (r *Registry) remember(id ID, addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= maxKnown {
		clear(r.known)
	}
	r.known[id] = entry{addr: addr, at: time.Now()}
}
