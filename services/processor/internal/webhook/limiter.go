package webhook

import (
	"sync"
	"time"
)

const (
	// breakerFailures is the number of consecutive failures that open the circuit.
	breakerFailures = 5
	// While an endpoint keeps failing its limiter is paused for longer each time, from the first bound to the second.
	minPause, maxPause = time.Second, time.Minute
)

// limiter limits the concurrent requests of one endpoint (an adaptive limit and a circuit breaker). An endpoint that is overloaded
// or does not answer gets fewer at a time and a pause; each success adds one. Consecutive failures open the circuit; after the
// pause, one request probes the endpoint (half-open), and a success closes the circuit.
//
// The state is local: each processor learns the health of an endpoint itself.
type limiter struct {
	running     int
	limit       int // of running; at least 1
	failures    int // consecutive
	pause       time.Duration
	pausedUntil time.Time
	backlog     bool // deliveries of the endpoint were left in the store
}

// capacity returns how many more requests may start at now.
func (l *limiter) capacity(now time.Time) int {
	limit := l.limit
	switch {
	case now.Before(l.pausedUntil):
		return 0
	case l.failures >= breakerFailures:
		limit = 1
	}
	return limit - l.running
}

func (l *limiter) succeeded(most int) {
	l.failures, l.pause, l.pausedUntil = 0, 0, time.Time{}
	l.limit = min(l.limit+1, most)
}

// failed records a failed attempt with its result.
func (l *limiter) failed(now time.Time, r result) {
	l.failures++
	if r.overloaded() || r.noAnswer {
		l.limit = max(1, l.limit/2)
	}
	if !r.overloaded() && l.failures < breakerFailures || now.Before(l.pausedUntil) && r.retryAfter == 0 {
		return // or the request began before the pause
	}
	l.pause = min(max(minPause, 2*l.pause), maxPause)
	if until := now.Add(max(l.pause, r.retryAfter)); until.After(l.pausedUntil) {
		l.pausedUntil = until
	}
}

// limiters holds the limiters of all endpoints. It is safe for concurrent use.
type limiters struct {
	most int // limit of one endpoint
	mu   sync.Mutex
	of   map[string]*limiter
}

func newLimiters(most int) *limiters { return &limiters{most: most, of: map[string]*limiter{}} }

// limiter returns the endpoint's limiter. It is called with the lock held.
func (l *limiters) limiter(endpointID string) *limiter {
	found := l.of[endpointID]
	if found == nil {
		found = &limiter{limit: l.most}
		l.of[endpointID] = found
	}
	return found
}

// reserve takes a slot until release, and reports false if none is free. Deliveries then wait in the store.
func (l *limiters) reserve(endpointID string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.limiter(endpointID)
	if limiter.capacity(now) <= 0 {
		limiter.backlog = true
		return false
	}
	limiter.running++
	return true
}

// release returns a slot; backlog means that deliveries of the endpoint wait in the store.
func (l *limiters) release(endpointID string) (backlog bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.limiter(endpointID)
	limiter.running--
	backlog, limiter.backlog = limiter.backlog, false
	if limiter.running == 0 && limiter.failures == 0 && limiter.limit == l.most {
		delete(l.of, endpointID) // same state as a new one
	}
	return backlog
}

// report records the result of an attempt.
func (l *limiters) report(endpointID string, now time.Time, r result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.succeeded() {
		l.limiter(endpointID).succeeded(l.most)
	} else {
		l.limiter(endpointID).failed(now, r)
	}
}

// full lists the endpoints without a free slot at now.
func (l *limiters) full(now time.Time) (endpoints []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, limiter := range l.of {
		if limiter.capacity(now) <= 0 {
			endpoints = append(endpoints, id)
		}
	}
	return endpoints
}
