package chat

import (
	"strconv"
	"strings"
	"time"
)

// ParseID returns the canonical, lower-case form of a UUID that is written with dashes, in any case. Every id of ours has
// this form, so that one id is one string: in a document's key, in a subject, in a room's name.
func ParseID(s string) (id string, ok bool) {
	if len(s) != 36 {
		return "", false
	}
	if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return "", false
	}
	upper := false
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f':
		case 'A' <= c && c <= 'F':
			upper = true
		case c != '-' || i != 8 && i != 13 && i != 18 && i != 23:
			return "", false
		}
	}
	if upper {
		s = strings.ToLower(s)
	}
	return s, true
}

// IDTime returns when a UUIDv7 was made, to the millisecond (RFC 9562, section 5.7). Messages have such ids.
func IDTime(id string) (at time.Time, ok bool) {
	id, ok = ParseID(id)
	if !ok || id[14] != '7' {
		return time.Time{}, false
	}
	milliseconds, err := strconv.ParseInt(id[:8]+id[9:13], 16, 64)
	return time.UnixMilli(milliseconds).UTC(), err == nil
}
