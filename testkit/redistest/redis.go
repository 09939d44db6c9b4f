// Package redistest is an in-memory Redis for tests. No binary links it.
package redistest

import (
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// redisTick is how often the embedded Redis looks at the clock. Its keys expire up to that much late.
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

// passTime lets keys expire: the engine was made for tests and has no clock of its own.
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

// URL is where clients connect.
func (r *Redis) URL() string { return "redis://" + r.server.Addr() }

// Advance lets keys expire as after that time.
func (r *Redis) Advance(d time.Duration) { r.server.FastForward(d) }

// Stop ends the server and closes its connections. It may be called more than once.
func (r *Redis) Stop() {
	r.stop.Do(func() {
		close(r.done)
		<-r.gone
		r.server.Close()
	})
}
