package bus

// Sessions of a reader: repeated with growing pauses for as long as the partition is assigned.

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	minSessionWait = 50 * time.Millisecond
	maxSessionWait = 2 * time.Second
)

// sessions calls session until ctx is done: again at once if it returned nil, otherwise after a growing
// delay. up is closed when the connection is re-established after the start of the session. name is the
// consumer's name for the log.
func (g *group) sessions(
	ctx context.Context,
	name string,
	session func(ctx context.Context, up <-chan struct{}) error,
) {
	wait := minSessionWait
	for ctx.Err() == nil {
		up, began := g.bus.connUp.wait(), time.Now()
		err := session(ctx, up)
		if time.Since(began) > maxSessionWait {
			wait = minSessionWait
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		g.logSessionError(name, err, wait)
		pauseUntil(ctx, wait, up)
		wait = min(2*wait, maxSessionWait)
	}
}

// logSessionError logs the error of a session after several consecutive failures. Lost connections are logged
// elsewhere.
func (g *group) logSessionError(name string, err error, wait time.Duration) {
	if g.bus.conn.IsConnected() && wait == 8*minSessionWait && !g.interrupted.Swap(true) {
		g.bus.log.Warn("consumer interrupted, retrying", "stream", g.cfg.Stream, "consumer", name, "error", err)
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		g.bus.partitions.forget(g.cfg.Stream)
		g.bus.streams.check()
	}
}

// pauseUntil waits for d, until the connection is re-established, or until ctx is done.
func pauseUntil(ctx context.Context, d time.Duration, up <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-up:
	}
}
