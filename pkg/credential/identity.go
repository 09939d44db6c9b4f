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

	// MaxIdentityTokenLifetime is the maximum remaining lifetime of an identity token.
	MaxIdentityTokenLifetime = time.Hour
)

// NewIdentitySecret returns a secret with which a company's server signs its users' identities.
func NewIdentitySecret() chat.Secret {
	var raw [identitySecretBytes]byte
	_, _ = rand.Read(raw[:]) // never fails (crypto/rand)
	return chat.Secret(identitySecretPrefix + base64.RawURLEncoding.EncodeToString(raw[:]))
}

// UserHash returns what the company's server gives to a logged-in user: the HMAC-SHA256 of the user's identifier, in
// lower-case hexadecimal. The key is the text of the secret, including its prefix.
func UserHash(secret chat.Secret, identifier string) string {
	return hex.EncodeToString(userMAC(secret, identifier))
}

// IsUserHash reports whether userHash is the hash of identifier under one of the secrets. Its running time depends
// neither on how much of userHash is correct nor on which secret matches.
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

// ProvedIdentity is an identity that a company's server vouches for; empty fields are not proven.
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

// IdentityToken creates an identity token as a company's server does: a JWT signed with HS256. The key is the text of
// the secret, including its prefix.
func IdentityToken(secret chat.Secret, p ProvedIdentity, expiresAt time.Time) (string, error) {
	return jwt.NewWithClaims(jwt.SigningMethodHS256, &identityClaims{
		RegisteredClaims: jwt.RegisteredClaims{ExpiresAt: jwt.NewNumericDate(expiresAt)},
		UserID:           p.UserID,
		Email:            p.Email,
		Phone:            p.Phone,
	}).SignedString([]byte(string(secret)))
}

// Faults of an identity token. Their texts are returned to clients.
var (
	errIdentityToken         = errors.New("is not a JWT signed with HS256 and the application's secret")
	errIdentityTokenExpired  = errors.New("has expired")
	errIdentityTokenLifetime = errors.New("must have an exp at most an hour ahead")
	errIdentityTokenEmpty    = errors.New("must have the claim userId, email or phone")
)

// VerifyIdentityToken returns the identity that the token proves at now under one of the secrets. Its errors may be
// returned to clients.
func VerifyIdentityToken(secrets []chat.Secret, token string, now time.Time) (ProvedIdentity, error) {
	if len(token) > maxToken {
		return ProvedIdentity{}, errIdentityToken
	}
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithExpirationRequired(),
		jwt.WithStrictDecoding(),
		jwt.WithTimeFunc(func() time.Time { return now }),
	)
	var claims identityClaims
	err := errIdentityToken
	for _, secret := range secrets {
		claims = identityClaims{}
		_, parsed := parser.ParseWithClaims(
			token,
			&claims,
			func(*jwt.Token) (any, error) { return []byte(string(secret)), nil },
		)
		if err = identityTokenFault(parsed); !errors.Is(err, errIdentityToken) {
			break
		}
	}
	switch {
	case err != nil:
		return ProvedIdentity{}, err
	case claims.ExpiresAt.After(now.Add(MaxIdentityTokenLifetime + clockSkew)):
		return ProvedIdentity{}, errIdentityTokenLifetime
	case claims.UserID == "" && claims.Email == "" && claims.Phone == "":
		return ProvedIdentity{}, errIdentityTokenEmpty
	}
	return ProvedIdentity{UserID: claims.UserID, Email: claims.Email, Phone: claims.Phone}, nil
}

// identityTokenFault returns the public error for a token that failed to parse.
func identityTokenFault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jwt.ErrTokenExpired):
		return errIdentityTokenExpired
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return errIdentityTokenLifetime
	}
	return errIdentityToken
}
