package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Hello announces this replica to the running replicas of its service. It returns after the server has
// received the announcement; disconnected replicas miss it.
func (b *Bus) Hello(ctx context.Context, service string, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, invalidateTimeout)
	defer cancel()
	err := b.conn.Publish(subject.Hello(service), text)
	if err == nil {
		err = b.conn.FlushWithContext(ctx)
	}
	if err != nil {
		return fmt.Errorf("announcing the replica: %w", apperr.Unreachable("NATS", err))
	}
	return nil
}

// OnHello calls handle sequentially for every announcement of the service's replicas, including this one,
// until stop is called.
func (b *Bus) OnHello(service string, handle func(text []byte)) (stop func(), err error) {
	sub, err := b.conn.Subscribe(subject.Hello(service), func(m *nats.Msg) { handle(m.Data) })
	if err != nil {
		return nil, fmt.Errorf("subscribing to announcements: %w", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // fails only if the connection, and with it the subscription, is closed
}
