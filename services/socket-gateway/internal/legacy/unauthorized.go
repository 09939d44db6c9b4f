package legacy

// In the gateway: the bound on old clients without a valid token.

import (
	"net/http"
	"sync"
	"time"
)

// unauthorizedLimiter limits the connections without a valid token, which are accepted in order to send the
// reason of the refusal. The library does not report when they end, so each counts for keepRefused.
type unauthorizedLimiter struct {
	max, maxPerAddress int // 0: no limit
	address            func(*http.Request) string
	now                func() time.Time

	mu        sync.Mutex
	recent    []unauthorizedConn // oldest first
	byAddress map[string]int
}

// unauthorizedConn is a connection that counts until a time.
type unauthorizedConn struct {
	address string
	until   time.Time
}

func newUnauthorizedLimiter(cfg Config) *unauthorizedLimiter {
	s := &unauthorizedLimiter{
		max:           cfg.MaxUnauthorized,
		maxPerAddress: cfg.MaxUnauthorizedPerAddress,
		address:       cfg.Address,
		now:           time.Now,
		byAddress:     make(map[string]int),
	}
	if s.address == nil {
		s.address = func(r *http.Request) string { return r.RemoteAddr }
	}
	return s
}

// admit counts one more connection, or returns false at a limit.
func (u *unauthorizedLimiter) admit(r *http.Request) bool {
	address := u.address(r)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.expireLocked()
	if u.max > 0 && len(u.recent) >= u.max || u.maxPerAddress > 0 && u.byAddress[address] >= u.maxPerAddress {
		return false
	}
	u.recent = append(u.recent, unauthorizedConn{address: address, until: u.now().Add(keepRefused)})
	u.byAddress[address]++
	return true
}

// count returns the number of connections that count now.
func (u *unauthorizedLimiter) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.expireLocked()
	return len(u.recent)
}

// expireLocked removes the connections whose time is over.
func (u *unauthorizedLimiter) expireLocked() {
	now := u.now()
	for len(u.recent) > 0 && !now.Before(u.recent[0].until) {
		expired := u.recent[0].address
		if u.byAddress[expired]--; u.byAddress[expired] == 0 {
			delete(u.byAddress, expired)
		}
		u.recent = u.recent[1:]
	}
}
