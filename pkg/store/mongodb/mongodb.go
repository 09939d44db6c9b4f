// Package mongodb is the store of many machines.
package mongodb

import (
	"log/slog"
	"time"

	"github.com/parley-chat/parley/pkg/store"
)

// Config says where the documents are.
type Config struct {
	URI       string // mongodb:// or mongodb+srv://; its options win over ours
	Database  string
	AppName   string // how MongoDB's own logs call us; optional
	Logger    *slog.Logger
	IdleClose time.Duration // how long a visitor may be silent before the chat counts as closed; 0: for ever
}

// Store implements [store.Store].
type Store struct{ store.Store }

// Open prepares a store and returns at once: the driver connects in the background and reconnects for ever. The error tells
// only of a wrong Config.
func Open(c Config) (*Store, error) { panic("not built yet") }
