package credential

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/parley-chat/parley/pkg/chat"
)

const (
	identitySecretPrefix = "pis_"
	identitySecretBytes  = 32

	// MaxIdentityTokenLife is how long a proof may hold from now on.
	MaxIdentityTokenLife = time.Hour
)

// NewIdentitySecret makes a secret with which a company's server signs the identities of its users.
func NewIdentitySecret() chat.Secret {
	var raw [identitySecretBytes]byte
	_, _ = rand.Read(raw[:]) // never fails (crypto/rand)
	return chat.Secret(identitySecretPrefix + base64.RawURLEncoding.EncodeToString(raw[:]))
}

// UserHash is what the company's server gives to a user that is logged in there: the HMAC-SHA256 of the user's identifier,
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

// ProvedIdentity is what a company's server vouches for; a value that is empty it does not mention.
type ProvedIdentity struct {
	UserID string
	Email  string
	Phone  string
}

// identityClaims is the payload of an identity token.
type identityClaims struct {
	jwt.RegisteredClaims
	UserID string `json:"userId"`
	Email  string `json:"email"`
	Phone  string `json:"phone"`
}

// IdentityToken makes a proof as the company's server does: a JWT signed with HS256. The key is the secret's text as it stands,
// with its prefix.
func IdentityToken(secret chat.Secret, p ProvedIdentity, expiresAt time.Time) (string, error) {
	return jwt.NewWithClaims(jwt.SigningMethodHS256, &identityClaims{
		RegisteredClaims: jwt.RegisteredClaims{ExpiresAt: jwt.NewNumericDate(expiresAt)}, UserID: p.UserID, Email: p.Email, Phone: p.Phone,
	}).SignedString([]byte(string(secret)))
}

// Faults of an identity token. Their texts are public.
var (
	errIdentityToken        = errors.New("is not a JWT signed with HS256 and the application's secret")
	errIdentityTokenExpired = errors.New("has expired")
	errIdentityTokenLife    = errors.New("must have an exp at most an hour ahead")
	errIdentityTokenEmpty   = errors.New("must have the claim userId, email or phone")
)

// VerifyIdentityToken returns what the token proves at now with one of the secrets. Its errors are public.
func VerifyIdentityToken(secrets []chat.Secret, token string, now time.Time) (ProvedIdentity, error) {
	if len(token) > maxToken {
		return ProvedIdentity{}, errIdentityToken
	}
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithExpirationRequired(), jwt.WithStrictDecoding(),
		jwt.WithTimeFunc(func() time.Time { return now }),
	)
	var claims identityClaims
	err := errIdentityToken
	for _, secret := range secrets {
		claims = identityClaims{}
		_, parsed := parser.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return []byte(string(secret)), nil })
		if err = identityTokenFault(parsed); !errors.Is(err, errIdentityToken) {
			break
		}
	}
	switch {
	case err != nil:
		return ProvedIdentity{}, err
	case claims.ExpiresAt.After(now.Add(MaxIdentityTokenLife + clockSkew)):
		return ProvedIdentity{}, errIdentityTokenLife
	case claims.UserID == "" && claims.Email == "" && claims.Phone == "":
		return ProvedIdentity{}, errIdentityTokenEmpty
	}
	return ProvedIdentity{UserID: claims.UserID, Email: claims.Email, Phone: claims.Phone}, nil
}

// identityTokenFault returns the public reason why a token was not parsed.
func identityTokenFault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jwt.ErrTokenExpired):
		return errIdentityTokenExpired
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return errIdentityTokenLife
	}
	return errIdentityToken
}
