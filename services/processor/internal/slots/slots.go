// Package slots shares a fixed number of slots between tenants: the requests of outgoing webhooks between
// companies, the calls of the bot's server between applications.
//
// A tenant takes another slot while it holds fewer than are free. So one busy tenant gets half of them, two
// get a third each, and n get an equal share each and leave one for the next tenant, which does not wait for
// a slot of the others. A tenant above its share, because others have come, gives slots back as its work
// ends. Nothing is remembered of a tenant without a slot.
package slots

import (
	"slices"
	"sync"
)

// Slots is a number of slots. It is safe for concurrent use.
type Slots struct {
	mu      sync.Mutex
	size    int
	taken   int
	held    map[string]int
	waiting []waiter // oldest first
}

// waiter waits for a slot of its tenant.
type waiter struct {
	tenant, id string
	ready      chan struct{}
}

// New returns size free slots.
func New(size int) *Slots { return &Slots{size: size, held: map[string]int{}} }

// Take takes a slot for the tenant, until Release. It reports false if the tenant has its share.
func (s *Slots) Take(tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(tenant)
}

// TakeOrWait is Take for a task that waits for its turn if the tenant has its share: ready is closed when the
// task, the oldest with room, may try again. id identifies the task if it tries earlier. A task that no
// longer waits may take one turn from the others, so they try again after some time in any case.
func (s *Slots) TakeOrWait(tenant, id string) (taken bool, ready <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.take(tenant) {
		return true, nil
	}
	for _, w := range s.waiting {
		if w.id == id {
			return false, w.ready
		}
	}
	next := make(chan struct{})
	s.waiting = append(s.waiting, waiter{tenant, id, next})
	return false, next
}

// take is called with the lock held.
func (s *Slots) take(tenant string) bool {
	if !s.hasRoom(tenant) {
		return false
	}
	s.held[tenant]++
	s.taken++
	return true
}

// hasRoom is called with the lock held.
func (s *Slots) hasRoom(tenant string) bool { return s.held[tenant] < s.size-s.taken }

// Release returns a slot that the tenant has taken.
func (s *Slots) Release(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.held[tenant]--; s.held[tenant] == 0 {
		delete(s.held, tenant)
	}
	for i, w := range s.waiting {
		if s.hasRoom(w.tenant) {
			s.waiting = slices.Delete(s.waiting, i, i+1)
			close(w.ready)
			return
		}
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
