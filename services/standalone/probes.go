package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/standalone/internal/engines"
)

const (
	database = "parley"
	// readyLimit bounds the wait for everything to be ready, and readyPoll is how often it is looked at.
	readyLimit = 30 * time.Second
	readyPoll  = 20 * time.Millisecond
	// closeLimit is how long closing a connection may take.
	closeLimit = 5 * time.Second
)

// probes look at the engines from where the services stand: through the drivers.
type probes struct {
	bus   *bus.Bus
	store *store.Store
	redis *redis.Client
}

func newProbes(set *engines.Set, log *slog.Logger) (*probes, error) {
	options, err := redis.ParseURL(set.RedisURL())
	if err != nil {
		return nil, fmt.Errorf("reading the address of Redis: %w", err)
	}
	s, err := openStore(set.MongoDBURI(), log)
	if err != nil {
		return nil, err
	}
	b, err := bus.Open(bus.Config{URL: set.NATSURL(), Name: "standalone", Logger: log})
	if err != nil {
		return nil, errors.Join(err, closeStore(s))
	}
	return &probes{bus: b, store: s, redis: redis.NewClient(options)}, nil
}

// Checks are what /readyz looks at.
func (p *probes) Checks() []ops.Check {
	return []ops.Check{
		{Name: "nats", Check: p.bus.Ready},
		{Name: "mongodb", Check: p.store.Ready},
		{Name: "redis", Check: func(ctx context.Context) error { return p.redis.Ping(ctx).Err() }},
	}
}

// Await returns nil when every check has passed. Services look for the streams in the background, and there is
// no event for when the last of them is found.
func (p *probes) Await(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, errors.New("not ready in time"))
	defer cancel()
	for _, c := range p.Checks() {
		for {
			err := c.Check(ctx)
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("waiting for %s: %w (%w)", c.Name, context.Cause(ctx), err)
			case <-time.After(readyPoll):
			}
		}
	}
	return nil
}

// Close ends the connections.
func (p *probes) Close() error {
	p.bus.Close()
	return errors.Join(closeStore(p.store), p.redis.Close())
}

func openStore(uri string, log *slog.Logger) (*store.Store, error) {
	return store.Open(store.Config{URI: uri, Database: database, AppName: "standalone", Logger: log})
}

func closeStore(s *store.Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	return s.Close(ctx)
}
