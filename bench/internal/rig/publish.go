package rig

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
)

// publishers is the number of events that wait for their acknowledgement at once.
const publishers = 256

// Load is a load of events: event i has the key i modulo Keys. The events of one key are published in order, each after
// the acknowledgement of the one before.
type Load struct {
	Keys  int
	Total int
	Rate  int // per second; 0: as fast as possible
	// Event returns the n-th event of a key, counted from 1, and the time for which it was planned.
	Event func(key, n int, planned time.Time) event.Event
}

// Publish publishes a load, on schedule regardless of its consumers.
func Publish(ctx context.Context, b *bus.Bus, l Load) error {
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	workers := min(publishers, l.Keys)
	for w := range workers {
		group.Go(func() error {
			for n := 0; n*l.Keys < l.Total; n++ {
				for key := w; key < l.Keys; key += workers {
					if err := l.publish(ctx, b, began, key, n); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (l Load) publish(ctx context.Context, b *bus.Bus, began time.Time, key, n int) error {
	i := n*l.Keys + key
	if i >= l.Total {
		return nil
	}
	planned := time.Now()
	if l.Rate > 0 {
		planned = began.Add(time.Duration(i) * time.Second / time.Duration(l.Rate))
		time.Sleep(time.Until(planned))
	}
	return b.Publish(ctx, event.Derived(), l.Event(key, n+1, planned))
}
