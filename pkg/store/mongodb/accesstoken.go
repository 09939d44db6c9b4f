package mongodb

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

type accessTokenDocument struct {
	Hash       string    `bson:"_id"`
	CompanyID  string    `bson:"companyId"`
	Name       string    `bson:"name"`
	Prefix     string    `bson:"prefix"`
	CreatedAt  time.Time `bson:"createdAt"`
	LastUsedAt time.Time `bson:"lastUsedAt,omitempty"`
	ExpiresAt  time.Time `bson:"expiresAt,omitempty"`
	RevokedAt  time.Time `bson:"revokedAt,omitempty"`
	CreatedBy  string    `bson:"createdBy,omitempty"`
}

func (d accessTokenDocument) token() chat.AccessToken {
	d.CreatedAt = store.UTC(d.CreatedAt)
	d.LastUsedAt = store.UTC(d.LastUsedAt)
	d.ExpiresAt = store.UTC(d.ExpiresAt)
	d.RevokedAt = store.UTC(d.RevokedAt)
	return chat.AccessToken(d)
}

func accessTokenDocumentOf(t chat.AccessToken) accessTokenDocument {
	return accessTokenDocument(accessTokenDocument(t).token())
}

// AccessToken implements [store.AccessTokens].
func (s *Store) AccessToken(ctx context.Context, hash string) (chat.AccessToken, error) {
	d, err := get[accessTokenDocument](ctx, s, accessTokens, hash)
	return d.token(), err
}

// CreateAccessToken implements [store.AccessTokens].
func (s *Store) CreateAccessToken(ctx context.Context, t chat.AccessToken) error {
	if err := store.CheckAccessToken(t); err != nil {
		return err
	}
	if _, err := s.Company(ctx, t.CompanyID); err != nil {
		return err
	}
	inserted, err := s.insert(ctx, accessTokens, accessTokenDocumentOf(t))
	if err == nil && !inserted {
		return apperr.AccessTokenExists.New()
	}
	return err
}

// AccessTokens implements [store.AccessTokens].
func (s *Store) AccessTokens(ctx context.Context, companyID string, p store.Page) ([]chat.AccessToken, error) {
	q, err := s.byCreation(ctx, accessTokens, bson.E{Key: "companyId", Value: companyID}, p)
	if err != nil {
		return nil, err
	}
	return list(ctx, s, accessTokens, q,
		func(d accessTokenDocument) (chat.AccessToken, bool) { return d.token(), true })
}

// ChangeAccessToken implements [store.AccessTokens].
func (s *Store) ChangeAccessToken(ctx context.Context, hash string, change store.TokenChange) error {
	times := movingTimes(
		movedTime{"$min", "revokedAt", change.RevokedAt},
		movedTime{"$min", "expiresAt", change.ExpiresAt},
		movedTime{"$max", "lastUsedAt", change.UsedAt},
	)
	if len(times) == 0 {
		_, err := s.AccessToken(ctx, hash)
		return err
	}
	return s.change(ctx, accessTokens, hash, times)
}

// DeleteAccessToken implements [store.AccessTokens].
func (s *Store) DeleteAccessToken(ctx context.Context, hash string) error {
	n, err := s.deleteAll(ctx, accessTokens, byID(hash))
	if err == nil && n == 0 {
		err = apperr.AccessTokenNotFound.New()
	}
	return err
}
