// Package backend opens the configured store: MongoDB for many machines, SQLite for one, with its secrets encrypted.
package backend

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/secret"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/encrypted"
	"github.com/parley-chat/parley/pkg/store/mongodb"
)

// Config configures one store.
type Config struct {
	config.Store

	Keys      *secret.KeySet // encrypt the secrets of records; nil: see [encrypted.New]
	AppName   string         // name of the process in MongoDB's logs
	Logger    *slog.Logger
	IdleClose time.Duration // CHAT_IDLE_CLOSE: inactivity of the visitor after which the chat counts as closed; 0: never
}

// Open opens the store. MongoDB may be unavailable: its driver connects in the background. A SQLite file is opened and
// migrated immediately.
func Open(c Config) (*encrypted.Store, error) {
	if problems := c.Validate(); len(problems) > 0 {
		return nil, errors.New("store: " + strings.Join(problems, "; "))
	}
	engine, err := openEngine(c)
	if err != nil {
		return nil, err
	}
	return encrypted.New(engine, c.Keys), nil
}

func openEngine(c Config) (store.Store, error) {
	if c.SQLitePath != "" {
		return openSQLite(c)
	}
	return mongodb.Open(mongodb.Config{
		URI: c.MongoDBURI, Database: c.MongoDBDatabase, AppName: c.AppName, Logger: c.Logger, IdleClose: c.IdleClose,
	})
}

// Close closes the store. Operations in progress have five seconds to finish.
func Close(s store.Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return s.Close(ctx)
}
