package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Prefixes of keys (Standard Webhooks, "Signature scheme").
const (
	prefixSymmetric = "whsec_"
	prefixPrivate   = "whsk_"
	prefixPublic    = "whpk_"
)

const (
	secretSize              = 32 // bytes of a new symmetric secret
	minSecret, maxSecret    = 24, 64
	schemeHMAC, schemeEd    = "v1,", "v1a,"
	signatureListSeparator  = " "
	signedContentSeparator  = "."
	maxActiveSecretsPerKind = 5 // a rotation ends the oldest beyond this
)

// Kind is a scheme of signatures.
type Kind string

// Kinds of secrets.
const (
	HMAC    Kind = "v1"  // HMAC-SHA256 with a shared secret
	Ed25519 Kind = "v1a" // ed25519; receivers have the public key only
)

// Secret signs deliveries until it expires.
type Secret struct {
	Value     string    `json:"value"` // whsec_ and the key, or whsk_ and the seed of the private key, in base64
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"` // zero: does not expire
}

// NewSecret returns a random secret of a kind.
func NewSecret(kind Kind, now time.Time) Secret {
	key := make([]byte, secretSize) // also the size of an ed25519 seed
	_, _ = rand.Read(key)           // never fails (crypto/rand)
	prefix := prefixSymmetric
	if kind == Ed25519 {
		prefix = prefixPrivate
	}
	return Secret{Value: prefix + base64.StdEncoding.EncodeToString(key), CreatedAt: now}
}

// Kind returns the scheme that the secret signs with.
func (s Secret) Kind() Kind {
	if strings.HasPrefix(s.Value, prefixPrivate) {
		return Ed25519
	}
	return HMAC
}

// Active reports whether the secret signs at now.
func (s Secret) Active(now time.Time) bool { return s.ExpiresAt.IsZero() || now.Before(s.ExpiresAt) }

// errSecret describes a valid secret.
var errSecret = errors.New("must be whsec_ and 24 to 64 bytes in base64, or whsk_ and 32 bytes in base64")

// Check returns an error that describes a valid secret if s is none.
func (s Secret) Check() error {
	_, err := s.key()
	return err
}

func (s Secret) key() ([]byte, error) {
	prefix := prefixSymmetric
	if s.Kind() == Ed25519 {
		prefix = prefixPrivate
	}
	encoded, ok := strings.CutPrefix(s.Value, prefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case !ok, err != nil, len(key) < minSecret, len(key) > maxSecret:
		return nil, errSecret
	case s.Kind() == Ed25519 && len(key) != ed25519.SeedSize:
		return nil, errSecret
	}
	return key, nil
}

// Verifier returns the receiver's key: the secret itself, or, for ed25519, whpk_ and the public key in base64.
func (s Secret) Verifier() string {
	key, err := s.key()
	if err != nil || s.Kind() == HMAC {
		return s.Value
	}
	public := ed25519.NewKeyFromSeed(key).Public().(ed25519.PublicKey)
	return prefixPublic + base64.StdEncoding.EncodeToString(public)
}

func (s Secret) sign(content []byte) (string, error) {
	key, err := s.key()
	if err != nil {
		return "", err
	}
	if s.Kind() == Ed25519 {
		return schemeEd + base64.StdEncoding.EncodeToString(ed25519.Sign(ed25519.NewKeyFromSeed(key), content)), nil
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(content)
	return schemeHMAC + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}

// SetHeaders sets the headers of a request of Standard Webhooks with a JSON body, the signature among them. id is the
// same for each attempt.
func SetHeaders(h http.Header, secrets []Secret, id string, at time.Time, body []byte) error {
	timestamp, signature, err := Sign(secrets, id, at, body)
	if err != nil {
		return err
	}
	h.Set("Content-Type", "application/json")
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", timestamp)
	h.Set("webhook-signature", signature)
	return nil
}

// Sign returns the values of webhook-timestamp and webhook-signature: one signature per active secret, newest first.
func Sign(secrets []Secret, id string, at time.Time, body []byte) (timestamp, signature string, err error) {
	timestamp = strconv.FormatInt(at.Unix(), 10)
	content := append([]byte(id+signedContentSeparator+timestamp+signedContentSeparator), body...)
	var signatures []string
	for _, s := range secrets {
		if !s.Active(at) {
			continue
		}
		signed, err := s.sign(content)
		if err != nil {
			return "", "", err
		}
		signatures = append(signatures, signed)
	}
	if len(signatures) == 0 {
		return "", "", errors.New("the endpoint has no active secret")
	}
	return timestamp, strings.Join(signatures, signatureListSeparator), nil
}
