package storage_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/secret"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/pkg/service/storage"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/testkit/storetest"
)

// run runs a service that has the key file, until ready has returned nil or the service has ended.
func run(t *testing.T, database, keyFile string, ready func(context.Context, store.Store) error) error {
	t.Helper()
	base := service.Base{Logger: slog.New(slog.DiscardHandler)}
	return service.Run(t.Context(), "test", base, func(p *service.Process) (service.Work, error) {
		s, err := storage.OpenWithSecrets(p, storage.Config{Store: config.Store{SQLitePath: database}}, config.Secrets{SecretsKeyFile: keyFile})
		return func(ctx context.Context) error { return ready(ctx, s) }, err
	})
}

func TestKeysOfAnotherDatabaseStopTheStart(t *testing.T) {
	t.Parallel()
	database := storetest.Path(t)
	s := storetest.OpenAt(t, database)
	u := account.NewUser("ada@example.com", "", account.Operator, "", time.Now())
	u.TOTPSecret = account.NewTOTPSecret()
	if err := s.CreateUser(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	content, err := secret.Generate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(foreign, content, 0o600); err != nil {
		t.Fatal(err)
	}
	forever := func(ctx context.Context, _ store.Store) error { <-ctx.Done(); return nil }
	for keyFile, want := range map[string]string{
		foreign:                                 "SECRETS_KEY_FILE has no key ",
		filepath.Join(t.TempDir(), "none.json"): "SECRETS_KEY_FILE: reading the keys of secrets",
	} {
		err := run(t, database, keyFile, forever)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line that begins with %q", keyFile, err, want)
		}
	}
	err = run(t, database, storetest.KeyFile(t), func(ctx context.Context, s store.Store) error {
		_, err := s.User(ctx, u.ID)
		return err
	})
	if err != nil {
		t.Errorf("with its own keys: got %v, want the user", err)
	}
}
