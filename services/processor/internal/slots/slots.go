// Package slots shares a fixed number of slots between tenants: the requests of outgoing webhooks between
// companies. Consumers share their handlers by the same rule (pkg/bus, Consumer.Tenant).
//
// A tenant takes another slot while it holds fewer than are free. So one busy tenant gets half of them, two
// get a third each, and n get an equal share each and leave one for the next tenant, which does not wait for
// a slot of the others. A tenant above its share, because others have come, gives slots back as its work
// ends. Nothing is remembered of a tenant without a slot.
package slots

import "sync"

// Slots is a number of slots. It is safe for concurrent use.
type Slots struct {
	mu    sync.Mutex
	size  int
	taken int
	held  map[string]int
}

// New returns size free slots.
func New(size int) *Slots { return &Slots{size: size, held: map[string]int{}} }

// Take takes a slot for the tenant, until Release. It reports false if the tenant has its share.
func (s *Slots) Take(tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[tenant] >= s.size-s.taken {
		return false
	}
	s.held[tenant]++
	s.taken++
	return true
}

// Release returns a slot that the tenant has taken.
func (s *Slots) Release(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	s.held[tenant]--
	if s.held[tenant] == 0 {
		delete(s.held, tenant)
	}
}

// Held returns the number of slots that the tenant holds.
func (s *Slots) Held(tenant string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[tenant]
}

// Room returns how many more slots the tenant could take now.
func (s *Slots) Room(tenant string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, (s.size-s.taken-s.held[tenant]+1)/2)
}

// Taken returns the number of slots that all tenants hold.
func (s *Slots) Taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}
