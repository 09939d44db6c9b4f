package legacy

import (
	"net/http"
	"sync"
	"time"
)

// strangers are the connections whose token does not hold. They are let in to be told why, and have a budget of their own:
// the library gives no sign of their end, so each counts for as long as the server keeps it.
type strangers struct {
	max, maxPerAddress int // 0 is no bound
	address            func(*http.Request) string
	now                func() time.Time

	mu        sync.Mutex
	recent    []stranger // oldest first
	byAddress map[string]int
}

type stranger struct {
	address string
	until   time.Time
}

func newStrangers(cfg Config) *strangers {
	s := &strangers{
		max: cfg.MaxStrangers, maxPerAddress: cfg.MaxStrangersPerAddress, address: cfg.Address, now: time.Now, byAddress: make(map[string]int),
	}
	if s.address == nil {
		s.address = func(r *http.Request) string { return r.RemoteAddr }
	}
	return s
}

// admit counts one more, unless there are enough.
func (s *strangers) admit(r *http.Request) bool {
	address := s.address(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked()
	if s.max > 0 && len(s.recent) >= s.max || s.maxPerAddress > 0 && s.byAddress[address] >= s.maxPerAddress {
		return false
	}
	s.recent = append(s.recent, stranger{address: address, until: s.now().Add(keepRefused)})
	s.byAddress[address]++
	return true
}

func (s *strangers) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked()
	return len(s.recent)
}

func (s *strangers) expireLocked() {
	now := s.now()
	for len(s.recent) > 0 && !now.Before(s.recent[0].until) {
		gone := s.recent[0].address
		if s.byAddress[gone]--; s.byAddress[gone] == 0 {
			delete(s.byAddress, gone)
		}
		s.recent = s.recent[1:]
	}
}
