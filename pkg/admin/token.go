package admin

import (
	"context"
	"slices"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
)

// MaxOverlap is the longest time for which a rotated token or secret stays valid.
const MaxOverlap = 30 * 24 * time.Hour

// MaxTokens is the maximum number of access tokens of a company. Revoked and expired ones count too, and make
// room for new ones.
const MaxTokens = 500

// CreateToken creates an access token for a company. The secret is returned once and not stored. A zero expiresAt: no
// expiry. Errors: Invalid; NotFound; Conflict with the reason TOO_MANY_TOKENS.
func (s *Service) CreateToken(
	ctx context.Context,
	by Actor,
	companyID, name string,
	expiresAt time.Time,
) (secret string, t chat.AccessToken, err error) {
	return s.createToken(ctx, by, "token.create", companyID, name, expiresAt)
}

func (s *Service) createToken(
	ctx context.Context, by Actor, action, companyID, name string, expiresAt time.Time,
) (secret string, t chat.AccessToken, err error) {
	if err := s.admitToken(ctx, companyID); err != nil {
		return "", t, err
	}
	secret, t = credential.NewAccessToken(companyID, name, s.now(), expiresAt)
	t.CreatedBy = by.createdBy()
	if err := s.store.CreateAccessToken(ctx, t); err != nil {
		return "", t, err
	}
	t, err = s.store.AccessToken(ctx, t.Hash)
	if err != nil {
		return "", t, err
	}
	return secret, t, s.audit(
		ctx,
		by,
		change{companyID: companyID, action: action, target: "token", id: t.Hash, after: tokenFields(t)},
	)
}

// admitToken removes the oldest revoked or expired token of a company that has MaxTokens; the audit log keeps its
// prefix. TOO_MANY_TOKENS if all are valid.
func (s *Service) admitToken(ctx context.Context, companyID string) error {
	existing, err := s.store.AccessTokens(ctx, companyID, store.Page{Limit: MaxTokens})
	if err != nil || len(existing) < MaxTokens {
		return err
	}
	ended := slices.IndexFunc(existing, func(t chat.AccessToken) bool { return !t.Valid(s.now()) })
	if ended < 0 {
		return apperr.TooManyTokens.New()
	}
	return s.store.DeleteAccessToken(ctx, existing[ended].Hash)
}

func tokenFields(t chat.AccessToken) fields {
	f := fields{"name": t.Name, "prefix": t.Prefix}
	if !t.ExpiresAt.IsZero() {
		f["expiresAt"] = t.ExpiresAt.Format(chat.TimeFormat)
	}
	if !t.RevokedAt.IsZero() {
		f["revokedAt"] = t.RevokedAt.Format(chat.TimeFormat)
	}
	return f
}

// RotateToken creates a token that replaces another one, which expires after the overlap. It returns Conflict with the
// reason TOKEN_NOT_ACTIVE if the other token is no longer valid.
func (s *Service) RotateToken(
	ctx context.Context, by Actor, old chat.AccessToken, overlap time.Duration,
) (secret string, fresh, replaced chat.AccessToken, err error) {
	if overlap < 0 || overlap > MaxOverlap {
		return "", fresh, old, apperr.Fields{{Name: "overlapSeconds", Message: "must be 0 to 2592000"}}.Err()
	}
	now := s.now()
	if !old.Valid(now) {
		return "", fresh, old, apperr.AccessTokenNotActive.New()
	}
	secret, fresh, err = s.createToken(ctx, by, "token.rotate", old.CompanyID, old.Name, old.ExpiresAt)
	if err != nil {
		return "", fresh, old, err
	}
	if overlap == 0 {
		replaced, err = s.RevokeToken(ctx, by, old.Hash)
		return secret, fresh, replaced, err
	}
	replaced, err = s.changeToken(ctx, by, "token.expire", old, store.TokenChange{ExpiresAt: now.Add(overlap)})
	return secret, fresh, replaced, err
}

// RevokeToken revokes a token; all replicas reject it within a second.
func (s *Service) RevokeToken(ctx context.Context, by Actor, hash string) (chat.AccessToken, error) {
	before, err := s.store.AccessToken(ctx, hash)
	if err != nil {
		return before, err
	}
	return s.changeToken(ctx, by, "token.revoke", before, store.TokenChange{RevokedAt: s.now()})
}

// changeToken changes an existing token, and returns the result.
func (s *Service) changeToken(
	ctx context.Context, by Actor, action string, before chat.AccessToken, c store.TokenChange,
) (chat.AccessToken, error) {
	if err := s.store.ChangeAccessToken(ctx, before.Hash, c); err != nil {
		return before, err
	}
	if err := s.bus.RPC().Invalidate(ctx, store.CachedAccessToken, before.Hash); err != nil {
		return before, err
	}
	after, err := s.store.AccessToken(ctx, before.Hash)
	if err != nil {
		return after, err
	}
	return after, s.audit(ctx, by, change{
		companyID: after.CompanyID,
		action:    action,
		target:    "token",
		id:        after.Hash,
		before:    tokenFields(before),
		after:     tokenFields(after),
	})
}
