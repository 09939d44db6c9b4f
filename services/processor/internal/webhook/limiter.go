package webhook

import (
	"sync"
	"time"
)

const (
	// breakerFailures is how many attempts in a row fail before a lane opens its circuit.
	breakerFailures = 5
	// While an endpoint goes on failing its lane is paused for longer each time, from the first bound to the second.
	minPause, maxPause = time.Second, time.Minute
)

// lane is what one endpoint gets of the requests that run at once (an adaptive limit and a circuit breaker). An endpoint that is
// overloaded, or does not answer, gets fewer at a time and pauses; each success gives it one more. After failures in a row the circuit
// opens; when the pause is over, one request probes the endpoint (half-open), and a success closes the circuit.
//
// It is state of one process: each processor learns how an endpoint is.
type lane struct {
	running     int
	limit       int // of running; at least 1
	failures    int // in a row
	pause       time.Duration
	pausedUntil time.Time
	backlog     bool // deliveries of the endpoint were left in the store
}

// capacity is how many more requests may run at now.
func (l *lane) capacity(now time.Time) int {
	limit := l.limit
	switch {
	case now.Before(l.pausedUntil):
		return 0
	case l.failures >= breakerFailures:
		limit = 1
	}
	return limit - l.running
}

func (l *lane) succeeded(most int) {
	l.failures, l.pause, l.pausedUntil = 0, 0, time.Time{}
	l.limit = min(l.limit+1, most)
}

// failed records a failed attempt with its result.
func (l *lane) failed(now time.Time, r result) {
	l.failures++
	if r.overloaded() || r.noAnswer {
		l.limit = max(1, l.limit/2)
	}
	if !r.overloaded() && l.failures < breakerFailures || now.Before(l.pausedUntil) && r.retryAfter == 0 {
		return // or a request that began before the pause
	}
	l.pause = min(max(minPause, 2*l.pause), maxPause)
	if until := now.Add(max(l.pause, r.retryAfter)); until.After(l.pausedUntil) {
		l.pausedUntil = until
	}
}

// lanes are those of all endpoints. It is safe for concurrent use.
type lanes struct {
	most int // of one endpoint
	mu   sync.Mutex
	of   map[string]*lane
}

func newLanes(most int) *lanes { return &lanes{most: most, of: map[string]*lane{}} }

// lane returns the endpoint's lane. It is called with the lock held.
func (l *lanes) lane(endpointID string) *lane {
	found := l.of[endpointID]
	if found == nil {
		found = &lane{limit: l.most}
		l.of[endpointID] = found
	}
	return found
}

// reserve takes a slot until release, and reports false if none is free. Deliveries then wait in the store.
func (l *lanes) reserve(endpointID string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	lane := l.lane(endpointID)
	if lane.capacity(now) <= 0 {
		lane.backlog = true
		return false
	}
	lane.running++
	return true
}

// release gives a place back; backlog says that deliveries of the endpoint wait in the store.
func (l *lanes) release(endpointID string) (backlog bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lane := l.lane(endpointID)
	lane.running--
	backlog, lane.backlog = lane.backlog, false
	if lane.running == 0 && lane.failures == 0 && lane.limit == l.most {
		delete(l.of, endpointID) // it is as new
	}
	return backlog
}

// report records the result of an attempt.
func (l *lanes) report(endpointID string, now time.Time, r result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.succeeded() {
		l.lane(endpointID).succeeded(l.most)
	} else {
		l.lane(endpointID).failed(now, r)
	}
}

// full lists the endpoints that can take nothing at now.
func (l *lanes) full(now time.Time) (endpoints []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, lane := range l.of {
		if lane.capacity(now) <= 0 {
			endpoints = append(endpoints, id)
		}
	}
	return endpoints
}
