package mongodb

import (
	"cmp"
	"context"
	"slices"
	"strings"
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
	d.CreatedAt, d.LastUsedAt = store.UTC(d.CreatedAt), store.UTC(d.LastUsedAt)
	d.ExpiresAt, d.RevokedAt = store.UTC(d.ExpiresAt), store.UTC(d.RevokedAt)
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
	q := listQuery{
		filter: bson.D{{Key: "companyId", Value: companyID}},
		sort:   bson.D{asc("createdAt"), asc("_id")},
		limit:  p.Size(),
	}
	if p.After != "" {
		last, err := s.AccessToken(ctx, p.After)
		if err == nil && last.CompanyID != companyID {
			err = apperr.AccessTokenNotFound.New()
		}
		if err != nil {
			return nil, err
		}
		q.filter = append(q.filter, afterCreation(last.Hash, last.CreatedAt)...)
	}
	return s.listAccessTokens(ctx, q)
}

// FindAccessTokens implements [store.AccessTokens].
func (s *Store) FindAccessTokens(ctx context.Context, reference string) ([]chat.AccessToken, error) {
	const shortest = 8
	if len(reference) < shortest {
		return nil, nil
	}
	found, err := s.listAccessTokens(ctx, listQuery{filter: bson.D{{Key: "prefix", Value: reference}}})
	if err != nil {
		return nil, err
	}
	beginning := bson.D{{Key: "$gte", Value: reference}, {Key: "$lt", Value: reference + "\U0010ffff"}}
	byHash, err := s.listAccessTokens(ctx, listQuery{filter: bson.D{{Key: "_id", Value: beginning}}})
	if err != nil {
		return nil, err
	}
	found = append(found, byHash...)
	slices.SortFunc(found, func(a, b chat.AccessToken) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Hash, b.Hash))
	})
	return slices.CompactFunc(found, func(a, b chat.AccessToken) bool { return a.Hash == b.Hash }), nil
}

func (s *Store) listAccessTokens(ctx context.Context, q listQuery) ([]chat.AccessToken, error) {
	return list(ctx, s, accessTokens, q, func(d accessTokenDocument) (chat.AccessToken, bool) { return d.token(), true })
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
