// Package access knows which company is calling.
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

// Authenticator finds the company of an access token.
type Authenticator struct {
	tokens Tokens
	now    func() time.Time
}

// NewAuthenticator returns an Authenticator for access tokens.
func NewAuthenticator(tokens Tokens, now func() time.Time) *Authenticator {
	return &Authenticator{tokens: tokens, now: now}
}

// Company returns the id of the company whose access token secret is. A token that is unknown, expired or revoked is
// Unauthenticated, and the answer does not say which.
func (g *Authenticator) Company(ctx context.Context, secret string) (string, error) {
	hash, ok := credential.HashAccessToken(secret)
	if !ok {
		return "", apperr.Unauthorized.New()
	}
	token, err := g.tokens.AccessToken(ctx, hash)
	switch {
	case apperr.Is(err, apperr.NotFound):
		return "", apperr.Unauthorized.New()
	case err != nil:
		return "", err
	case !token.Valid(g.now()):
		return "", apperr.Unauthorized.New()
	}
	return token.CompanyID, nil
}
