// Package redisclient creates the services' Redis clients from REDIS_URL.
package redisclient

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// silent discards go-redis's log. Everything it would write to standard error is also returned as an error.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(silent{}) }

// Timeouts of a client; zero is go-redis's default.
type Timeouts struct {
	Dial, Command time.Duration
}

// noRetries is go-redis's value for MaxRetries that means none; 0 would be its default of 3.
const noRetries = -1

// New takes one URL, or those of a cluster's nodes, separated by commas. It connects on demand. The client does not
// retry failed commands: its caller knows which may be repeated. The error does not contain the URL, which may contain
// a password.
func New(urls string, t Timeouts) (redis.UniversalClient, error) {
	client, err := parse(urls, t)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	return client, nil
}

func parse(urls string, t Timeouts) (redis.UniversalClient, error) {
	first, others, several := strings.Cut(urls, ",")
	if !several {
		o, err := redis.ParseURL(first)
		if err != nil {
			return nil, err
		}
		o.MaxRetries = noRetries
		o.DialTimeout = t.Dial
		o.ReadTimeout = t.Command
		o.WriteTimeout = t.Command
		return redis.NewClient(o), nil
	}
	o, err := redis.ParseClusterURL(first)
	if err != nil {
		return nil, err
	}
	for other := range strings.SplitSeq(others, ",") {
		node, err := redis.ParseURL(other)
		if err != nil {
			return nil, err
		}
		o.Addrs = append(o.Addrs, node.Addr)
	}
	o.MaxRetries = noRetries
	o.DialTimeout = t.Dial
	o.ReadTimeout = t.Command
	o.WriteTimeout = t.Command
	return redis.NewClusterClient(o), nil
}
