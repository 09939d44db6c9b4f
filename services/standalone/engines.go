package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/embedded"
	"github.com/parley-chat/parley/pkg/secret"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/backend"
	"github.com/parley-chat/parley/services/standalone/internal/datadir"
)

const (
	storeFile   = "parley.db"
	secretsFile = "secrets-key.json"
	// openTimeout bounds opening the store: after a crash it first replays its log into the file.
	openTimeout = time.Minute
)

// engines are the embedded NATS and the store, in the data folder.
type engines struct {
	nats        *embedded.NATS
	store       store.Store
	storePath   string // absolute
	secrets     *secret.KeySet
	secretsPath string // absolute
}

// startEngines starts both, or neither.
func startEngines(cfg Config, dir *datadir.Dir, log *slog.Logger) (*engines, error) {
	if err := refuseOldData(dir); err != nil {
		return nil, err
	}
	if err := probe("PARLEY_NATS_ADDR", cfg.NATSAddr); err != nil {
		return nil, err
	}
	path, err := dir.Absolute(storeFile)
	if err != nil {
		return nil, fmt.Errorf("locating %s: %w", storeFile, err)
	}
	keysPath, err := dir.Absolute(secretsFile)
	if err != nil {
		return nil, fmt.Errorf("locating %s: %w", secretsFile, err)
	}
	keys, err := secretKeys(keysPath, path)
	if err != nil {
		return nil, err
	}
	s, err := backend.Open(
		backend.Config{Store: config.Store{SQLitePath: path}, Keys: keys, Logger: log, IdleClose: cfg.ChatIdleClose},
	)
	if err != nil {
		return nil, err
	}
	e := &engines{store: s, storePath: path, secrets: keys, secretsPath: keysPath}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	if err := s.Ready(ctx); err != nil {
		return nil, errors.Join(err, backend.Close(s))
	}
	if err := s.CheckKeys(ctx); err != nil {
		return nil, errors.Join(err, backend.Close(s))
	}
	e.nats, err = embedded.StartNATS(embedded.NATSConfig{Addr: cfg.NATSAddr, Dir: dir.Path("nats"), Logger: log})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("PARLEY_NATS_ADDR: %w", err), backend.Close(s))
	}
	if err := applyStreams(e.nats.URL(), cfg.Streams, s, log); err != nil {
		return nil, errors.Join(err, e.stop())
	}
	return e, nil
}

// refuseOldData rejects the folder of a version that stored its data in an embedded MongoDB.
func refuseOldData(dir *datadir.Dir) error {
	_, err := os.Stat(dir.Path("mongodb"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(dir.Path(storeFile)); err == nil {
		return nil
	}
	return fmt.Errorf(
		"%s is the data of an older version, which this one cannot read: move it away, or set PARLEY_DATA_DIR",
		dir.Path(),
	)
}

// stop stops both and returns when the data is closed.
func (e *engines) stop() error {
	e.nats.Stop()
	return backend.Close(e.store)
}
