package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/embedded"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/store"
)

const (
	// readyLimit bounds the wait for readiness, readyPoll is the interval of its checks.
	readyLimit = 30 * time.Second
	readyPoll  = 20 * time.Millisecond
)

// probes check the engines over the same connections as the services.
type probes struct {
	nats  *embedded.NATS
	bus   *bus.Bus
	store store.Store
}

func newProbes(nats *embedded.NATS, s store.Store, log *slog.Logger) (*probes, error) {
	b, err := bus.Open(bus.Config{URL: nats.URL(), Name: "standalone", Logger: log})
	if err != nil {
		return nil, err
	}
	return &probes{nats: nats, bus: b, store: s}, nil
}

// Checks returns the checks of /readyz.
func (p *probes) Checks() []ops.Check {
	return []ops.Check{{Name: "nats", Check: p.checkNATS}, {Name: "store", Check: p.store.Ready}}
}

// checkNATS also detects a stream that cannot be written and has had no publishes since.
func (p *probes) checkNATS(ctx context.Context) error {
	if err := p.nats.Writable(); err != nil {
		return apperr.Unreachable("NATS", err)
	}
	return p.bus.Ready(ctx)
}

// Await returns nil when every check has passed. It polls: services find their streams in the background,
// without an event.
func (p *probes) Await(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, errors.New("not ready in time"))
	defer cancel()
	for _, c := range p.Checks() {
		for {
			err := c.Check(ctx)
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("waiting for %s: %w (%w)", c.Name, context.Cause(ctx), err)
			case <-time.After(readyPoll):
			}
		}
	}
	return nil
}

// Close closes the connection.
func (p *probes) Close() { p.bus.Close() }
