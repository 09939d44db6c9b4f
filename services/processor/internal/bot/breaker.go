package bot

import (
	"sync"
	"time"
)

const (
	// breakerFailures is the number of consecutive failures that open the breaker.
	breakerFailures = 20
	// While the endpoint keeps failing the breaker stays open for longer each time, from the first bound to the second.
	breakerMinOpen = time.Second
	breakerMaxOpen = 30 * time.Second
)

// breaker is a circuit breaker for an endpoint that does not answer. It opens after consecutive failures. When the open time has
// passed it admits one call a second, and closes when one succeeds; a hanging call does not block the next probe. An endpoint may
// also request a pause (Retry-After), which applies to all calls. It is safe for concurrent use.
type breaker struct {
	mu       sync.Mutex
	failures int           // consecutive
	until    time.Time     // open until then; zero: closed
	open     time.Duration // duration of the last open state
	probed   time.Time     // when the running probe was admitted; zero: none is running
}

// admit returns 0 if a call may be made, else the time to wait before asking again. Each admitted call ends with report.
func (b *breaker) admit(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.until.IsZero():
		return 0
	case now.Before(b.until):
		return b.until.Sub(now)
	case now.Sub(b.probed) < breakerMinOpen:
		return breakerMinOpen / 2
	}
	b.probed = now
	return 0
}

// report records the result of a call: whether the endpoint answered, and its Retry-After (0: none).
func (b *breaker) report(now time.Time, answered bool, pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probed = time.Time{}
	switch {
	case pause > 0:
		b.extend(now.Add(pause))
	case answered:
		b.failures, b.until, b.open = 0, b.paused(now), 0
	default:
		if b.failures++; b.failures >= breakerFailures && !now.Before(b.until) {
			b.open = min(max(breakerMinOpen, 2*b.open), breakerMaxOpen)
			b.extend(now.Add(b.open))
		}
	}
}

// paused returns the end of a requested pause, which a successful call does not end: calls that began before the pause may end during
// it. It is called with the lock held.
func (b *breaker) paused(now time.Time) time.Time {
	if now.Before(b.until) && b.failures < breakerFailures {
		return b.until
	}
	return time.Time{}
}

// extend is called with the lock held.
func (b *breaker) extend(until time.Time) {
	if until.After(b.until) {
		b.until = until
	}
}

// isOpen reports whether calls are refused.
func (b *breaker) isOpen(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Before(b.until)
}
