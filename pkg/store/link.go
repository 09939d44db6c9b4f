package store

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
)

// link knows from the driver's monitoring whether a server that can take writes is in reach, so that callers do not each
// wait for server selection while MongoDB is away. It is safe for concurrent use.
type link struct {
	log      *slog.Logger
	patience time.Duration

	mu        sync.Mutex
	reachable bool
	announced bool      // that it is away has been logged
	since     time.Time // since when it is not reachable
}

func newLink(log *slog.Logger, patience time.Duration) *link {
	return &link{log: log, patience: patience, since: time.Now()}
}

// check fails when MongoDB has been away for longer than our patience; until then an election or a restart may still end
// well within the driver's own wait.
func (l *link) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if away := time.Since(l.since); !l.reachable && away > l.patience {
		return fmt.Errorf("%w for %s", errAway, away.Round(time.Second))
	}
	return nil
}

func (l *link) topologyChanged(e *event.TopologyDescriptionChangedEvent) {
	reachable := false
	for _, server := range e.NewDescription.Servers {
		reachable = reachable || takesWrites(server.Kind)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if reachable && !l.reachable {
		l.announced = false
		l.log.Info("MongoDB is there")
	}
	if !reachable && l.reachable {
		l.since = time.Now()
	}
	l.reachable = reachable
}

// heartbeatFailed says once per outage why MongoDB cannot be reached.
func (l *link) heartbeatFailed(e *event.ServerHeartbeatFailedEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reachable || l.announced {
		return
	}
	l.announced = true
	l.log.Warn("MongoDB is away; trying again until it is there", "error", e.Failure)
}

// takesWrites reads the kinds of servers as the driver names them.
func takesWrites(kind string) bool {
	switch kind {
	case "Standalone", "RSPrimary", "Mongos", "LoadBalancer":
		return true
	}
	return false
}
