package chat

import (
	"time"

	"github.com/google/uuid"
)

// idLength is the length of a UUID with dashes, the only form accepted as an id.
const idLength = 36

// NewID returns a new UUIDv7 (RFC 9562, section 5.7): ids of one writer sort by time.
func NewID() string { return uuid.Must(uuid.NewV7()).String() } // fails only without randomness, and then nothing is safe

// ParseID returns the canonical, lower-case form of a UUID with dashes, in any case. Every id has this form, so that
// equal ids are equal strings: in a document's key, in a subject, in a room's name.
func ParseID(s string) (id string, ok bool) {
	if len(s) != idLength {
		return "", false
	}
	parsed, err := uuid.Parse(s)
	if err != nil {
		return "", false
	}
	return parsed.String(), true
}

// IDTime returns the creation time of a UUIDv7, to the millisecond (RFC 9562, section 5.7). Message ids are UUIDv7.
func IDTime(id string) (at time.Time, ok bool) {
	parsed, err := uuid.Parse(id)
	if err != nil || len(id) != idLength || parsed.Version() != 7 {
		return time.Time{}, false
	}
	seconds, nanoseconds := parsed.Time().UnixTime()
	return time.Unix(seconds, nanoseconds).UTC().Truncate(time.Millisecond), true
}
