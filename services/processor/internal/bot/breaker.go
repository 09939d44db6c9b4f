package bot

import (
	"sync"
	"time"
)

const (
	// breakerFailures is how many calls in a row fail before the breaker opens.
	breakerFailures = 20
	// While the endpoint stays away the breaker stays open for longer each time, from the first bound to the second.
	breakerMinOpen = time.Second
	breakerMaxOpen = 30 * time.Second
)

// breaker keeps calls from an endpoint that does not answer (circuit breaker). It opens when many calls in a row have failed. When
// its time has passed it lets one call through a second, and closes when one succeeds; a call that hangs keeps no other from trying. An
// endpoint may also ask for a pause itself (Retry-After); then all calls wait. It is safe for concurrent use.
type breaker struct {
	mu       sync.Mutex
	failures int           // in a row
	until    time.Time     // open until then; zero: closed
	open     time.Duration // for how long it was open the last time
	probed   time.Time     // when a call was let through that has not ended; zero: there is none
}

// admit returns 0 where a call may be made, else the time to wait before asking again. Each call that is admitted ends with report.
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

// paused returns until when the breaker stays open although a call was answered: other calls, which began earlier, end while it is
// open. It is called with the lock held.
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

// isOpen reports whether calls are kept back.
func (b *breaker) isOpen(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Before(b.until)
}
