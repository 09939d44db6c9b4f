package credential

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	algorithm = "EdDSA"
	issuer    = "parley"
	audience  = "parley-visitor"
)

// VisitorClaims are the claims of a visitor token.
type VisitorClaims struct {
	ChatUserID string // sub
	AppID      string
	CompanyID  string
	TokenID    string // jti
	IssuedAt   time.Time
	ExpiresAt  time.Time
}

// IssuedSince reports whether the token was issued at from or later; true if from is zero. See [RevocationTime].
func (c VisitorClaims) IssuedSince(from time.Time) bool { return !c.IssuedAt.Before(from) }

// RevocationTime returns the time from which issued tokens are valid if all tokens of a visitor are revoked at now: the
// next whole second, because iat has a resolution of seconds. A token issued within the current second gets that time
// as its iat ([IssueTime]).
func RevocationTime(now time.Time) time.Time { return now.UTC().Truncate(time.Second).Add(time.Second) }

// IssueTime returns the iat of a token issued at now for a visitor whose tokens are valid from validFrom on.
func IssueTime(now, validFrom time.Time) time.Time {
	if now.Before(validFrom) {
		return validFrom
	}
	return now
}

// wireClaims is the payload of a visitor token.
type wireClaims struct {
	jwt.RegisteredClaims
	AppID     string `json:"appId"`
	CompanyID string `json:"companyId"`
}

// Validate is called by the parser, after its own checks.
func (c *wireClaims) Validate() error {
	if c.Subject == "" || c.AppID == "" || c.CompanyID == "" {
		return errors.New("sub, appId or companyId is missing")
	}
	return nil
}

func sign(claims VisitorClaims, k key) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, &wireClaims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    issuer,
			Audience:  jwt.ClaimStrings{audience},
			Subject:   claims.ChatUserID,
			ID:        claims.TokenID,
			IssuedAt:  jwt.NewNumericDate(claims.IssuedAt),
			ExpiresAt: jwt.NewNumericDate(claims.ExpiresAt),
		},
		AppID:     claims.AppID,
		CompanyID: claims.CompanyID,
	})
	token.Header["kid"] = k.id
	signed, err := token.SignedString(k.private)
	if err != nil {
		return "", fmt.Errorf("signing a visitor token: %w", err)
	}
	return signed, nil
}

func (c *wireClaims) visitor() VisitorClaims {
	v := VisitorClaims{
		ChatUserID: c.Subject,
		AppID:      c.AppID,
		CompanyID:  c.CompanyID,
		TokenID:    c.ID,
		ExpiresAt:  c.ExpiresAt.UTC(),
	}
	if c.IssuedAt != nil {
		v.IssuedAt = c.IssuedAt.UTC()
	}
	return v
}
