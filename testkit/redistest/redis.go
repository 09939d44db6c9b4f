// Package redistest is an in-memory Redis for tests. No binary links it.
package redistest

import (
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// redisTick is the clock's resolution of the embedded Redis. Its keys expire up to that much late.
const redisTick = 100 * time.Millisecond

// Redis is an in-memory Redis server in this process.
type Redis struct {
	server *miniredis.Miniredis
	stop   sync.Once
	done   chan struct{}
	gone   chan struct{}
}

// Start starts a server on addr (host:port; port 0 takes a free one).
func Start(addr string) (*Redis, error) {
	s := miniredis.NewMiniRedis()
	if err := s.StartAddr(addr); err != nil {
		return nil, fmt.Errorf("starting the in-memory Redis on %s: %w", addr, err)
	}
	r := &Redis{server: s, done: make(chan struct{}), gone: make(chan struct{})}
	go r.passTime()
	return r, nil
}

// passTime advances the engine's time, so that keys expire: the engine has no clock of its own.
func (r *Redis) passTime() {
	defer close(r.gone)
	tick := time.NewTicker(redisTick)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-r.done:
			return
		case <-tick.C:
			now := time.Now()
			r.server.FastForward(now.Sub(last))
			last = now
		}
	}
}

// URL returns the URL for clients.
func (r *Redis) URL() string { return "redis://" + r.server.Addr() }

// Advance expires keys as if that time had passed.
func (r *Redis) Advance(d time.Duration) { r.server.FastForward(d) }

// Stop ends the server and closes its connections. It may be called repeatedly.
func (r *Redis) Stop() {
	r.stop.Do(func() {
		close(r.done)
		<-r.gone
		r.server.Close()
	})
}
