package encrypted

import (
	"context"
	"fmt"
	"iter"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/secret"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

// sample is the number of records of each kind that CheckKeys reads.
const sample = 200

// CheckKeys returns an [secret.UnknownKeyError] if a secret is encrypted with a key that this process does
// not have. It reads a sample of each kind of record: enough to notice the key file of another deployment or
// an old one.
func (s *Store) CheckKeys(ctx context.Context) error {
	return s.walk(ctx, sample, func(place, ciphertext string) error {
		id, err := secret.KeyOf(ciphertext)
		if err == nil && !s.keys.Has(id) {
			_, err = s.decrypt(place, ciphertext)
			return err
		}
		return nil // the record's readers get the error of a text that is no ciphertext
	})
}

// Usage counts the secrets of all records by their keys.
func (s *Store) Usage(ctx context.Context) (map[secret.KeyID]int, error) {
	used := map[secret.KeyID]int{}
	err := s.walk(ctx, 0, func(place, ciphertext string) error {
		id, err := secret.KeyOf(ciphertext)
		used[id]++
		return coded(place, err)
	})
	return used, err
}

// Reencrypt encrypts with the primary key what other keys have encrypted, and returns the number of changed
// records. Services may run: a record that is changed at the same time is read again. After an error a repeat
// continues.
func (s *Store) Reencrypt(ctx context.Context) (changed int, err error) {
	for _, kind := range s.kinds() {
		for r, err := range kind(ctx) {
			if err != nil {
				return changed, err
			}
			written, err := s.reencrypt(ctx, r)
			if err != nil {
				return changed, err
			}
			if written {
				changed++
			}
		}
	}
	return changed, nil
}

// walk shows see every secret of the first records of each kind, or of all if limit is 0.
func (s *Store) walk(ctx context.Context, limit int, see func(place, ciphertext string) error) error {
	for _, kind := range s.kinds() {
		seen := 0
		for r, err := range kind(ctx) {
			if err != nil {
				return err
			}
			if err := r.show(see); err != nil {
				return err
			}
			seen++
			if seen == limit {
				break
			}
		}
	}
	return nil
}

// record is a record of any kind with secrets, as the engine has it: with ciphertexts.
type record struct {
	show    func(see func(place, ciphertext string) error) error
	rewrite func(ctx context.Context) error // reads it again, and writes it with the primary key
}

// kind yields all records of a kind.
type kind func(context.Context) iter.Seq2[record, error]

// kinds lists the kinds of records with secrets; fields.go has their secrets.
func (s *Store) kinds() []kind {
	engine := s.Store
	applications := func(ctx context.Context, p store.Page) ([]chat.Application, error) {
		return engine.Applications(ctx, "", p)
	}
	users := func(ctx context.Context, p store.Page) ([]account.User, error) { return engine.Users(ctx, "", p) }
	endpoints := func(ctx context.Context, p store.Page) ([]webhook.Endpoint, error) {
		return engine.WebhookEndpoints(ctx, "", p)
	}
	answerers := func(ctx context.Context, p store.Page) ([]bots.Bot, error) { return engine.Bots(ctx, "", p) }
	connections := func(ctx context.Context, p store.Page) ([]bots.Connection, error) {
		return engine.ModelConnections(ctx, "", p)
	}
	return []kind{
		kindOf(applications, func(a chat.Application) string { return a.ID }, application, s.rewriteApplication),
		kindOf(users, func(u account.User) string { return u.ID }, user, s.rewriteUser),
		kindOf(endpoints, func(e webhook.Endpoint) string { return e.ID }, endpoint, s.rewriteEndpoint),
		kindOf(answerers, func(b bots.Bot) string { return b.AppID }, bot, s.rewriteBot),
		kindOf(connections, func(c bots.Connection) string { return c.ID }, connection, s.rewriteConnection),
	}
}

// kindOf returns a kind whose records list reads; each transforms the secrets of one.
func kindOf[V any](
	list func(context.Context, store.Page) ([]V, error),
	id func(V) string,
	each func(V, transform) (V, error),
	rewrite func(ctx context.Context, id string) error,
) kind {
	recordOf := func(v V) record {
		return record{
			show: func(see func(place, ciphertext string) error) error {
				_, err := each(v, func(place, ciphertext string) (string, error) {
					return ciphertext, see(place, ciphertext)
				})
				return err
			},
			rewrite: func(ctx context.Context) error { return rewrite(ctx, id(v)) },
		}
	}
	return func(ctx context.Context) iter.Seq2[record, error] {
		return func(yield func(record, error) bool) {
			for v, err := range store.All(ctx, list, id) {
				if !yield(recordOf(v), err) {
					return
				}
			}
		}
	}
}

func (s *Store) rewriteApplication(ctx context.Context, id string) error {
	same := func(v chat.IdentityVerification) ([]chat.IdentitySecret, error) { return v.Secrets, nil }
	return s.ChangeApplication(ctx, id, store.ApplicationChange{Secrets: same})
}

func (s *Store) rewriteUser(ctx context.Context, id string) error {
	current, err := s.User(ctx, id)
	if err != nil {
		return err
	}
	return s.UpdateUser(ctx, current)
}

func (s *Store) rewriteEndpoint(ctx context.Context, id string) error {
	current, err := s.WebhookEndpoint(ctx, id)
	if err != nil {
		return err
	}
	return s.updateWebhookEndpoint(ctx, current)
}

func (s *Store) rewriteBot(ctx context.Context, appID string) error {
	current, err := s.Bot(ctx, appID)
	if err != nil {
		return err
	}
	return s.PutBot(ctx, current)
}

func (s *Store) rewriteConnection(ctx context.Context, id string) error {
	current, err := s.ModelConnection(ctx, id)
	if err != nil {
		return err
	}
	return s.PutModelConnection(ctx, current)
}

// attempts limits the retries of a record that is changed at the same time. An attempt is a read and a write, and loses
// against a service that changes the record between them. One that changes it without a pause wins about every second
// time, on a busy machine more often.
const attempts = 100

// reencrypt writes a record again if it has a secret of another key. A record that was deleted meanwhile is skipped.
func (s *Store) reencrypt(ctx context.Context, r record) (written bool, err error) {
	primary := s.keys.Primary()
	old := false
	err = r.show(func(place, ciphertext string) error {
		id, err := secret.KeyOf(ciphertext)
		old = old || id != primary
		return coded(place, err)
	})
	if err != nil || !old {
		return false, err
	}
	for range attempts {
		err = r.rewrite(ctx)
		if !apperr.Is(err, apperr.Conflict) {
			break
		}
	}
	switch {
	case apperr.Is(err, apperr.NotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("encrypting again: %w", err)
	}
	return true, nil
}
