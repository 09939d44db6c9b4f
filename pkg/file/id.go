package file

import (
	"crypto/rand"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// An id consists of the expiry time, in base 36 with a fixed width, a dash and 192 random bits: unguessable, and sorted
// by expiry, so that a store can find expired files by name alone.
const (
	expiryWidth = 7 // Unix seconds until the year 4453
	randomBytes = 24
	idLength    = expiryWidth + 1 + (randomBytes*8+5)/6

	never = "zzzzzzz"
)

// NewID returns a new id of a file that expires at the given time, rounded up to a second; the zero time means never.
func NewID(expires time.Time) string {
	raw := make([]byte, randomBytes)
	_, _ = rand.Read(raw) // never fails
	return expiryText(expires) + "-" + base64.RawURLEncoding.EncodeToString(raw)
}

func expiryText(expires time.Time) string {
	if expires.IsZero() {
		return never
	}
	seconds := expires.Unix()
	if expires.Nanosecond() > 0 {
		seconds++
	}
	text := strconv.FormatInt(max(seconds, 0), 36)
	if len(text) > expiryWidth {
		return never
	}
	return strings.Repeat("0", expiryWidth-len(text)) + text
}

// ValidID reports whether id has the format of [NewID]; stores are asked only for such ids.
func ValidID(id string) bool {
	if len(id) != idLength || id[expiryWidth] != '-' {
		return false
	}
	_, err := strconv.ParseUint(id[:expiryWidth], 36, 64)
	if err != nil || strings.ToLower(id[:expiryWidth]) != id[:expiryWidth] {
		return false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(id[expiryWidth+1:])
	return err == nil && len(raw) == randomBytes
}

// ExpiryOf returns when the file with that valid id expires; the zero time means never.
func ExpiryOf(id string) time.Time {
	if !ValidID(id) || id[:expiryWidth] == never {
		return time.Time{}
	}
	seconds, _ := strconv.ParseInt(id[:expiryWidth], 36, 64) // ValidID has checked it
	return time.Unix(seconds, 0).UTC()
}

// Expired reports whether the file with that id has expired at now.
func Expired(id string, now time.Time) bool {
	at := ExpiryOf(id)
	return !at.IsZero() && !now.Before(at)
}
