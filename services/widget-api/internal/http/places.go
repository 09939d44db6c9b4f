package http

import "sync"

// places is a semaphore per caller with max slots each. Zero max means unlimited.
type places struct {
	max    int
	mu     sync.Mutex
	inside map[string]int
}

func newPlaces(limit int) *places { return &places{max: limit, inside: make(map[string]int)} }

// enter reports false if all of the caller's slots are taken; otherwise leave returns the slot.
func (p *places) enter(caller string) (leave func(), ok bool) {
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
