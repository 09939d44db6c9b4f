package credential

import (
	"time"

	"github.com/parley-chat/parley/pkg/chat"
)

// IssueAccessToken makes an access token for a company: the secret, which is to be shown once and kept nowhere, and what is
// stored. expiresAt is the instant from which on it does not hold any more; zero means never.
func IssueAccessToken(companyID, name string, now, expiresAt time.Time) (secret string, token chat.AccessToken) {
	secret, hash, prefix := NewAccessToken()
	return secret, chat.AccessToken{
		Hash: hash, CompanyID: companyID, Name: name, Prefix: prefix, CreatedAt: now, ExpiresAt: expiresAt,
	}
}
