package credential

import (
	"time"

	"github.com/parley-chat/parley/pkg/chat"
)

// IssueAccessToken creates an access token for a company: the secret, which is shown once and not stored, and the
// record to store. A zero expiresAt means no expiry.
func IssueAccessToken(companyID, name string, now, expiresAt time.Time) (secret string, token chat.AccessToken) {
	secret, hash, prefix := NewAccessToken()
	return secret, chat.AccessToken{
		Hash: hash, CompanyID: companyID, Name: name, Prefix: prefix, CreatedAt: now, ExpiresAt: expiresAt,
	}
}
