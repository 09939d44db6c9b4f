package mongodb

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
)

// connState tracks, from the driver's monitoring events, whether a writable server is reachable, so that callers do not
// each wait for server selection during an outage. It is safe for concurrent use.
type connState struct {
	log   *slog.Logger
	grace time.Duration

	mu        sync.Mutex
	reachable bool
	logged    bool      // this outage has been logged
	since     time.Time // start of the current or last outage
}

func newConnState(log *slog.Logger, grace time.Duration) *connState {
	return &connState{log: log, grace: grace, since: time.Now()}
}

// check fails if no server has been reachable for longer than the grace period. Until then, an election or a restart
// may still complete within the driver's own wait.
func (c *connState) check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if outage := time.Since(c.since); !c.reachable && outage > c.grace {
		return fmt.Errorf("%w for %s", errUnreachable, outage.Round(time.Second))
	}
	return nil
}

func (c *connState) topologyChanged(e *event.TopologyDescriptionChangedEvent) {
	reachable := false
	for _, server := range e.NewDescription.Servers {
		reachable = reachable || takesWrites(server.Kind)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if reachable && !c.reachable {
		c.logged = false
		c.log.Info("MongoDB connected")
	}
	if !reachable && c.reachable {
		c.since = time.Now()
	}
	c.reachable = reachable
}

// heartbeatFailed logs once per outage why MongoDB is unreachable.
func (c *connState) heartbeatFailed(e *event.ServerHeartbeatFailedEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reachable || c.logged {
		return
	}
	c.logged = true
	c.log.Warn("MongoDB unreachable; reconnecting", "error", e.Failure)
}

// takesWrites reports whether servers of a kind, in the driver's terms, accept writes.
func takesWrites(kind string) bool {
	switch kind {
	case "Standalone", "RSPrimary", "Mongos", "LoadBalancer":
		return true
	}
	return false
}
