package credential

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	"github.com/parley-chat/parley/pkg/chat"
)

const (
	identitySecretPrefix = "pis_"
	identitySecretBytes  = 32
)

// NewIdentitySecret makes a secret by which a company's server proves who its users are.
func NewIdentitySecret() chat.Secret {
	var raw [identitySecretBytes]byte
	_, _ = rand.Read(raw[:]) // never fails (crypto/rand)
	return chat.Secret(identitySecretPrefix + base64.RawURLEncoding.EncodeToString(raw[:]))
}

// UserHash is what the company's server hands to a user whom it has logged in: the HMAC-SHA256 of the user's identifier,
// in lower-case hexadecimal. The key is the secret's text as it stands, with its prefix.
func UserHash(secret chat.Secret, identifier string) string {
	return hex.EncodeToString(userMAC(secret, identifier))
}

// IsUserHash reports whether userHash was made for identifier with one of the secrets. The time that it takes does not depend
// on how much of userHash is right, nor on which secret made it.
func IsUserHash(secrets []chat.Secret, identifier, userHash string) bool {
	shown, err := hex.DecodeString(userHash)
	if err != nil {
		return false
	}
	proved := false
	for _, secret := range secrets {
		proved = hmac.Equal(userMAC(secret, identifier), shown) || proved
	}
	return proved
}

func userMAC(secret chat.Secret, identifier string) []byte {
	mac := hmac.New(sha256.New, []byte(string(secret)))
	_, _ = mac.Write([]byte(identifier)) // never fails (hash.Hash)
	return mac.Sum(nil)
}
