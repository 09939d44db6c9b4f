package credential

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"github.com/parley-chat/parley/pkg/atomicfile"
)

// ErrUnknownKey is returned if no key has the given id.
var ErrUnknownKey = errors.New("unknown key")

// KeySource returns the public keys of visitor tokens.
type KeySource interface {
	// Key returns the key with this id. Errors: [ErrUnknownKey], and apperr.Unavailable if the keys could not be
	// fetched.
	Key(ctx context.Context, kid string) (ed25519.PublicKey, error)
}

// Kind and key of the invalidation (see rpc.Conn.Invalidate) published after a signing service has reloaded its keys.
const (
	KindVisitorKeys = "visitor_keys"
	AllVisitorKeys  = "all"
)

// GenerateKeySet returns a JWK Set (RFC 7517) with one new private key: the content of a file for [LoadKeySet].
func GenerateKeySet() ([]byte, error) {
	j, err := generateJWK()
	if err != nil {
		return nil, err
	}
	encoded, err := json.MarshalIndent(jwkSet{Keys: []jwk{j}}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding a key set: %w", err)
	}
	return append(encoded, '\n'), nil
}

// KeySet holds the Ed25519 keys of the signing service: the first key signs, all verify. To rotate, put a new key in
// front, and remove the old one after the last token it signed has expired. It is safe for concurrent use.
type KeySet struct {
	path    string
	keys    atomic.Pointer[loadedKeys]
	reading sync.Mutex // held by Reload
	file    []byte     // last content read
}

// loadedKeys is immutable.
type loadedKeys struct {
	signer key
	byID   map[string]ed25519.PublicKey
	jwks   []byte
}

// LoadKeySet reads a JWK Set file. The first key must be a private one.
func LoadKeySet(path string) (*KeySet, error) {
	s := &KeySet{path: path}
	if _, err := s.Reload(); err != nil {
		return nil, err
	}
	return s, nil
}

// ParseKeySet parses a JWK Set that is not in a file, so Reload does nothing.
func ParseKeySet(data []byte) (*KeySet, error) {
	s := &KeySet{}
	keys, err := loadKeys(data)
	if err != nil {
		return nil, fmt.Errorf("reading visitor keys: %w", err)
	}
	s.keys.Store(keys)
	return s, nil
}

func loadKeys(data []byte) (*loadedKeys, error) {
	keys, err := parseJWKS(data)
	if err != nil {
		return nil, err
	}
	if keys[0].private == nil {
		return nil, errors.New("the first key has no private part (d), so it cannot sign")
	}
	loaded := &loadedKeys{signer: keys[0], byID: map[string]ed25519.PublicKey{}}
	var public jwkSet
	for _, k := range keys {
		loaded.byID[k.id] = k.public
		j := publicJWK(k.public)
		j.KeyID = k.id
		public.Keys = append(public.Keys, j)
	}
	loaded.jwks, err = json.Marshal(public)
	return loaded, err
}

// Reload reads the file again if it has changed. On an error the current keys stay in use.
func (k *KeySet) Reload() (changed bool, err error) {
	if k.path == "" {
		return false, nil
	}
	k.reading.Lock()
	defer k.reading.Unlock()
	data, err := os.ReadFile(k.path)
	if err != nil {
		return false, fmt.Errorf("reading visitor keys: %w", err)
	}
	if bytes.Equal(data, k.file) {
		return false, nil
	}
	keys, err := loadKeys(data)
	if err != nil {
		return false, fmt.Errorf("reading visitor keys from %s: %w", k.path, err)
	}
	k.file = data
	k.keys.Store(keys)
	return true, nil
}

// Run reloads the keys whenever their file changes, then calls changed, which may be nil; see [atomicfile.Watch].
func (k *KeySet) Run(ctx context.Context, log *slog.Logger, changed func()) error {
	return atomicfile.Watch(ctx, log, k.path, k.Reload, changed)
}

// Key implements [KeySource].
func (k *KeySet) Key(_ context.Context, kid string) (ed25519.PublicKey, error) {
	if public, ok := k.keys.Load().byID[kid]; ok {
		return public, nil
	}
	return nil, ErrUnknownKey
}

// Sign returns a visitor token with these claims, signed with the first key.
func (k *KeySet) Sign(claims VisitorClaims) (string, error) {
	return sign(claims, k.keys.Load().signer)
}

// JWKS returns the public part of the set as JSON. The caller must not change it.
func (k *KeySet) JWKS() []byte { return k.keys.Load().jwks }
