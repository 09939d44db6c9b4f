package ratelimit

import (
	"context"
	"crypto/sha256"
	_ "embed" // the script
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
	// redisTimeout bounds how long a request waits for a lease.
	redisTimeout = 250 * time.Millisecond
	// redisPause is how long Redis is not contacted after a failure.
	redisPause = time.Second
)

//go:embed gcra.lua
var script string

// Redis stores the counts shared by replicas. It is safe for concurrent use.
type Redis struct {
	client  redis.UniversalClient
	script  *redis.Script
	log     *slog.Logger
	retryAt atomic.Int64 // Unix nanoseconds; until then Redis is not contacted
	failing atomic.Bool  // the last request failed
}

// OpenRedis prepares connections to one URL, or to the nodes of a cluster, separated by commas; it connects on demand.
// Its error does not repeat the URL, which may contain a password.
func OpenRedis(urls string, log *slog.Logger) (*Redis, error) {
	client, err := redisclient.New(urls, redisclient.Timeouts{Dial: redisTimeout, Command: redisTimeout})
	if err != nil {
		return nil, err
	}
	return &Redis{client: client, script: redis.NewScript(script), log: log}, nil
}

// Close closes the connections. It does nothing on a nil Redis.
func (r *Redis) Close() error {
	if r == nil {
		return nil
	}
	return r.client.Close()
}

// Ready returns nil if Redis answers or is not configured.
func (r *Redis) Ready(ctx context.Context) error {
	if r == nil {
		return nil
	}
	if err := r.client.Ping(ctx).Err(); err != nil {
		return apperr.Unreachable("redis", err)
	}
	return nil
}

// available reports whether Redis should be contacted.
func (r *Redis) available() bool { return time.Now().UnixNano() >= r.retryAt.Load() }

// take requests permits. Callers' names are not sent: a key is a hash.
func (r *Redis) take(ctx context.Context, limit, caller string, rate config.Rate, wanted int) (grant, error) {
	hash := sha256.Sum256([]byte(caller))
	key := "parley:rate:" + limit + ":" + hex.EncodeToString(hash[:16])
	interval := float64(rate.Per.Microseconds()) / float64(rate.Count)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), redisTimeout)
	defer cancel()
	answer, err := r.script.Run(ctx, r.client, []string{key}, interval, rate.Per.Microseconds(), wanted).Int64Slice()
	if err == nil && len(answer) != 3 {
		err = fmt.Errorf("the script returned %d numbers", len(answer))
	}
	if err != nil {
		r.failed(ctx, err)
		return grant{}, err
	}
	if r.failing.CompareAndSwap(true, false) {
		r.log.InfoContext(ctx, "Redis available: replicas share their limits")
	}
	return grant{permits: int(answer[0]), left: int(answer[1]), full: time.Duration(answer[2]) * time.Microsecond}, nil
}

func (r *Redis) failed(ctx context.Context, err error) {
	r.retryAt.Store(time.Now().Add(redisPause).UnixNano())
	if r.failing.CompareAndSwap(false, true) {
		r.log.WarnContext(ctx, "Redis unavailable: each replica enforces limits by itself", "error", err)
	}
}
