package socketgateway

// The connection to Redis that gateways exchange events over, and what its loss means for readiness and
// rooms.

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/redisclient"
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/pkg/socketio/redisadapter"
	"github.com/parley-chat/parley/services/socket-gateway/internal/realtime"
)

const (
	redisDialTimeout = 2 * time.Second
	redisWatch       = time.Second // the interval between checks of the Redis connection
)

var errNotSubscribed = errors.New("not all rooms are resubscribed")

// redisConn is the connection to Redis over which gateways exchange emits. It is nil for a single gateway
// without Redis.
type redisConn struct {
	client  redis.UniversalClient
	adapter func(socketio.Local) socketio.Adapter
	lost    atomic.Bool // subscriptions are lost and not all restored
	metrics *realtime.Metrics
	gateway atomic.Pointer[realtime.Gateway] // handles lost subscriptions
	log     *slog.Logger
}

// openRedis returns a client that connects, and reconnects without a time limit, in the background. Without
// REDIS_URL it returns nil.
func openRedis(cfg Config, metrics *realtime.Metrics) (*redisConn, error) {
	if cfg.RedisURL == "" {
		return nil, nil
	}
	client, err := redisclient.New(cfg.RedisURL, redisclient.Timeouts{Dial: redisDialTimeout})
	if err != nil {
		return nil, err
	}
	r := &redisConn{client: client, metrics: metrics, log: cfg.Logger}
	r.adapter = redisadapter.New(client, redisadapter.Options{
		Sharded:      cfg.RedisSharded,
		OnDisconnect: func(string) { r.onLost() },
		OnReconnect:  func(_ string, since time.Time) { r.onBack(since) },
		Logger:       cfg.Logger,
	})
	return r, nil
}

// openLimits returns the Redis in which the gateways share limits. Without REDIS_URL it returns nil, and without Redis
// each gateway counts by itself.
func openLimits(cfg Config) (*ratelimit.Redis, error) {
	if cfg.RedisURL == "" {
		return nil, nil
	}
	return ratelimit.OpenRedis(cfg.RedisURL, cfg.Logger)
}

// onLost is called by the adapter before it connects again, so that the rooms are paused before later events
// come.
func (r *redisConn) onLost() {
	r.lost.Store(true)
	if g := r.gateway.Load(); g != nil { // nil: no socket has joined yet
		g.RedisLost()
	}
}

// onBack is called by the adapter when all subscriptions are restored.
func (r *redisConn) onBack(since time.Time) {
	r.lost.Store(false)
	if g := r.gateway.Load(); g != nil {
		g.RedisRestored(since)
	}
}

// ready returns nil if Redis answers and all rooms are subscribed.
func (r *redisConn) ready(ctx context.Context) error {
	began := time.Now()
	if err := r.client.Ping(ctx).Err(); err != nil {
		return apperr.Unreachable("redis", err)
	}
	r.metrics.RedisAnswered(time.Since(began))
	if r.lost.Load() {
		return apperr.Unreachable("redis", errNotSubscribed)
	}
	return nil
}

// watch logs one line when Redis becomes unavailable, including at the start, and one when it is connected again.
func (r *redisConn) watch(ctx context.Context) {
	tick := time.NewTicker(redisWatch)
	defer tick.Stop()
	for away := false; ; {
		err := r.ready(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !away:
			r.log.WarnContext(ctx, "Redis unavailable, reconnecting in the background", "error", errors.Unwrap(err))
		case err == nil && away:
			r.log.InfoContext(ctx, "Redis connected")
		}
		away = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// close ends the connection; without Redis it does nothing.
func (r *redisConn) close() error {
	if r == nil {
		return nil
	}
	return r.client.Close()
}

// newAdapter returns the constructor of a namespace's adapter; nil without Redis, which makes the engine
// serve a single node.
func (r *redisConn) newAdapter(cfg Config) func(socketio.Local) socketio.Adapter {
	if r == nil {
		return nil
	}
	return realtime.TracePublishes(r.adapter, cfg.Tracer)
}

// universalClient returns the client, or a nil interface without Redis.
func (r *redisConn) universalClient() redis.UniversalClient {
	if r == nil {
		return nil
	}
	return r.client
}
