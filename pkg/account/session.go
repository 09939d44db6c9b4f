package account

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"time"
)

const (
	// SessionIdle is how long an unused session lives; SessionTTL is the maximum lifetime.
	SessionIdle = 12 * time.Hour
	SessionTTL  = 7 * 24 * time.Hour
	// InvitationTTL is how long an invitation can be accepted.
	InvitationTTL = 7 * 24 * time.Hour

	secretBytes = 32
)

// Session is a signed-in session. Its secret, the cookie's value, is never stored.
type Session struct {
	ID         string // hash of the secret
	UserID     string
	CreatedAt  time.Time
	LastSeenAt time.Time // at most a minute late
	ExpiresAt  time.Time
	Address    string
	UserAgent  string
}

// NewSession returns a new session and its secret.
func NewSession(userID, address, userAgent string, now time.Time) (secret string, s Session) {
	secret = NewSecret()
	return secret, Session{
		ID:         HashSecret(secret),
		UserID:     userID,
		CreatedAt:  now,
		LastSeenAt: now,
		ExpiresAt:  now.Add(SessionIdle),
		Address:    address,
		UserAgent:  userAgent,
	}
}

// Valid reports whether the session is valid at now.
func (s Session) Valid(now time.Time) bool {
	return now.Before(s.ExpiresAt) && now.Before(s.CreatedAt.Add(SessionTTL))
}

// Extended returns the session's expiry if it is used at now.
func (s Session) Extended(now time.Time) time.Time {
	if end := s.CreatedAt.Add(SessionTTL); now.Add(SessionIdle).After(end) {
		return end
	}
	return now.Add(SessionIdle)
}

// NewSecret returns 256 random bits as text.
func NewSecret() string {
	var raw [secretBytes]byte
	_, _ = rand.Read(raw[:]) // never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// HashSecret returns the hash under which a secret of 256 random bits is stored.
func HashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// SameSecret compares a secret with a hash in constant time.
func SameSecret(secret, hash string) bool {
	return hash != "" && subtle.ConstantTimeCompare([]byte(HashSecret(secret)), []byte(hash)) == 1
}

// CSRFToken returns the CSRF token of a session. It is derived from the session's secret, which another site's page
// cannot read.
func CSRFToken(secret string) string {
	sum := sha256.Sum256([]byte("csrf|" + secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
