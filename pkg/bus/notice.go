package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
)

// Notify publishes a notice on a core NATS subject. Disconnected replicas miss it.
func (b *Bus) Notify(_ context.Context, subj string, data []byte) error {
	if err := b.conn.Publish(subj, data); err != nil {
		return fmt.Errorf("sending a notice: %w", apperr.Unreachable("NATS", err))
	}
	return nil
}

// OnNotice calls handle sequentially for every notice on a subject, including those of this bus, until stop is called.
func (b *Bus) OnNotice(subj string, handle func(data []byte)) (stop func(), err error) {
	sub, err := b.conn.Subscribe(subj, func(m *nats.Msg) { handle(m.Data) })
	if err != nil {
		return nil, fmt.Errorf("subscribing to notices: %w", apperr.Unreachable("NATS", err))
	}
	return func() { _ = sub.Unsubscribe() }, nil // fails only if the connection, and with it the subscription, is closed
}
