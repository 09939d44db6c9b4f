package credential

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// jwk is an Ed25519 key as a JSON Web Key (RFC 8037, section 2).
type jwk struct {
	KeyType   string `json:"kty"`
	Curve     string `json:"crv"`
	X         string `json:"x"`           // the public key
	D         string `json:"d,omitempty"` // the private key's seed; absent in published keys
	KeyID     string `json:"kid,omitempty"`
	Use       string `json:"use,omitempty"`
	Algorithm string `json:"alg,omitempty"`
}

type jwkSet struct {
	Keys []jwk `json:"keys"`
}

// key is one usable key of a set.
type key struct {
	id      string
	public  ed25519.PublicKey
	private ed25519.PrivateKey // nil if only the public key is known
}

func publicJWK(public ed25519.PublicKey) jwk {
	return jwk{
		KeyType:   "OKP",
		Curve:     "Ed25519",
		X:         base64.RawURLEncoding.EncodeToString(public),
		KeyID:     thumbprint(public),
		Use:       "sig",
		Algorithm: algorithm,
	}
}

// generateJWK returns a new private key. Its kid does not begin with a dash, because operators pass kids as arguments.
func generateJWK() (jwk, error) {
	for {
		public, private, err := ed25519.GenerateKey(nil)
		if err != nil {
			return jwk{}, fmt.Errorf("generating a key: %w", err)
		}
		if j := publicJWK(public); !strings.HasPrefix(j.KeyID, "-") {
			j.D = base64.RawURLEncoding.EncodeToString(private.Seed())
			return j, nil
		}
	}
}

// thumbprint returns the kid of a key: its JWK thumbprint (RFC 7638; the members of an OKP key are listed in RFC 8037,
// section 2).
func thumbprint(public ed25519.PublicKey) string {
	x := base64.RawURLEncoding.EncodeToString(public)
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// isEd25519 selects the usable keys of a set, which may contain others (RFC 7517, section 5).
func (j jwk) isEd25519() bool {
	return j.KeyType == "OKP" && j.Curve == "Ed25519" &&
		(j.Use == "" || j.Use == "sig") && (j.Algorithm == "" || j.Algorithm == algorithm || j.Algorithm == "Ed25519")
}

// key decodes the JWK. Its id is its kid, or its thumbprint if it has none.
func (j jwk) key() (key, error) {
	public, err := base64.RawURLEncoding.DecodeString(j.X)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return key{}, errors.New("x is not an Ed25519 public key")
	}
	k := key{id: j.KeyID, public: public}
	if k.id == "" {
		k.id = thumbprint(public)
	}
	if j.D == "" {
		return k, nil
	}
	seed, err := base64.RawURLEncoding.DecodeString(j.D)
	if err != nil || len(seed) != ed25519.SeedSize {
		return key{}, errors.New("d is not an Ed25519 private key")
	}
	k.private = ed25519.NewKeyFromSeed(seed)
	if !k.public.Equal(k.private.Public()) {
		return key{}, errors.New("x and d do not belong together")
	}
	return k, nil
}

// parseJWKS decodes the Ed25519 keys of a JWK Set in their order.
func parseJWKS(data []byte) ([]key, error) {
	var set jwkSet
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, errors.New("not a JWK Set in JSON") // the cause could repeat a piece of a private key
	}
	var keys []key
	seen := map[string]bool{}
	for i, j := range set.Keys {
		if !j.isEd25519() {
			continue
		}
		k, err := j.key()
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		if seen[k.id] {
			return nil, fmt.Errorf("key %d: duplicate kid", i+1)
		}
		seen[k.id] = true
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, errors.New("no Ed25519 key in it (kty OKP, crv Ed25519)")
	}
	return keys, nil
}
