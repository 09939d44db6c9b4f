//go:build !nosqlite

package backend

import (
	"context"

	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/sqlite"
)

func openSQLite(c Config) (store.Store, error) {
	return sqlite.Open(context.Background(), sqlite.Config{Path: c.SQLitePath, Logger: c.Logger, IdleClose: c.IdleClose})
}
