// Package access authenticates companies by their access tokens.
package access

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
)

// Tokens finds access tokens by the hash of their secret.
type Tokens interface {
	AccessToken(ctx context.Context, hash string) (chat.AccessToken, error)
}

// Authenticator maps an access token to its company.
type Authenticator struct {
	tokens Tokens
	now    func() time.Time
}

// NewAuthenticator returns an Authenticator for access tokens.
func NewAuthenticator(tokens Tokens, now func() time.Time) *Authenticator {
	return &Authenticator{tokens: tokens, now: now}
}

// Company returns the id of the company that owns the access token. An unknown, expired or revoked token is
// Unauthenticated; the error tells only the holder of a known token that it has expired or was revoked.
func (a *Authenticator) Company(ctx context.Context, secret string) (string, error) {
	hash, ok := credential.HashAccessToken(secret)
	if !ok {
		return "", apperr.Unauthorized.New()
	}
	token, err := a.tokens.AccessToken(ctx, hash)
	switch {
	case apperr.Is(err, apperr.NotFound):
		return "", apperr.Unauthorized.New()
	case err != nil:
		return "", err
	case !token.RevokedAt.IsZero():
		return "", apperr.TokenRevoked()
	case !token.Valid(a.now()):
		return "", apperr.TokenExpired()
	}
	return token.CompanyID, nil
}
