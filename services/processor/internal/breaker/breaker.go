// Package breaker keeps calls from servers that do not answer, or that ask for a pause.
package breaker

import (
	"sync"
	"time"
)

// While a server keeps failing its breaker stays open for longer each time, from minOpen to maxOpen.
const (
	minOpen = time.Second
	maxOpen = 30 * time.Second
)

// Set holds circuit breakers by name, such as that of an application and its server: an application whose calls fail
// does not silence the others. It is safe for concurrent use.
type Set struct {
	Failures int // consecutive ones that open a breaker

	mu     sync.Mutex
	byName map[string]*breaker // without those in the initial state
}

// Admit returns 0 if a call may be made, else the time to wait before asking again. Each call that is made ends with
// [Set.Report].
func (s *Set) Admit(name string, now time.Time) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.byName[name]; known != nil {
		return known.admit(now)
	}
	return 0
}

// Report records the result of a call: whether the server has answered, and the pause that it asked for (Retry-After);
// 0: none.
func (s *Set) Report(name string, now time.Time, answered bool, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.byName[name]
	if known == nil {
		known = &breaker{}
	}
	known.report(now, answered, pause, s.Failures)
	if *known == (breaker{}) {
		delete(s.byName, name)
		return
	}
	if s.byName == nil {
		s.byName = map[string]*breaker{}
	}
	s.byName[name] = known
}

// Open returns the number of breakers that refuse calls.
func (s *Set) Open(now time.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.byName {
		if now.Before(known.until) {
			n++
		}
	}
	return n
}

// breaker opens after consecutive failures, timeouts included. When the open time has passed it admits one call a
// second, and closes when one succeeds; a hanging call does not block the next probe. A server may also request a pause
// (Retry-After), which applies to all calls.
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
	case now.Sub(b.probed) < minOpen:
		return minOpen / 2
	}
	b.probed = now
	return 0
}

func (b *breaker) report(now time.Time, answered bool, pause time.Duration, most int) {
	b.probed = time.Time{}
	switch {
	case pause > 0:
		b.extend(now.Add(pause))
	case answered:
		if b.failures >= most || !now.Before(b.until) {
			b.until = time.Time{}
		} // else a call that began before a pause has ended in it
		b.failures = 0
		b.open = 0
	default:
		b.failures++
		if b.failures >= most && !now.Before(b.until) {
			b.open = min(max(minOpen, 2*b.open), maxOpen)
			b.extend(now.Add(b.open))
		}
	}
}

func (b *breaker) extend(until time.Time) {
	if until.After(b.until) {
		b.until = until
	}
}
