package legacy

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
func (s *unauthorizedLimiter) admit(r *http.Request) bool {
	address := s.address(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked()
	if s.max > 0 && len(s.recent) >= s.max || s.maxPerAddress > 0 && s.byAddress[address] >= s.maxPerAddress {
		return false
	}
	s.recent = append(s.recent, unauthorizedConn{address: address, until: s.now().Add(keepRefused)})
	s.byAddress[address]++
	return true
}

func (s *unauthorizedLimiter) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked()
	return len(s.recent)
}

func (s *unauthorizedLimiter) expireLocked() {
	now := s.now()
	for len(s.recent) > 0 && !now.Before(s.recent[0].until) {
		expired := s.recent[0].address
		if s.byAddress[expired]--; s.byAddress[expired] == 0 {
			delete(s.byAddress, expired)
		}
		s.recent = s.recent[1:]
	}
}
