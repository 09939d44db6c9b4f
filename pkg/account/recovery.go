package account

import (
	"crypto/rand"
	"encoding/base32"
	"slices"
	"strings"
)

const (
	// RecoveryCodeCount is the number of recovery codes that a user gets at a time.
	RecoveryCodeCount = 10

	recoveryBytes = 10 // 80 bits, which cannot be guessed from their hash either
	recoveryGroup = 4  // characters between two dashes
)

// NewRecoveryCodes returns recovery codes, each of which replaces a one-time code once, and their hashes for
// [User.RecoveryCodes].
func NewRecoveryCodes() (codes []string, hashes string) {
	stored := make([]string, RecoveryCodeCount)
	for n := range stored {
		code := newRecoveryCode()
		codes = append(codes, code)
		stored[n] = hashRecoveryCode(code)
	}
	return codes, strings.Join(stored, " ")
}

func newRecoveryCode() string {
	var raw [recoveryBytes]byte
	_, _ = rand.Read(raw[:]) // never fails (crypto/rand)
	text := strings.ToLower(base32.StdEncoding.EncodeToString(raw[:]))
	groups := slices.Collect(slices.Chunk([]byte(text), recoveryGroup))
	parts := make([]string, len(groups))
	for n, group := range groups {
		parts[n] = string(group)
	}
	return strings.Join(parts, "-")
}

// hashRecoveryCode ignores what people add or drop when they type a code: dashes, spaces and capitals.
func hashRecoveryCode(code string) string {
	return HashSecret(strings.NewReplacer("-", "", " ", "").Replace(strings.ToLower(code)))
}

// SpendRecoveryCode uses up a recovery code. It returns the hashes of the others, and false if the code is
// wrong or has been used.
func SpendRecoveryCode(hashes, code string) (left string, ok bool) {
	stored := strings.Fields(hashes)
	n := slices.Index(stored, hashRecoveryCode(code))
	if n < 0 {
		return hashes, false
	}
	return strings.Join(slices.Delete(stored, n, n+1), " "), true
}

// RecoveryCodesLeft returns the number of the user's unused recovery codes.
func (u User) RecoveryCodesLeft() int { return len(strings.Fields(u.RecoveryCodes)) }
