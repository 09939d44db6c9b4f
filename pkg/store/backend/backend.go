// Package backend opens the store that the configuration names: MongoDB for many machines, SQLite for one.
package backend

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/mongodb"
	"github.com/parley-chat/parley/pkg/store/sqlite"
)

// Config names one engine.
type Config struct {
	MongoDBURI      string // MONGODB_URI; excludes SQLitePath
	MongoDBDatabase string // MONGODB_DATABASE
	SQLitePath      string // SQLITE_PATH; excludes MongoDBURI
	AppName         string // how MongoDB's logs call the process
	Logger          *slog.Logger
	IdleClose       time.Duration // CHAT_IDLE_CLOSE: how long a visitor may be silent before the chat counts as closed; 0: for ever
}

// Open opens the store. MongoDB may be away: its driver connects in the background. A SQLite file is opened, and migrated, at once.
func Open(c Config) (store.Store, error) {
	switch {
	case c.MongoDBURI != "" && c.SQLitePath != "", c.MongoDBURI == "" && c.SQLitePath == "":
		return nil, errors.New("store: exactly one of MONGODB_URI and SQLITE_PATH must be set")
	case c.SQLitePath != "":
		return sqlite.Open(context.Background(), sqlite.Config{Path: c.SQLitePath, Logger: c.Logger, IdleClose: c.IdleClose})
	}
	return mongodb.Open(mongodb.Config{
		URI: c.MongoDBURI, Database: c.MongoDBDatabase, AppName: c.AppName, Logger: c.Logger, IdleClose: c.IdleClose,
	})
}

// Close closes the store. Operations that are under way get five seconds to finish.
func Close(s store.Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return s.Close(ctx)
}
