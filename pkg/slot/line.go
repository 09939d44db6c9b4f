package slot

import (
	"context"
	"time"
)

// Line bounds the callers that wait for the slots of a pool. Each costs its connection, and is compared with all others
// for each slot that becomes free.
type Line struct {
	Pool   *Pool
	Places *Pool // of the callers that wait
}

// Acquire is [Pool.AcquireUnits]. A caller that must wait takes one of the places meanwhile, in the name of its
// places' shares; without one it gets a [*FullError] at once.
func (l Line) Acquire(
	ctx context.Context, units int64, atMost time.Duration, shares, places []Share,
) (*Slot, error) {
	s, err := l.Pool.AcquireUnits(ctx, units, 0, shares...)
	if err == nil {
		return s, nil
	}
	place, err := l.Places.Acquire(ctx, 0, places...)
	if err != nil {
		return nil, err
	}
	defer place.Release()
	return l.Pool.AcquireUnits(ctx, units, atMost, shares...)
}
