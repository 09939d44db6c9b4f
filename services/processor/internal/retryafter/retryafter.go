// Package retryafter parses the header Retry-After of servers that Parley calls: webhook endpoints, the bot's server.
package retryafter

import (
	"net/http"
	"strconv"
	"time"
)

// Parse returns how long a server asks to wait, at most longest, from either form of the header (RFC 9110,
// 10.2.3): seconds or a date. It is zero if the header is absent, invalid or in the past.
func Parse(h http.Header, now time.Time, longest time.Duration) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(longest/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, min(at.Sub(now), longest))
	}
	return 0
}
