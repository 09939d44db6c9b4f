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
	// redisTimeout bounds what a request waits for a lease.
	redisTimeout = 250 * time.Millisecond
	// redisPause is how long Redis is left alone after it did not answer.
	redisPause = time.Second
)

//go:embed gcra.lua
var script string

// Redis is where replicas count together. It is safe for concurrent use.
type Redis struct {
	client    redis.UniversalClient
	script    *redis.Script
	log       *slog.Logger
	awayUntil atomic.Int64 // Unix nanoseconds; later than now: Redis is left alone
	away      atomic.Bool  // it did not answer the last time
}

// OpenRedis prepares connections to one URL, or those of a cluster's nodes, separated by commas; they are made when they are
// needed. Its error does not repeat the URL, which may hold a password.
func OpenRedis(urls string, log *slog.Logger) (*Redis, error) {
	client, err := redisclient.New(urls, redisclient.Timeouts{Dial: redisTimeout, Command: redisTimeout})
	if err != nil {
		return nil, err
	}
	return &Redis{client: client, script: redis.NewScript(script), log: log}, nil
}

// Close ends the connections. A nil Redis has none.
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
		return apperr.Away("redis", err)
	}
	return nil
}

// there reports whether Redis is worth asking.
func (r *Redis) there() bool { return time.Now().UnixNano() >= r.awayUntil.Load() }

// take asks for permits. Callers' names stay here: a key is a hash.
func (r *Redis) take(ctx context.Context, limit, caller string, rate config.Rate, wanted int) (grant, error) {
	hash := sha256.Sum256([]byte(caller))
	key := "parley:rate:" + limit + ":" + hex.EncodeToString(hash[:16])
	interval := float64(rate.Per.Microseconds()) / float64(rate.Count)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), redisTimeout)
	defer cancel()
	answer, err := r.script.Run(ctx, r.client, []string{key}, interval, rate.Per.Microseconds(), wanted).Int64Slice()
	if err == nil && len(answer) != 3 {
		err = fmt.Errorf("the script answered %d numbers", len(answer))
	}
	if err != nil {
		r.failed(ctx, err)
		return grant{}, err
	}
	if r.away.CompareAndSwap(true, false) {
		r.log.InfoContext(ctx, "Redis is there: limits count over all replicas")
	}
	return grant{permits: int(answer[0]), left: int(answer[1]), full: time.Duration(answer[2]) * time.Microsecond}, nil
}

func (r *Redis) failed(ctx context.Context, err error) {
	r.awayUntil.Store(time.Now().Add(redisPause).UnixNano())
	if r.away.CompareAndSwap(false, true) {
		r.log.WarnContext(ctx, "Redis is away: each replica keeps limits by itself", "error", err)
	}
}
