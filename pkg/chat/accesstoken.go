package chat

import "time"

// AccessToken is a company's credential for the Client API. The secret itself is never stored, only its hash.
type AccessToken struct {
	Hash       string // hex SHA-256 of the secret
	CompanyID  string
	Name       string
	Prefix     string // the first characters of the secret, which identify it to people
	CreatedAt  time.Time
	LastUsedAt time.Time // zero: never used
	ExpiresAt  time.Time // zero: does not expire
	RevokedAt  time.Time // zero: not revoked
	CreatedBy  string    // e-mail address of the panel's user; empty: parleyctl
}

// Valid reports whether the token may be used at now.
func (t AccessToken) Valid(now time.Time) bool {
	return t.RevokedAt.IsZero() && (t.ExpiresAt.IsZero() || now.Before(t.ExpiresAt))
}
