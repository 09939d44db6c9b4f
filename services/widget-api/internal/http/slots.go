package http

import "sync"

// slots is a semaphore per caller with max slots each. Zero max means unlimited.
type slots struct {
	max    int
	mu     sync.Mutex
	inside map[string]int
}

func newSlots(limit int) *slots { return &slots{max: limit, inside: make(map[string]int)} }

// enter reports false if all of the caller's slots are taken; otherwise leave returns the slot.
func (p *slots) enter(caller string) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.max > 0 && p.inside[caller] >= p.max {
		return nil, false
	}
	p.inside[caller]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.inside[caller]--; p.inside[caller] == 0 {
			delete(p.inside, caller)
		}
	}, true
}
