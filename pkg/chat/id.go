package chat

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// idLength is the length of a UUID with dashes, the only form accepted as an id.
const idLength = 36

// NewID returns a new UUIDv7 (RFC 9562, section 5.7): ids of one writer sort by time.
// fails only without randomness, and then nothing is safe
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// AnswerID returns the id of answer number n, counted from 0, to the message with the given UUIDv7. It is a
// UUIDv7 that depends only on both, so that an answer that is sent again keeps its id. Its time is the
// message's own, with n+1 added to the 12 bits after the milliseconds (a quarter of a microsecond each), so
// that answers sort after the message, by n, and before what is sent after them, where ids are sorted.
func AnswerID(messageID string, n int) string {
	question, _ := uuid.Parse(messageID) // validated with its event
	at := binary.BigEndian.Uint64(question[:8])
	return derivedID((at>>16<<12|at&0xfff)+uint64(n)+1, messageID+"|"+strconv.Itoa(n))
}

// NoticeID returns the id of the notice about an event: a UUIDv7 that depends only on the event's time and
// id, and sorts after the other ids of that millisecond.
func NoticeID(at time.Time, eventID string) string {
	return derivedID(uint64(at.UnixMilli())<<12|0xfff, "notice|"+eventID)
}

// derivedID returns a UUIDv7 with a hash of the seed in place of random bits (RFC 9562, section 5.7). The
// time has 48 bits of milliseconds and 12 bits of their fraction (section 6.2, method 3).
func derivedID(at uint64, seed string) string {
	sum := sha256.Sum256([]byte(seed))
	id := uuid.UUID(sum[:16])
	binary.BigEndian.PutUint64(id[:8], at>>12<<16|7<<12|at&0xfff)
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

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
