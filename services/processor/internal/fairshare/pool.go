// Package fairshare shares a fixed number of slots between tenants: the requests of outgoing webhooks between
// companies. Consumers share their handlers by the same rule (pkg/bus, Consumer.Tenant).
//
// A tenant takes another slot while it holds fewer than are free. So one busy tenant gets half of them, two
// get a third each, and n get an equal share each and leave one for the next tenant, which does not wait for
// a slot of the others. A tenant above its share, because others have come, gives slots back as its work
// ends. Nothing is remembered of a tenant without a slot.
package fairshare

import "sync"

// Pool is a number of slots. It is safe for concurrent use.
type Pool struct {
	mu    sync.Mutex
	size  int
	taken int
	held  map[string]int
}

// New returns size free slots.
func New(size int) *Pool { return &Pool{size: size, held: map[string]int{}} }

// Take takes a slot for the tenant, until Release. It reports false if the tenant has its share.
func (p *Pool) Take(tenant string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[tenant] >= p.size-p.taken {
		return false
	}
	p.held[tenant]++
	p.taken++
	return true
}

// Release returns a slot that the tenant has taken.
func (p *Pool) Release(tenant string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	p.held[tenant]--
	if p.held[tenant] == 0 {
		delete(p.held, tenant)
	}
}

// Held returns the number of slots that the tenant holds.
func (p *Pool) Held(tenant string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held[tenant]
}

// Room returns how many more slots the tenant could take now.
func (p *Pool) Room(tenant string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, (p.size-p.taken-p.held[tenant]+1)/2)
}

// Taken returns the number of slots that all tenants hold.
func (p *Pool) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}
