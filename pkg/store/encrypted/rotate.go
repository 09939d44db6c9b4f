package encrypted

import (
	"context"
	"fmt"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
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
	r := &reencryption{Store: s, primary: s.keys.Primary()}
	err = r.run(ctx)
	return r.changed, err
}

// walk shows see every secret of the first records of each kind, or of all if most is 0.
func (s *Store) walk(ctx context.Context, most int, see func(place, ciphertext string) error) error {
	keep := func(place, ciphertext string) (string, error) { return ciphertext, see(place, ciphertext) }
	err := eachOf(ctx, most, s.allApplications, applicationID, func(a chat.Application) error {
		_, err := application(a, keep)
		return err
	})
	if err != nil {
		return err
	}
	err = eachOf(ctx, most, s.allUsers, userID, func(u account.User) error {
		_, err := user(u, keep)
		return err
	})
	if err != nil {
		return err
	}
	return eachOf(ctx, most, s.allEndpoints, endpointID, func(e webhook.Endpoint) error {
		_, err := endpoint(e, keep)
		return err
	})
}

// eachOf calls do with the first records, or with all if most is 0.
func eachOf[V any](
	ctx context.Context,
	most int,
	list func(context.Context, store.Page) ([]V, error),
	id func(V) string,
	do func(V) error,
) error {
	done := 0
	for r, err := range store.All(ctx, list, id) {
		if err != nil {
			return err
		}
		if err := do(r); err != nil {
			return err
		}
		if done++; done == most {
			return nil
		}
	}
	return nil
}

// The records of the engine, with ciphertexts.

func (s *Store) allApplications(ctx context.Context, p store.Page) ([]chat.Application, error) {
	return s.Store.Applications(ctx, "", p)
}

func (s *Store) allUsers(ctx context.Context, p store.Page) ([]account.User, error) {
	return s.Store.Users(ctx, "", p)
}

func (s *Store) allEndpoints(ctx context.Context, p store.Page) ([]webhook.Endpoint, error) {
	return s.Store.WebhookEndpoints(ctx, "", p)
}

func applicationID(a chat.Application) string { return a.ID }
func userID(u account.User) string            { return u.ID }
func endpointID(e webhook.Endpoint) string    { return e.ID }

// reencryption is one run of Reencrypt.
type reencryption struct {
	*Store

	primary secret.KeyID
	changed int
}

func (r *reencryption) run(ctx context.Context) error {
	err := eachOf(ctx, 0, r.allApplications, applicationID, func(a chat.Application) error {
		return replace(ctx, r, a, application, func(ctx context.Context) error {
			same := func(v chat.IdentityVerification) ([]chat.IdentitySecret, error) { return v.Secrets, nil }
			return r.ChangeApplication(ctx, a.ID, store.ApplicationChange{Secrets: same})
		})
	})
	if err != nil {
		return err
	}
	err = eachOf(ctx, 0, r.allUsers, userID, func(u account.User) error {
		return replace(ctx, r, u, user, func(ctx context.Context) error {
			current, err := r.User(ctx, u.ID)
			if err != nil {
				return err
			}
			return r.UpdateUser(ctx, current)
		})
	})
	if err != nil {
		return err
	}
	return eachOf(ctx, 0, r.allEndpoints, endpointID, func(e webhook.Endpoint) error {
		return replace(ctx, r, e, endpoint, func(ctx context.Context) error {
			current, err := r.WebhookEndpoint(ctx, e.ID)
			if err != nil {
				return err
			}
			return r.updateWebhookEndpoint(ctx, current)
		})
	})
}

// attempts limits the retries of a record that is changed at the same time. An attempt is a read and a write, and loses
// against a service that changes the record between them. One that changes it without a pause wins about every second
// time, on a busy machine more often.
const attempts = 100

// replace writes a record again if it has a secret of another key. write reads and writes it; a record that
// was deleted meanwhile is skipped.
func replace[V any](
	ctx context.Context,
	r *reencryption,
	record V,
	each func(V, transform) (V, error),
	write func(context.Context) error,
) error {
	old := false
	_, err := each(record, func(place, ciphertext string) (string, error) {
		id, err := secret.KeyOf(ciphertext)
		old = old || id != r.primary
		return ciphertext, coded(place, err)
	})
	if err != nil || !old {
		return err
	}
	for range attempts {
		if err = write(ctx); !apperr.Is(err, apperr.Conflict) {
			break
		}
	}
	switch {
	case apperr.Is(err, apperr.NotFound):
		return nil
	case err != nil:
		return fmt.Errorf("encrypting again: %w", err)
	}
	r.changed++
	return nil
}
