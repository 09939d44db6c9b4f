package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

const invalidateTimeout = 2 * time.Second

// Invalidate makes all buses, this one included, drop the cached entry of kind and key. It returns when the server has the message. A
// disconnected process misses it and relies on the short lifetime of its cache entries.
func (b *Bus) Invalidate(ctx context.Context, kind, key string) error {
	if !subject.Valid(kind) || !subject.Valid(key) {
		return apperr.InvalidEvent.New().
			Wrap(fmt.Errorf("invalidating %q %q: not tokens of a subject", kind, key))
	}
	ctx, cancel := context.WithTimeout(ctx, invalidateTimeout)
	defer cancel()
	err := b.conn.Publish(subject.Invalidation(kind, key), nil)
	if err == nil {
		err = b.conn.FlushWithContext(ctx)
	}
	if err != nil {
		return fmt.Errorf("invalidating %s: %w", kind, apperr.Unreachable("NATS", err))
	}
	return nil
}

// OnInvalidate calls forget, one call at a time, for every invalidation until stop is called. It may be called while NATS is
// not connected, and survives reconnects.
func (b *Bus) OnInvalidate(forget func(kind, key string)) (stop func(), err error) {
	sub, err := b.conn.Subscribe(subject.AllInvalidations, func(m *nats.Msg) {
		if kind, key, ok := subject.ParseInvalidation(m.Subject); ok {
			forget(kind, key)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listening for invalidations: %w", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // fails only once the connection, and with it the subscription, is closed
}
