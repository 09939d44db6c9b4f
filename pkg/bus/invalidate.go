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

// Invalidate makes all processes, including this one, drop the cache entry of kind and key. It returns after
// the server has received the message. Disconnected processes miss it and rely on the short TTL of cache
// entries.
func (b *Bus) Invalidate(ctx context.Context, kind, key string) error {
	if !subject.Valid(kind) || !subject.Valid(key) {
		return apperr.InvalidEvent.New().
			Wrap(fmt.Errorf("invalidating %q %q: not valid subject tokens", kind, key))
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

// OnInvalidate calls forget sequentially for every invalidation until stop is called. The subscription
// survives reconnects and can be created while NATS is disconnected.
func (b *Bus) OnInvalidate(forget func(kind, key string)) (stop func(), err error) {
	sub, err := b.conn.Subscribe(subject.AllInvalidations, func(m *nats.Msg) {
		if kind, key, ok := subject.ParseInvalidation(m.Subject); ok {
			forget(kind, key)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("subscribing to invalidations: %w", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // fails only if the connection, and with it the subscription, is closed
}
