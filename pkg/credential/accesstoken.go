package credential

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
)

const (
	accessTokenPrefix  = "pat_"
	accessTokenBytes   = 32
	accessTokenShown   = len(accessTokenPrefix) + 6 // distinguishes tokens, and leaves 220 secret bits
	accessTokenEncoded = 43                         // of 32 bytes in base64url without padding
)

// NewAccessToken creates an access token for a company: the secret, which is shown once and not stored, and the
// record to store. A zero expiresAt means no expiry.
func NewAccessToken(companyID, name string, now, expiresAt time.Time) (secret string, token chat.AccessToken) {
	var raw [accessTokenBytes]byte
	_, _ = rand.Read(raw[:]) // never fails (crypto/rand)
	secret = accessTokenPrefix + base64.RawURLEncoding.EncodeToString(raw[:])
	return secret, chat.AccessToken{
		Hash:      hashOf(secret),
		CompanyID: companyID,
		Name:      name,
		Prefix:    secret[:accessTokenShown],
		CreatedAt: now,
		ExpiresAt: expiresAt,
	}
}

// HashAccessToken returns the hash under which an access token is stored: hexadecimal SHA-256, which is enough for a
// secret of 256 random bits. It reports false if secret is not in the format of an access token, so that no lookup is
// needed.
func HashAccessToken(secret string) (hash string, ok bool) {
	encoded, ok := strings.CutPrefix(secret, accessTokenPrefix)
	if !ok || len(encoded) != accessTokenEncoded || !isBase64URL(encoded) {
		return "", false
	}
	return hashOf(secret), true
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func isBase64URL(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}
