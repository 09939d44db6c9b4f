package presence

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/parley-chat/parley/pkg/apperr"
)

const (
	// Redis keys start with prefix. A value is holding plus the holder, or seen plus a time in Unix milliseconds.
	prefix  = "parley:presence:"
	holding = "on "
	seen    = "seen "
)

// Redis stores presence for all processes. A pipeline costs one round trip per node at most.
type Redis struct{ client redis.UniversalClient }

// NewRedis returns a store in Redis. The caller closes the client.
func NewRedis(client redis.UniversalClient) *Redis { return &Redis{client} }

// SetOnline implements [Store].
func (r *Redis) SetOnline(ctx context.Context, holder string, keys ...string) error {
	if len(keys) == 0 {
		return nil
	}
	_, err := r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range keys {
			p.Set(ctx, prefix+key, holding+holder, TTL)
		}
		return nil
	})
	return unavailable("writing presence", err)
}

// SetOffline implements [Store]. Another holder may take over between the read and the write; its next refresh
// corrects the entry.
func (r *Redis) SetOffline(ctx context.Context, holder string, at time.Time, keys ...string) error {
	values, err := r.values(ctx, keys)
	if err != nil || len(keys) == 0 {
		return err
	}
	_, err = r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			if other, held := strings.CutPrefix(values[i], holding); held && other != holder {
				continue
			}
			p.Set(ctx, prefix+key, seen+strconv.FormatInt(at.UnixMilli(), 10), SeenTTL)
		}
		return nil
	})
	return unavailable("writing presence", err)
}

// States implements [Store].
func (r *Redis) States(ctx context.Context, keys ...string) ([]State, error) {
	values, err := r.values(ctx, keys)
	if err != nil {
		return nil, err
	}
	states := make([]State, len(keys))
	for i, value := range values {
		if strings.HasPrefix(value, holding) {
			states[i].Online = true
		} else if ms, err := strconv.ParseInt(strings.TrimPrefix(value, seen), 10, 64); err == nil {
			states[i].SeenAt = time.UnixMilli(ms).UTC()
		}
	}
	return states, nil
}

// values returns the values of the keys; empty for a missing key. It uses a GET per key because keys of a
// cluster are on different nodes.
func (r *Redis) values(ctx context.Context, keys []string) ([]string, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	replies := make([]*redis.StringCmd, len(keys))
	_, err := r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			replies[i] = p.Get(ctx, prefix+key)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, unavailable("reading presence", err)
	}
	values := make([]string, len(keys))
	for i, reply := range replies {
		values[i], err = reply.Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, unavailable("reading presence", err)
		}
	}
	return values, nil
}

func unavailable(act string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", act, apperr.Unreachable("redis", err))
}
