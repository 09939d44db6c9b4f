package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Hello announces this replica to the running replicas of its service. It returns when the server has the announcement; a disconnected
// replica misses it.
func (b *Bus) Hello(ctx context.Context, service string, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, invalidateTimeout)
	defer cancel()
	err := b.conn.Publish(subject.Hello(service), text)
	if err == nil {
		err = b.conn.FlushWithContext(ctx)
	}
	if err != nil {
		return fmt.Errorf("saying hello: %w", apperr.Unreachable("NATS", err))
	}
	return nil
}

// OnHello calls heard, one call at a time, for every hello of the service's replicas, this one included, until stop is called.
func (b *Bus) OnHello(service string, heard func(text []byte)) (stop func(), err error) {
	sub, err := b.conn.Subscribe(subject.Hello(service), func(m *nats.Msg) { heard(m.Data) })
	if err != nil {
		return nil, fmt.Errorf("listening for replicas: %w", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // fails only once the connection, and with it the subscription, is closed
}
