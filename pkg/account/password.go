package account

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/parley-chat/parley/pkg/apperr"
)

const (
	minPassword = 12 // characters
	maxPassword = 200

	// argon2id with 19 MiB, two passes and one lane (OWASP Password Storage Cheat Sheet).
	argonMemory = 19 << 10 // KiB
	argonTime   = 2
	argonLanes  = 1
	argonKey    = 32
	argonSalt   = 16

	// hashesAtOnce limits concurrent hashing, which bounds the memory and CPU used by sign-ins.
	hashesAtOnce = 2
)

var hashing = make(chan struct{}, hashesAtOnce)

// CheckPassword returns an Invalid error for a password that is too short or too long. field is its name in the
// response.
func CheckPassword(field, password string) error {
	var f apperr.Fields
	switch n := utf8.RuneCountInString(password); {
	case n < minPassword:
		f.Add(field, fmt.Sprintf("must have at least %d characters", minPassword))
	case n > maxPassword || !utf8.ValidString(password):
		f.Add(field, fmt.Sprintf("must have at most %d characters", maxPassword))
	}
	return f.Err()
}

// NewPassword returns a random password.
func NewPassword() string { return NewSecret()[:20] }

// HashPassword returns the password's hash in the PHC string format. It waits for a free hashing slot.
func HashPassword(ctx context.Context, password string) (string, error) {
	var salt [argonSalt]byte
	_, _ = rand.Read(salt[:]) // never fails (crypto/rand)
	key, err := argonOf(ctx, password, salt[:], argonTime, argonMemory, argonLanes)
	if err != nil {
		return "", err
	}
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf(
		"$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonLanes,
		encode(salt[:]), encode(key),
	), nil
}

// VerifyPassword reports whether the password matches the hash. With an empty hash it takes the same time and returns
// false, so that timing does not reveal whether a user exists.
func VerifyPassword(ctx context.Context, password, hash string) (bool, error) {
	if len(password) > 4*maxPassword {
		return false, nil
	}
	p, ok := parsePHC(hash)
	if !ok {
		_, err := argonOf(ctx, password, make([]byte, argonSalt), argonTime, argonMemory, argonLanes)
		return false, err
	}
	key, err := argonOf(ctx, password, p.salt, p.time, p.memory, p.lanes)
	return err == nil && subtle.ConstantTimeCompare(key, p.key) == 1, err
}

func argonOf(ctx context.Context, password string, salt []byte, time, memory uint32, lanes uint8) ([]byte, error) {
	select {
	case hashing <- struct{}{}:
		defer func() { <-hashing }()
	case <-ctx.Done():
		return nil, apperr.Unreachable("password hashing", ctx.Err())
	}
	return argon2.IDKey([]byte(password), salt, time, memory, lanes, argonKey), nil
}

// phc is a parsed hash in the PHC string format.
type phc struct {
	time, memory uint32
	lanes        uint8
	salt, key    []byte
}

func parsePHC(hash string) (p phc, ok bool) {
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return p, false
	}
	var version int
	if _, err := fmt.Sscanf(parts[2], "v=%d", &version); err != nil || version != argon2.Version {
		return p, false
	}
	_, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.time, &p.lanes)
	if err != nil || p.time == 0 || p.lanes == 0 || p.memory > 1<<20 {
		return p, false
	}
	var failed error
	p.salt, err = base64.RawStdEncoding.DecodeString(parts[4])
	p.key, failed = base64.RawStdEncoding.DecodeString(parts[5])
	return p, err == nil && failed == nil && len(p.key) == argonKey
}
