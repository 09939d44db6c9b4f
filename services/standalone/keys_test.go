package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/store/backend"
)

// TestLostKeysAreNotReplaced loses the key file of a data folder before and after the database has a secret.
func TestLostKeysAreNotReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, database := filepath.Join(dir, secretsFile), filepath.Join(dir, storeFile)
	addUser := func(email, totp string) {
		t.Helper()
		keys, err := secretKeys(path, database)
		check(t, err)
		s, err := backend.Open(backend.Config{Store: config.Store{SQLitePath: database}, Keys: keys, Logger: slog.New(slog.DiscardHandler)})
		check(t, err)
		u := account.NewUser(email, "", account.Operator, "", time.Now())
		u.TOTPSecret = totp
		check(t, s.CreateUser(t.Context(), u))
		check(t, backend.Close(s))
	}
	addUser("ada@example.com", "")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the key file: got %v, %v, want mode 0600", info, err)
	}
	check(t, os.Remove(path))
	addUser("bob@example.com", account.NewTOTPSecret()) // a new key: no secret is lost
	if _, err := secretKeys(path, database); err != nil {
		t.Errorf("a restart: got %v, want the keys", err)
	}
	check(t, os.Remove(path))
	_, err := secretKeys(path, database)
	if err == nil || !strings.Contains(err.Error(), path+" is missing, and the secrets in "+database) {
		t.Errorf("with a secret of the lost key: got %v, want what to restore", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("got a new key file, want none")
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
