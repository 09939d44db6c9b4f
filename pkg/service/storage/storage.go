// Package storage opens the store of a service. It is separate from package service because it links the database
// drivers, which the socket gateway does not need.
package storage

import (
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/backend"
)

// Config is the configuration of services that have a store.
type Config struct {
	config.Store
	config.Chats

	SharedStore store.Store `env:"-"` // used instead of opening one; its owner closes it
}

// Open opens the store, which is closed with the service. It connects to MongoDB in the background.
func Open(p *service.Process, cfg Config) (store.Store, error) {
	s, err := backend.Open(backend.Config{
		Store: cfg.Store, Shared: cfg.SharedStore, AppName: p.Name(), Logger: p.Logger(), IdleClose: cfg.ChatIdleClose,
	})
	if err != nil {
		return nil, err
	}
	p.OnClose(func() error { return backend.Close(s) })
	p.Check(ops.Check{Name: "store", Check: s.Ready})
	return s, nil
}
