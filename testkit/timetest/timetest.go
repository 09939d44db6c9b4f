// Package timetest has a clock for tests, and a poll for states that no event announces.
package timetest

import (
	"sync/atomic"
	"testing"
	"time"
)

// Limit bounds every wait of a test, far above the time that any of them takes.
const Limit = time.Minute

// Until polls until reached returns true. It fails the test after [Limit].
func Until(t testing.TB, what string, reached func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Limit); !reached(); time.Sleep(3 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen in %s: %s", Limit, what)
		}
	}
}

// Await polls get until it returns a value that ok accepts, and returns that value. It fails the test after [Limit].
func Await[V any](t testing.TB, what string, get func() (V, error), ok func(V) bool) V {
	t.Helper()
	for deadline := time.Now().Add(Limit); ; time.Sleep(3 * time.Millisecond) {
		v, err := get()
		if err == nil && ok(v) {
			return v
		}
		if time.Now().After(deadline) {
			t.Fatalf("did not happen in %s: %s; got %+v, %v", Limit, what, v, err)
		}
	}
}

// Clock is a clock that only the test advances. It is safe for concurrent use.
type Clock struct{ at atomic.Pointer[time.Time] }

// NewClock returns a clock that shows at.
func NewClock(at time.Time) *Clock {
	c := &Clock{}
	c.Set(at)
	return c
}

// Set makes the clock show at.
func (c *Clock) Set(at time.Time) { c.at.Store(&at) }

// Advance makes the clock show a time that is later by d.
func (c *Clock) Advance(d time.Duration) { c.Set(c.Now().Add(d)) }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time { return *c.at.Load() }
