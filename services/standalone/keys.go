package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/parley-chat/parley/pkg/atomicfile"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/secret"
	"github.com/parley-chat/parley/pkg/store/backend"
)

// visitorKeys loads the keys that sign visitor tokens. They are created at the first start only: with new
// keys every visitor would have to register again.
func visitorKeys(path string) (*credential.KeySet, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		keys, err := credential.GenerateKeySet()
		if err != nil {
			return nil, fmt.Errorf("creating the visitor keys: %w", err)
		}
		if err := atomicfile.Write(path, keys); err != nil {
			return nil, err
		}
	}
	return credential.LoadKeySet(path)
}

// secretKeys loads the keys that encrypt secrets in the database. They are created at the first start only: a
// database with secrets needs its own.
func secretKeys(path, database string) (*secret.KeySet, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := refuseLostKeys(path, database); err != nil {
			return nil, err
		}
		keys, err := secret.Generate(time.Now())
		if err != nil {
			return nil, fmt.Errorf("creating the keys of secrets: %w", err)
		}
		if err := atomicfile.Write(path, keys); err != nil {
			return nil, err
		}
	}
	return secret.Load(path)
}

// refuseLostKeys returns an error if the database has secrets that the missing file at path would decrypt.
func refuseLostKeys(path, database string) (err error) {
	if _, err := os.Stat(database); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	s, err := backend.Open(
		backend.Config{Store: config.Store{SQLitePath: database}, Logger: slog.New(slog.DiscardHandler)},
	)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close(s)) }()
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	used, err := s.Usage(ctx)
	if err != nil {
		return err
	}
	for id := range used {
		return fmt.Errorf(
			"%s is missing, and the secrets in %s are encrypted with its key %s: restore it from its backup",
			path, database, id,
		)
	}
	return nil
}
