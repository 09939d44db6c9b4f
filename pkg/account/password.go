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

// HashPassword returns the password's hash in the PHC string format. It waits for a free hashing slot. The hash
// has the salt of one of the others, if there are any: the users of one address share a salt, so that
// [VerifyPasswords] compares a password with all of them for the price of one.
func HashPassword(ctx context.Context, password string, others ...string) (string, error) {
	p := phc{time: argonTime, memory: argonMemory, lanes: argonLanes, salt: make([]byte, argonSalt)}
	_, _ = rand.Read(p.salt) // never fails (crypto/rand)
	for _, other := range others {
		if known, ok := parsePHC(other); ok {
			p.salt = known.salt
			break
		}
	}
	key, err := p.hash(ctx, password)
	if err != nil {
		return "", err
	}
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf(
		"$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonLanes,
		encode(p.salt), encode(key),
	), nil
}

// VerifyPassword reports whether the password matches the hash. With an empty hash it takes the same time and returns
// false, so that timing does not reveal whether a user exists.
func VerifyPassword(ctx context.Context, password, hash string) (bool, error) {
	right, err := VerifyPasswords(ctx, password, hash)
	return err == nil && right[0], err
}

// VerifyPasswords reports for each hash whether the password matches. Hashes with one salt take the time of one;
// without any hash it takes that time too.
func VerifyPasswords(ctx context.Context, password string, hashes ...string) ([]bool, error) {
	right := make([]bool, len(hashes))
	if len(password) > 4*maxPassword {
		return right, nil
	}
	keys := map[string][]byte{}
	for n, hash := range hashes {
		p, ok := parsePHC(hash)
		if !ok {
			continue
		}
		input := fmt.Sprint(p.time, p.memory, p.lanes, string(p.salt))
		if keys[input] == nil {
			key, err := p.hash(ctx, password)
			if err != nil {
				return nil, err
			}
			keys[input] = key
		}
		right[n] = subtle.ConstantTimeCompare(keys[input], p.key) == 1
	}
	if len(keys) > 0 {
		return right, nil
	}
	nobody := phc{time: argonTime, memory: argonMemory, lanes: argonLanes, salt: make([]byte, argonSalt)}
	_, err := nobody.hash(ctx, password)
	return right, err
}

// hash computes the key of a password.
func (p phc) hash(ctx context.Context, password string) ([]byte, error) {
	return argonOf(ctx, password, p.salt, p.time, p.memory, p.lanes)
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
