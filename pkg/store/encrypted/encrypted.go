// Package encrypted keeps the secrets of a store encrypted: a copy of the database gives none of them away
// (docs/decisions/0012-operation.md). Package [github.com/parley-chat/parley/pkg/store/backend] puts it
// around every engine, which sees ciphertexts only.
//
// Reading order: fields.go (what is encrypted), encrypted.go (the store), rotate.go (the keys in use, and
// their replacement).
//
// Records that [store.Portable] moves, and so copies and backups, contain the ciphertexts: they need no key,
// and the copy needs the same key file.
package encrypted

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/secret"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

// Store encrypts what it writes to an engine and decrypts what it reads. A secret that it cannot decrypt is
// an error that changes nothing: Unavailable if its key is missing, Internal if it is not a ciphertext of its
// record.
type Store struct {
	store.Store // the engine

	keys *secret.KeySet
	omit bool // applications come without their identity secrets
}

// New returns a store on an engine. Without keys (nil) applications come without their identity secrets, for
// services that read only the rest, and every other secret is an error.
func New(engine store.Store, keys *secret.KeySet) *Store {
	if keys == nil {
		return &Store{Store: engine, keys: new(secret.KeySet), omit: true}
	}
	return &Store{Store: engine, keys: keys}
}

// Engine returns the engine of a store that package backend opened, for what is not in the contract.
func Engine(s store.Store) store.Store {
	if e, ok := s.(*Store); ok {
		return e.Store
	}
	return s
}

func (s *Store) encrypt(place, text string) (string, error) {
	ciphertext, err := s.keys.Encrypt(text, place)
	return ciphertext, coded(place, err)
}

func (s *Store) decrypt(place, ciphertext string) (string, error) {
	text, err := s.keys.Decrypt(ciphertext, place)
	return text, coded(place, err)
}

// coded returns an error of a key as one of the contract.
func coded(place string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", place, err)
	if errors.Is(err, secret.ErrNotDecrypted) || errors.Is(err, secret.ErrNotEncrypted) {
		return apperr.InternalError.Wrap(err)
	}
	return apperr.Unreachable("secrets", err)
}

// all transforms the secrets of all records.
func all[V any](records []V, each func(V, transform) (V, error), by transform) (_ []V, err error) {
	for i := range records {
		if records[i], err = each(records[i], by); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// application decrypts the secrets of an application.
func (s *Store) application(a chat.Application, by transform) (chat.Application, error) {
	if s.omit {
		a.Identity.Secrets = nil
		return a, nil
	}
	return application(a, by)
}

// Application implements [store.Applications].
func (s *Store) Application(ctx context.Context, id string) (chat.Application, error) {
	a, err := s.Store.Application(ctx, id)
	if err != nil {
		return a, err
	}
	return s.application(a, s.decrypt)
}

// Applications implements [store.Applications].
func (s *Store) Applications(ctx context.Context, companyID string, p store.Page) ([]chat.Application, error) {
	found, err := s.Store.Applications(ctx, companyID, p)
	if err != nil {
		return nil, err
	}
	return all(found, s.application, s.decrypt)
}

// ChangeApplication implements [store.Applications].
func (s *Store) ChangeApplication(ctx context.Context, id string, change store.ApplicationChange) error {
	if secrets := change.Secrets; secrets != nil {
		change.Secrets = func(v chat.IdentityVerification) (_ []chat.IdentitySecret, err error) {
			if v.Secrets, err = identitySecrets(id, v.Secrets, s.decrypt); err != nil {
				return nil, err
			}
			changed, err := secrets(v)
			if err != nil {
				return nil, err
			}
			return identitySecrets(id, changed, s.encrypt)
		}
	}
	return s.Store.ChangeApplication(ctx, id, change)
}

// User implements [store.Users].
func (s *Store) User(ctx context.Context, id string) (account.User, error) {
	u, err := s.Store.User(ctx, id)
	if err != nil {
		return u, err
	}
	return user(u, s.decrypt)
}

// Users implements [store.Users].
func (s *Store) Users(ctx context.Context, companyID string, p store.Page) ([]account.User, error) {
	found, err := s.Store.Users(ctx, companyID, p)
	if err != nil {
		return nil, err
	}
	return all(found, user, s.decrypt)
}

// CreateUser implements [store.Users].
func (s *Store) CreateUser(ctx context.Context, u account.User) error {
	u, err := user(u, s.encrypt)
	if err != nil {
		return err
	}
	return s.Store.CreateUser(ctx, u)
}

// UpdateUser implements [store.Users].
func (s *Store) UpdateUser(ctx context.Context, u account.User) error {
	u, err := user(u, s.encrypt)
	if err != nil {
		return err
	}
	return s.Store.UpdateUser(ctx, u)
}

// WebhookEndpoint implements [store.WebhookEndpoints].
func (s *Store) WebhookEndpoint(ctx context.Context, id string) (webhook.Endpoint, error) {
	e, err := s.Store.WebhookEndpoint(ctx, id)
	if err != nil {
		return e, err
	}
	return endpoint(e, s.decrypt)
}

// WebhookEndpoints implements [store.WebhookEndpoints].
func (s *Store) WebhookEndpoints(ctx context.Context, companyID string, p store.Page) ([]webhook.Endpoint, error) {
	found, err := s.Store.WebhookEndpoints(ctx, companyID, p)
	if err != nil {
		return nil, err
	}
	return all(found, endpoint, s.decrypt)
}

// CreateWebhookEndpoint implements [store.WebhookEndpoints]. It checks the endpoint, because an engine cannot
// check ciphertexts.
func (s *Store) CreateWebhookEndpoint(ctx context.Context, e webhook.Endpoint) error {
	if err := e.Check(); err != nil {
		return err
	}
	e, err := endpoint(e, s.encrypt)
	if err != nil {
		return err
	}
	return s.Store.CreateWebhookEndpoint(ctx, e)
}

// UpdateWebhookEndpoint implements [store.WebhookEndpoints]. It checks the endpoint, as CreateWebhookEndpoint does.
func (s *Store) UpdateWebhookEndpoint(ctx context.Context, e webhook.Endpoint) error {
	if err := e.Check(); err != nil {
		return err
	}
	return s.updateWebhookEndpoint(ctx, e)
}

func (s *Store) updateWebhookEndpoint(ctx context.Context, e webhook.Endpoint) error {
	e, err := endpoint(e, s.encrypt)
	if err != nil {
		return err
	}
	return s.Store.UpdateWebhookEndpoint(ctx, e)
}

// Bot implements [store.Bots].
func (s *Store) Bot(ctx context.Context, appID string) (bots.Bot, error) {
	b, err := s.Store.Bot(ctx, appID)
	if err != nil {
		return b, err
	}
	return bot(b, s.decrypt)
}

// Bots implements [store.Bots].
func (s *Store) Bots(ctx context.Context, companyID string, p store.Page) ([]bots.Bot, error) {
	found, err := s.Store.Bots(ctx, companyID, p)
	if err != nil {
		return nil, err
	}
	return all(found, bot, s.decrypt)
}

// PutBot implements [store.Bots].
func (s *Store) PutBot(ctx context.Context, b bots.Bot) error {
	b, err := bot(b, s.encrypt)
	if err != nil {
		return err
	}
	return s.Store.PutBot(ctx, b)
}

// ModelConnection implements [store.ModelConnections].
func (s *Store) ModelConnection(ctx context.Context, id string) (bots.Connection, error) {
	c, err := s.Store.ModelConnection(ctx, id)
	if err != nil {
		return c, err
	}
	return connection(c, s.decrypt)
}

// ModelConnections implements [store.ModelConnections].
func (s *Store) ModelConnections(ctx context.Context, companyID string, p store.Page) ([]bots.Connection, error) {
	found, err := s.Store.ModelConnections(ctx, companyID, p)
	if err != nil {
		return nil, err
	}
	return all(found, connection, s.decrypt)
}

// PutModelConnection implements [store.ModelConnections].
func (s *Store) PutModelConnection(ctx context.Context, c bots.Connection) error {
	c, err := connection(c, s.encrypt)
	if err != nil {
		return err
	}
	return s.Store.PutModelConnection(ctx, c)
}
