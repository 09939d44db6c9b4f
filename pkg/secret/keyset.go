package secret

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/core/cryptofmt"
	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/parley-chat/parley/pkg/atomicfile"
)

// Setting is the variable with the path of the key file.
const Setting = "SECRETS_KEY_FILE"

// KeyID identifies a key. Each ciphertext names its key.
type KeyID uint32

// String returns the id as the key file has it.
func (id KeyID) String() string { return strconv.FormatUint(uint64(id), 10) }

var (
	// ErrNotEncrypted is returned for a text that is no ciphertext.
	ErrNotEncrypted = errors.New("is not encrypted")
	// ErrNotDecrypted is returned for a ciphertext that was altered, or copied from another record.
	ErrNotDecrypted = errors.New("was altered, or copied from another record")
)

// UnknownKeyError is returned for a ciphertext of a key that the process does not have, and for an encryption
// without keys.
type UnknownKeyError struct {
	ID    KeyID // 0: any
	unset bool  // there is no key file
}

func (e *UnknownKeyError) Error() string {
	if e.unset {
		return Setting + " is not set, and records have secrets"
	}
	return fmt.Sprintf("%s has no key %s, with which secrets are encrypted", Setting, e.ID)
}

// KeySet encrypts with the primary key of a file and decrypts with all of its keys. It is safe for concurrent
// use. The zero KeySet has no keys.
type KeySet struct {
	path    string
	keys    atomic.Pointer[loadedKeys]
	reading sync.Mutex // held by Reload
	file    []byte     // last content read
}

// loadedKeys is immutable.
type loadedKeys struct {
	primary KeyID
	ids     map[KeyID]bool
	aead    tink.AEAD
}

// Load reads a key file; see [Generate].
func Load(path string) (*KeySet, error) {
	s := &KeySet{path: path}
	if _, err := s.Reload(); err != nil {
		return nil, fmt.Errorf("%s: %w", Setting, err)
	}
	return s, nil
}

// Parse reads the content of a key file. Reload and Run do nothing.
func Parse(data []byte) (*KeySet, error) {
	keys, err := loadKeys(data)
	if err != nil {
		return nil, err
	}
	s := new(KeySet)
	s.keys.Store(keys)
	return s, nil
}

func loadKeys(data []byte) (*loadedKeys, error) {
	file, err := parseFile(data)
	if err != nil {
		return nil, err
	}
	loaded := &loadedKeys{ids: map[KeyID]bool{}}
	for _, k := range file.Keys() {
		loaded.ids[k.ID] = true
		if k.State == KeyPrimary {
			loaded.primary = k.ID
		}
	}
	loaded.aead, err = aead.New(file.handle)
	if err != nil {
		return nil, errNotKeyFile
	}
	return loaded, nil
}

// Reload reads the file again if it has changed. On an error the current keys stay in use.
func (s *KeySet) Reload() (changed bool, err error) {
	if s.path == "" {
		return false, nil
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	data, err := os.ReadFile(s.path)
	if err != nil {
		return false, fmt.Errorf("reading the keys of secrets: %w", err)
	}
	if bytes.Equal(data, s.file) {
		return false, nil
	}
	keys, err := loadKeys(data)
	if err != nil {
		return false, fmt.Errorf("reading the keys of secrets from %s: %w", s.path, err)
	}
	s.file = data
	s.keys.Store(keys)
	return true, nil
}

// Run reloads the keys whenever their file changes; see [atomicfile.Watch].
func (s *KeySet) Run(ctx context.Context, log *slog.Logger) error {
	return atomicfile.Watch(ctx, log, s.path, s.Reload, nil)
}

// Primary returns the key that encrypts; 0 without keys.
func (s *KeySet) Primary() KeyID {
	keys := s.keys.Load()
	if keys == nil {
		return 0
	}
	return keys.primary
}

// Has reports whether the key decrypts.
func (s *KeySet) Has(id KeyID) bool {
	keys := s.keys.Load()
	return keys != nil && keys.ids[id]
}

// Encrypt returns the ciphertext of a text as base64. Only a call of Decrypt with the same place decrypts it:
// place names the record and the field that it is stored in.
func (s *KeySet) Encrypt(text, place string) (string, error) {
	keys := s.keys.Load()
	if keys == nil {
		return "", &UnknownKeyError{unset: true}
	}
	ciphertext, err := keys.aead.Encrypt([]byte(text), []byte(place))
	if err != nil {
		return "", fmt.Errorf("encrypting: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(ciphertext), nil
}

// Decrypt returns the text of a ciphertext that was stored at place. Errors: [ErrNotEncrypted],
// [UnknownKeyError], [ErrNotDecrypted].
func (s *KeySet) Decrypt(ciphertext, place string) (string, error) {
	raw, id, err := parse(ciphertext)
	if err != nil {
		return "", err
	}
	keys := s.keys.Load()
	if keys == nil || !keys.ids[id] {
		return "", &UnknownKeyError{ID: id, unset: keys == nil}
	}
	text, err := keys.aead.Decrypt(raw, []byte(place))
	if err != nil {
		return "", ErrNotDecrypted
	}
	return string(text), nil
}

// KeyOf returns the key of a ciphertext, or [ErrNotEncrypted].
func KeyOf(ciphertext string) (KeyID, error) {
	_, id, err := parse(ciphertext)
	return id, err
}

// parse reads Tink's prefix: a start byte and the id of the key, big-endian.
func parse(ciphertext string) (raw []byte, id KeyID, err error) {
	raw, err = base64.RawURLEncoding.DecodeString(ciphertext)
	if err != nil || len(raw) < cryptofmt.TinkPrefixSize || raw[0] != cryptofmt.TinkStartByte {
		return nil, 0, ErrNotEncrypted
	}
	return raw, KeyID(binary.BigEndian.Uint32(raw[1:])), nil
}
