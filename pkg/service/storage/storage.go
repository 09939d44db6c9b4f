// Package storage opens the store of a service, and the Redis of its rate limits. It is separate from package service
// because it links the database drivers, which the socket gateway does not need.
package storage

import (
	"context"
	"errors"
	"time"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/secret"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/backend"
	"github.com/parley-chat/parley/pkg/store/encrypted"
)

// Config is the configuration of services that have a store.
type Config struct {
	config.Store
	config.Chats

	SharedStore store.Store `env:"-"` // used instead of opening one; its owner closes it, and has its keys
}

// Open opens the store, which is closed with the service. It connects to MongoDB in the background.
// Applications come without their identity secrets, and other secrets are errors: see [OpenWithSecrets].
func Open(p *service.Process, cfg Config) (store.Store, error) {
	if cfg.SharedStore != nil {
		return share(p, cfg.SharedStore), nil
	}
	s, err := open(p, cfg, nil)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// OpenWithSecrets opens the store as [Open] does, with the keys of its secrets. They are reloaded when their
// file changes. The service ends if the store has secrets of other keys.
func OpenWithSecrets(p *service.Process, cfg Config, secrets config.Secrets) (store.Store, error) {
	if cfg.SharedStore != nil {
		return share(p, cfg.SharedStore), nil
	}
	keys, err := secret.Load(secrets.SecretsKeyFile)
	if err != nil {
		return nil, err
	}
	s, err := open(p, cfg, keys)
	if err != nil {
		return nil, err
	}
	p.Background(func(ctx context.Context) error { return keys.Run(ctx, p.Logger()) })
	p.Background(func(ctx context.Context) error { return checkKeys(ctx, s) })
	return s, nil
}

func open(p *service.Process, cfg Config, keys *secret.KeySet) (*encrypted.Store, error) {
	s, err := backend.Open(backend.Config{
		Store: cfg.Store, Keys: keys, AppName: p.Name(), Logger: p.Logger(), IdleClose: cfg.ChatIdleClose,
	})
	if err != nil {
		return nil, err
	}
	p.OnClose(func() error { return backend.Close(s) })
	p.Check(ops.Check{Name: "store", Check: s.Ready})
	return s, nil
}

// share returns the store of another owner.
func share(p *service.Process, s store.Store) store.Store {
	p.Check(ops.Check{Name: "store", Check: s.Ready})
	return s
}

// checkEvery is the interval of the attempts to read a database that does not answer yet.
const checkEvery = time.Second

// checkKeys returns an error if the store has secrets of other keys. It waits for the database.
func checkKeys(ctx context.Context, s *encrypted.Store) error {
	for {
		err := s.CheckKeys(ctx)
		if unknown, ok := errors.AsType[*secret.UnknownKeyError](err); ok {
			return unknown
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(checkEvery):
		}
	}
}

// RateLimits opens the Redis in which replicas share their rate limits. Without a URL it returns nil, and each replica
// counts by itself, as during an outage of Redis; it is therefore optional for readiness.
func RateLimits(p *service.Process, redisURL string) (*ratelimit.Redis, error) {
	if redisURL == "" {
		return nil, nil
	}
	r, err := ratelimit.OpenRedis(redisURL, p.Logger())
	if err != nil {
		return nil, err
	}
	p.OnClose(r.Close)
	p.Check(ops.Check{Name: "redis", Check: r.Ready, Optional: true})
	return r, nil
}
