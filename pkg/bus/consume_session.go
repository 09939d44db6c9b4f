package bus

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

// sessions calls session again and again until ctx is done, at once where it ends without an error, and else after a pause that grows.
// up closes when the connection is re-established after the session began. name is that of the consumer, for the log.
func (g *group) sessions(ctx context.Context, name string, session func(ctx context.Context, up <-chan struct{}) error) {
	wait := minSessionWait
	for ctx.Err() == nil {
		up, began := g.bus.linkUp.wait(), time.Now()
		err := session(ctx, up)
		if time.Since(began) > maxSessionWait {
			wait = minSessionWait
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		g.report(name, err, wait)
		pauseUntil(ctx, wait, up)
		wait = min(2*wait, maxSessionWait)
	}
}

// report logs why sessions end, once they have ended a few times in a row. The connection itself logs that it was lost.
func (g *group) report(name string, err error, wait time.Duration) {
	if g.bus.conn.IsConnected() && wait == 8*minSessionWait && !g.interrupted.Swap(true) {
		g.bus.log.Warn("consumer is interrupted, retrying until it works", "stream", g.cfg.Stream, "consumer", name, "error", err)
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		g.bus.partitions.forget(g.cfg.Stream)
		g.bus.streams.check()
	}
}

// pauseUntil waits, but not beyond the return of the connection.
func pauseUntil(ctx context.Context, d time.Duration, up <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-up:
	}
}
