package fetch

import (
	"context"
	"sync"
	"time"
)

const (
	// hostPause is the time between the beginnings of two requests to one host.
	hostPause = time.Second
	// maxHosts bounds the hosts that are remembered. Those whose pause is over are forgotten.
	maxHosts = 1000
)

// turns gives requests to one host their times. It is safe for concurrent use.
type turns struct {
	pause time.Duration

	mu   sync.Mutex
	next map[string]time.Time // by host: when a request may begin
}

func newTurns(pause time.Duration) *turns { return &turns{pause: pause, next: map[string]time.Time{}} }

// wait returns when a request to the host may begin, or when ctx is done.
func (t *turns) wait(ctx context.Context, host string) error {
	timer := time.NewTimer(time.Until(t.take(host, time.Now())))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// take returns the time of the next request to a host, and reserves it.
func (t *turns) take(host string, now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.next) >= maxHosts {
		for other, at := range t.next {
			if !at.After(now) {
				delete(t.next, other)
			}
		}
	}
	at := now
	if next := t.next[host]; next.After(now) {
		at = next
	}
	t.next[host] = at.Add(t.pause)
	return at
}
