package bus

import (
	"testing"
	"time"
)

// The estimate takes the best answers, follows a server whose clock is set, and no step of this machine's clock.
func TestClock(t *testing.T) {
	t.Parallel()
	now := time.Now() // with a monotonic reading
	c := clock{now: func() time.Time { return now }}
	server := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	elapse := func(d time.Duration) {
		now = now.Add(d)
		server = server.Add(d)
	}
	ask := func(there, back time.Duration) {
		sent := now
		elapse(there)
		answer := server
		elapse(back)
		c.learn(sent, now, answer)
	}
	within := func(what string, limit time.Duration) {
		t.Helper()
		if off := c.read().Sub(server).Abs(); off > limit {
			t.Errorf("%s: got an error of %v, want at most %v", what, off, limit)
		}
	}
	if got := c.read(); !got.Equal(now) {
		t.Errorf("before an answer: got %v, want the machine's clock, %v", got, now)
	}
	ask(30*time.Millisecond, 10*time.Millisecond)
	within("after a slow answer", 20*time.Millisecond)
	ask(0, 30*time.Millisecond)
	within("after one that was slow on the way back", 6*time.Millisecond) // half of the fast ways there and back
	ask(100*time.Microsecond, 50*time.Microsecond)
	within("after a fast one", 75*time.Microsecond)
	ask(40*time.Millisecond, 0)
	within("a slow one that contradicts nothing", 100*time.Microsecond)
	elapse(time.Minute)
	within("a minute later", 150*time.Microsecond)

	server = server.Add(-3 * time.Second)
	ask(2*time.Millisecond, 2*time.Millisecond)
	within("after the server's clock was set", 2*time.Millisecond)
}
