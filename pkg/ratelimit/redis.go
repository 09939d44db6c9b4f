package ratelimit

import (
	"context"
	"crypto/sha256"
	_ "embed" // gcra.lua
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/redisclient"
)

const (
	// redisTimeout limits the wait for a lease.
	redisTimeout = 250 * time.Millisecond
	// redisPause is the delay before the next request to Redis after a failure.
	redisPause = time.Second
)

//go:embed gcra.lua
var script string

// Redis stores the limits shared by the replicas. It is safe for concurrent use.
type Redis struct {
	client  redis.UniversalClient
	script  *redis.Script
	log     *slog.Logger
	retryAt atomic.Int64 // Unix nanoseconds; no requests to Redis before
	failing atomic.Bool  // the last request failed
}

// OpenRedis returns a client for one URL, or for the nodes of a cluster, separated by commas. It connects on
// demand. Errors do not contain the URL, which may include a password.
func OpenRedis(urls string, log *slog.Logger) (*Redis, error) {
	client, err := redisclient.New(urls, redisclient.Timeouts{Dial: redisTimeout, Command: redisTimeout})
	if err != nil {
		return nil, err
	}
	return &Redis{client: client, script: redis.NewScript(script), log: log}, nil
}

// Close closes the connections. On a nil Redis it does nothing.
func (r *Redis) Close() error {
	if r == nil {
		return nil
	}
	return r.client.Close()
}

// Ready returns nil if Redis responds or is not configured.
func (r *Redis) Ready(ctx context.Context) error {
	if r == nil {
		return nil
	}
	if err := r.client.Ping(ctx).Err(); err != nil {
		return apperr.Unreachable("redis", err)
	}
	return nil
}

// available reports whether redisPause has passed since the last failure.
func (r *Redis) available() bool { return time.Now().UnixNano() >= r.retryAt.Load() }

// take requests permits. The key contains a hash instead of the caller's name.
func (r *Redis) take(ctx context.Context, limit, caller string, rate config.Rate, wanted int) (grant, error) {
	hash := sha256.Sum256([]byte(caller))
	key := "parley:rate:" + limit + ":" + hex.EncodeToString(hash[:16])
	interval := float64(rate.Per.Microseconds()) / float64(rate.Count)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), redisTimeout)
	defer cancel()
	reply, err := r.script.Run(ctx, r.client, []string{key}, interval, rate.Per.Microseconds(), wanted).Int64Slice()
	if err == nil && len(reply) != 3 {
		err = fmt.Errorf("the script returned %d values", len(reply))
	}
	if err != nil {
		r.failed(ctx, err)
		return grant{}, err
	}
	if r.failing.CompareAndSwap(true, false) {
		r.log.InfoContext(ctx, "Redis available: replicas share rate limits")
	}
	return grant{permits: int(reply[0]), left: int(reply[1]), full: time.Duration(reply[2]) * time.Microsecond}, nil
}

func (r *Redis) failed(ctx context.Context, err error) {
	r.retryAt.Store(time.Now().Add(redisPause).UnixNano())
	if r.failing.CompareAndSwap(false, true) {
		r.log.WarnContext(ctx, "Redis unavailable: each replica enforces rate limits by itself", "error", err)
	}
}
