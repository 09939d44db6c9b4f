package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
)

// Notify sends a notice on a core NATS subject. Nothing keeps it: a replica that is disconnected at that moment does not hear it.
func (b *Bus) Notify(_ context.Context, subj string, data []byte) error {
	if err := b.conn.Publish(subj, data); err != nil {
		return fmt.Errorf("sending a notice: %w", apperr.Unreachable("NATS", err))
	}
	return nil
}

// OnNotice calls heard, one call at a time, for every notice on a subject, those of this bus included, until stop is called.
func (b *Bus) OnNotice(subj string, heard func(data []byte)) (stop func(), err error) {
	sub, err := b.conn.Subscribe(subj, func(m *nats.Msg) { heard(m.Data) })
	if err != nil {
		return nil, fmt.Errorf("listening for notices: %w", apperr.Unreachable("NATS", err))
	}
	return func() { _ = sub.Unsubscribe() }, nil // fails only once the connection, and with it the subscription, is closed
}
