// Package sqlite is the store of one machine: one file, in WAL mode.
package sqlite

import (
	"context"
	"log/slog"
	"time"

	"github.com/parley-chat/parley/pkg/store"
)

// Config says where the file is.
type Config struct {
	Path      string // of the database file; its folder must exist
	Logger    *slog.Logger
	IdleClose time.Duration    // how long a visitor may be silent before the chat counts as closed; 0: for ever
	Now       func() time.Time // for expiry; nil: time.Now
}

// Store implements [store.Store].
type Store struct{ store.Store }

// Open opens or creates the file and applies the migrations.
func Open(ctx context.Context, c Config) (*Store, error) { panic("not built yet") }
