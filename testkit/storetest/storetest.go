// Package storetest has the contract suite that every engine passes, and stores for other tests.
package storetest

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/backend"
)

// Options configure a test's store.
type Options struct {
	IdleClose time.Duration
}

// Open returns an empty store on its own engine, closed when the test ends.
func Open(t testing.TB, options ...Options) store.Store {
	t.Helper()
	return OpenAt(t, Path(t), options...)
}

// Path returns a path for a SQLite file, removed when the test ends.
func Path(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "parley.db")
}

// OpenAt opens the SQLite file at path, for tests with several processes or that reopen it.
func OpenAt(t testing.TB, path string, options ...Options) store.Store {
	t.Helper()
	c := backend.Config{Store: config.Store{SQLitePath: path}, Keys: Keys(), Logger: slog.New(slog.DiscardHandler)}
	for _, o := range options {
		c.IdleClose = o.IdleClose
	}
	s, err := backend.Open(c)
	if err != nil {
		t.Fatalf("opening the store: %v", err)
	}
	t.Cleanup(func() {
		if err := backend.Close(s); err != nil {
			t.Errorf("closing the store: %v", err)
		}
	})
	return s
}
