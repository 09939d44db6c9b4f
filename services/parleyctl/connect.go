package parleyctl

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/secret"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/backend"
	"github.com/parley-chat/parley/pkg/store/encrypted"
)

const (
	// reachLimit bounds the first response of NATS and the store.
	reachLimit = 5 * time.Second
	closeLimit = 5 * time.Second
)

// connections are opened when a command needs them.
type connections struct {
	bus   *bus.Bus
	store *encrypted.Store
}

// openBus returns a working connection.
func (a *app) openBus(ctx context.Context) (*bus.Bus, error) { return a.openBusAs(ctx, name) }

// openBusAs is [app.openBus] for a user whose inboxes begin with its own name.
func (a *app) openBusAs(ctx context.Context, user string) (*bus.Bus, error) {
	if a.connections.bus != nil {
		return a.connections.bus, nil
	}
	s, err := a.settings()
	if err != nil {
		return nil, err
	}
	if s.NATSURL == "" {
		return nil, usage("NATS_URL is not set")
	}
	b, err := bus.Open(bus.Config{
		URL: s.NATSURL, CredsFile: s.NATSCreds, CAFile: s.NATSCA, CertFile: s.NATSCert, KeyFile: s.NATSKey,
		Name: user, Observe: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, usage(err.Error())
	}
	a.connections.bus = b
	if err := b.Ready(ctx); err != nil {
		return nil, unreachable("NATS", s.NATSURL, err)
	}
	return b, nil
}

// openStore returns a working connection.
func (a *app) openStore(ctx context.Context) (store.Store, error) {
	s, err := a.openEncrypted(ctx)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openEncrypted returns a working connection. Without SECRETS_KEY_FILE records with secrets cannot be read.
func (a *app) openEncrypted(ctx context.Context) (*encrypted.Store, error) {
	if a.connections.store != nil {
		return a.connections.store, nil
	}
	s, err := a.settings()
	if err != nil {
		return nil, err
	}
	if s.MongoDBURI == "" && s.SQLitePath == "" {
		return nil, usage("MONGODB_URI or SQLITE_PATH is not set")
	}
	keys := new(secret.KeySet)
	if s.secretsFile != "" {
		keys, err = secret.Load(s.secretsFile)
		if err != nil {
			return nil, usage(err.Error())
		}
	}
	opened, err := backend.Open(backend.Config{
		Store: s.Store, Keys: keys, AppName: name, IdleClose: s.ChatIdleClose, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil && s.MongoDBURI != "" {
		return nil, usage("MONGODB_URI is invalid") // the cause could contain a password
	}
	if err != nil {
		return nil, usage(fmt.Sprintf("SQLITE_PATH: %v", err))
	}
	a.connections.store = opened
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	if err := opened.Ready(ctx); err != nil {
		return nil, unreachable("the store", cmp.Or(s.MongoDBURI, s.SQLitePath), err)
	}
	return opened, nil
}

func (a *app) close() {
	if a.connections.bus != nil {
		a.connections.bus.Close()
	}
	if a.connections.store != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
		defer cancel()
		_ = a.connections.store.Close(ctx) // the process ends
	}
}

// unreachable returns the error for an engine that does not answer, with its address but without secrets.
func unreachable(engine, address string, err error) error {
	if !apperr.Is(err, apperr.Unavailable) {
		return err
	}
	return &apperr.Error{
		Code:    apperr.Unavailable,
		Message: fmt.Sprintf("%s does not answer at %s", engine, redacted(address)),
	}
}

func redacted(address string) string {
	servers := strings.Split(address, ",")
	for i, s := range servers {
		u, err := url.Parse(strings.TrimSpace(s))
		switch {
		case err == nil && u.Host != "":
			u.RawQuery = ""
			servers[i] = u.Redacted()
		default: // a further host of a list
			_, host, found := strings.Cut(s, "@")
			if !found {
				host = s
			}
			servers[i], _, _ = strings.Cut(host, "?")
		}
	}
	return strings.Join(servers, ",")
}
