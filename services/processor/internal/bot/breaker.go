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
	// maxRetryAfter bounds a requested pause: afterwards one call asks whether it still holds.
	maxRetryAfter = 5 * time.Minute
)

// breakers holds a breaker for each application and server: an application that its server refuses, or whose calls
// fail, does not silence the others. It is safe for concurrent use.
type breakers struct {
	mu     sync.Mutex
	byName map[string]*breaker // by [target.breaker], without those in the initial state
}

// admit returns 0 if a call may be made, else the time to wait before asking again. Each
// call that is made ends with report.
func (b *breakers) admit(name string, now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.byName[name]; known != nil {
		return known.admit(now)
	}
	return 0
}

// report records the result of a call: whether the server answered, and its Retry-After (0: none).
func (b *breakers) report(name string, now time.Time, answered bool, pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.byName[name]
	if known == nil {
		known = &breaker{}
	}
	known.report(now, answered, pause)
	if *known == (breaker{}) {
		delete(b.byName, name)
		return
	}
	if b.byName == nil {
		b.byName = map[string]*breaker{}
	}
	b.byName[name] = known
}

// open returns the number of breakers that refuse calls.
func (b *breakers) open(now time.Time) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, known := range b.byName {
		if known.isOpen(now) {
			n++
		}
	}
	return n
}

// breaker is a circuit breaker for a server that does not answer an application. It opens after consecutive
// failures, timeouts included. When the open time has passed it admits one call a second, and closes when one
// succeeds; a hanging call does not block the next probe. A server may also request a pause (Retry-After),
// which applies to all calls.
type breaker struct {
	failures int           // consecutive
	until    time.Time     // open until then; zero: closed
	open     time.Duration // duration of the last open state
	probed   time.Time     // when the running probe was admitted; zero: none is running
}

func (b *breaker) admit(now time.Time) (wait time.Duration) {
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

func (b *breaker) report(now time.Time, answered bool, pause time.Duration) {
	b.probed = time.Time{}
	switch {
	case pause > 0:
		b.extend(now.Add(pause))
	case answered:
		b.until = b.paused(now) // before failures is reset, which it reads
		b.failures = 0
		b.open = 0
	default:
		b.failures++
		if b.failures >= breakerFailures && !now.Before(b.until) {
			b.open = min(max(breakerMinOpen, 2*b.open), breakerMaxOpen)
			b.extend(now.Add(b.open))
		}
	}
}

// paused returns the end of a requested pause, which a successful call does not end: calls that began before
// the pause may end during it.
func (b *breaker) paused(now time.Time) time.Time {
	if now.Before(b.until) && b.failures < breakerFailures {
		return b.until
	}
	return time.Time{}
}

func (b *breaker) extend(until time.Time) {
	if until.After(b.until) {
		b.until = until
	}
}

// isOpen reports whether calls are refused.
func (b *breaker) isOpen(now time.Time) bool {
	return now.Before(b.until)
}
