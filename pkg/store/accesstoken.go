package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

const maxTokenName = 100 // characters

type accessTokenDocument struct {
	Hash       string    `bson:"_id"`
	CompanyID  string    `bson:"companyId"`
	Name       string    `bson:"name"`
	Prefix     string    `bson:"prefix"`
	CreatedAt  time.Time `bson:"createdAt"`
	LastUsedAt time.Time `bson:"lastUsedAt,omitempty"`
	ExpiresAt  time.Time `bson:"expiresAt,omitempty"`
	RevokedAt  time.Time `bson:"revokedAt,omitempty"`
}

func (d accessTokenDocument) token() chat.AccessToken {
	d.CreatedAt, d.LastUsedAt, d.ExpiresAt, d.RevokedAt = utc(d.CreatedAt), utc(d.LastUsedAt), utc(d.ExpiresAt), utc(d.RevokedAt)
	return chat.AccessToken(d)
}

func documentOf(t chat.AccessToken) accessTokenDocument {
	t.CreatedAt, t.LastUsedAt, t.ExpiresAt, t.RevokedAt = utc(t.CreatedAt), utc(t.LastUsedAt), utc(t.ExpiresAt), utc(t.RevokedAt)
	return accessTokenDocument(t)
}

// AccessToken returns the token with that hash, or NotFound. Whether it may be used is for [chat.AccessToken.Valid] to say.
//
// The look-up compares hashes and not secrets, so that its time tells nothing of use: who does not have the secret does not
// know, and cannot choose, which hash is compared.
func (s *Store) AccessToken(ctx context.Context, hash string) (chat.AccessToken, error) {
	d, err := get[accessTokenDocument](ctx, s, accessTokens, hash)
	return d.token(), err
}

// PutAccessToken writes the token, whether or not it was there.
func (s *Store) PutAccessToken(ctx context.Context, t chat.AccessToken) error {
	return s.put(ctx, accessTokens, t.Hash, documentOf(t))
}

// CreateAccessToken adds a new token. It returns NotFound when its company is not there, Invalid when the token is not well
// formed, and Conflict when there is a token with its hash.
func (s *Store) CreateAccessToken(ctx context.Context, t chat.AccessToken) error {
	if err := wellFormed(t).Err(); err != nil {
		return err
	}
	if _, err := s.Company(ctx, t.CompanyID); err != nil {
		return err
	}
	inserted, err := s.insert(ctx, accessTokens, documentOf(t))
	if err == nil && !inserted {
		return apperr.New(apperr.Conflict, "ACCESS_TOKEN_EXISTS", "The access token exists already")
	}
	return err
}

func wellFormed(t chat.AccessToken) (f apperr.Fields) {
	if t.Hash == "" {
		f.Add("hash", "is required")
	}
	if _, ok := chat.ParseID(t.CompanyID); !ok {
		f.Add("companyId", "must be a UUID")
	}
	switch {
	case strings.TrimSpace(t.Name) == "":
		f.Add("name", "is required")
	case utf8.RuneCountInString(t.Name) > maxTokenName:
		f.Add("name", "must have at most 100 characters")
	case !utf8.ValidString(t.Name) || strings.ContainsFunc(t.Name, unicode.IsControl):
		f.Add("name", "must not contain control characters")
	}
	if !t.ExpiresAt.IsZero() && !t.ExpiresAt.After(t.CreatedAt) {
		f.Add("expiresAt", "must be in the future")
	}
	return f
}

// AccessTokens returns a company's tokens, also those that have ended, in the order in which they were created. It reads the
// whole collection: it is for operators.
func (s *Store) AccessTokens(ctx context.Context, companyID string) ([]chat.AccessToken, error) {
	return s.scanAccessTokens(ctx, bson.D{{Key: "companyId", Value: companyID}}, func(chat.AccessToken) bool { return true })
}

// FindAccessTokens returns the tokens that reference names, in the order in which they were created: by the prefix that people
// see, by their hash, or by at least eight characters with which it begins. It reads the whole collection: it is for operators.
func (s *Store) FindAccessTokens(ctx context.Context, reference string) ([]chat.AccessToken, error) {
	const shortest = 8
	if len(reference) < shortest {
		return nil, nil
	}
	return s.scanAccessTokens(ctx, bson.D{}, func(t chat.AccessToken) bool {
		return t.Prefix == reference || strings.HasPrefix(t.Hash, reference)
	})
}

func (s *Store) scanAccessTokens(ctx context.Context, filter bson.D, wanted func(chat.AccessToken) bool) ([]chat.AccessToken, error) {
	var documents []accessTokenDocument
	err := s.do(ctx, "listing access tokens", func(ctx context.Context) error {
		cursor, err := s.in(accessTokens).Find(ctx, filter)
		if err != nil {
			return err
		}
		return cursor.All(ctx, &documents)
	})
	var tokens []chat.AccessToken
	for _, d := range documents {
		if t := d.token(); wanted(t) {
			tokens = append(tokens, t)
		}
	}
	slices.SortFunc(tokens, func(a, b chat.AccessToken) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Hash, b.Hash))
	})
	return tokens, err
}

// RevokeAccessToken ends the token; the first revocation stays. NotFound when there is no such token. Who calls it tells the
// services to forget the token (bus.Invalidate with [CachedAccessToken] and the hash): then it ends everywhere at once, and
// otherwise when their caches have forgotten it, a second later.
func (s *Store) RevokeAccessToken(ctx context.Context, hash string, at time.Time) error {
	return s.changeAccessToken(ctx, hash, "$min", "revokedAt", at)
}

// AccessTokenUsed notes that the token was used; the latest use stays. NotFound when there is no such token.
func (s *Store) AccessTokenUsed(ctx context.Context, hash string, at time.Time) error {
	return s.changeAccessToken(ctx, hash, "$max", "lastUsedAt", at)
}

func (s *Store) changeAccessToken(ctx context.Context, hash, operator, field string, at time.Time) error {
	found, err := s.update(ctx, accessTokens, hash, bson.D{{Key: operator, Value: bson.D{{Key: field, Value: utc(at)}}}})
	if err == nil && !found {
		return notFound(accessTokens)
	}
	return err
}
