package webhook

import (
	"sync"
	"time"

	"github.com/parley-chat/parley/services/processor/internal/fairshare"
)

const (
	// breakerFailures is the number of consecutive failures that open the circuit.
	breakerFailures = 5
	// While an endpoint keeps failing its limiter is paused for longer each time, from the first bound to the second.
	minPause, maxPause = time.Second, time.Minute
	// forgetAfter is how long the limiter of an endpoint without attempts is kept. By then its last pause is
	// long over; the endpoint may have been deleted.
	forgetAfter = time.Hour
)

// limiter limits the concurrent requests of one endpoint (an adaptive limit and a circuit breaker). An
// endpoint that is overloaded or does not answer gets fewer at a time and a pause; each success adds one.
// Consecutive failures open the circuit; after the pause, one request probes the endpoint (half-open), and a
// success closes the circuit.
//
// The state is local: each processor learns the health of an endpoint itself.
type limiter struct {
	running     int
	limit       int // of running; at least 1
	failures    int // consecutive
	pause       time.Duration
	pausedUntil time.Time
	triedAt     time.Time // the last result
	backlog     bool      // deliveries of the endpoint were left in the store
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

func (l *limiter) succeeded(maxLimit int) {
	l.failures = 0
	l.pause = 0
	l.pausedUntil = time.Time{}
	l.limit = min(l.limit+1, maxLimit)
}

// failed records a failed attempt with its result.
func (l *limiter) failed(now time.Time, r result) {
	l.failures++
	if r.overloaded() || r.noAnswer {
		l.limit = max(1, l.limit/2)
	}
	if !r.overloaded() && l.failures < breakerFailures {
		return
	}
	if now.Before(l.pausedUntil) && r.retryAfter == 0 {
		return // the request began before the pause
	}
	l.pause = min(max(minPause, 2*l.pause), maxPause)
	if until := now.Add(max(l.pause, r.retryAfter)); until.After(l.pausedUntil) {
		l.pausedUntil = until
	}
}

// limiters holds the limiters of all endpoints, and the slots that companies share. It is safe for concurrent use.
type limiters struct {
	maxLimit int             // of one endpoint
	slots    *fairshare.Pool // one per concurrent request, by company

	mu      sync.Mutex
	of      map[string]*limiter // by endpoint
	backlog bool                // deliveries were left in the store for want of a slot
}

func newLimiters(concurrent, perEndpoint int) *limiters {
	return &limiters{maxLimit: perEndpoint, slots: fairshare.New(concurrent), of: map[string]*limiter{}}
}

// limiter returns the endpoint's limiter. It is called with the lock held.
func (l *limiters) limiter(endpointID string) *limiter {
	found := l.of[endpointID]
	if found == nil {
		found = &limiter{limit: l.maxLimit}
		l.of[endpointID] = found
	}
	return found
}

// reserve takes a slot of the company and its endpoint until release. It reports false if the endpoint or the
// company has its share: the delivery then waits in the store.
func (l *limiters) reserve(companyID, endpointID string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.limiter(endpointID)
	if limiter.capacity(now) <= 0 {
		limiter.backlog = true
		return false
	}
	if !l.slots.Take(companyID) {
		l.backlog = true
		return false
	}
	limiter.running++
	return true
}

// room returns how many deliveries of the company may start, and how many have started.
func (l *limiters) room(companyID string) (free, started int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	free = l.slots.Room(companyID)
	l.backlog = l.backlog || free == 0
	return free, l.slots.Held(companyID)
}

// release returns a slot; backlog means that deliveries that may use it wait in the store.
func (l *limiters) release(companyID, endpointID string) (backlog bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slots.Release(companyID)
	limiter := l.limiter(endpointID)
	limiter.running--
	backlog = limiter.backlog || l.backlog
	limiter.backlog = false
	l.backlog = false
	if limiter.running == 0 && limiter.failures == 0 && limiter.limit == l.maxLimit {
		delete(l.of, endpointID) // same state as a new one
	}
	return backlog
}

// report records the result of an attempt.
func (l *limiters) report(endpointID string, now time.Time, r result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.limiter(endpointID)
	limiter.triedAt = now
	if r.succeeded() {
		limiter.succeeded(l.maxLimit)
	} else {
		limiter.failed(now, r)
	}
}

// forget removes the limiters of endpoints that have failed and had no attempt for forgetAfter, such as those
// of deleted endpoints. Healthy ones are removed by release.
func (l *limiters) forget(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, limiter := range l.of {
		if limiter.running == 0 && !now.Before(limiter.pausedUntil) && now.Sub(limiter.triedAt) >= forgetAfter {
			delete(l.of, id)
		}
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
