package bus

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"
)

// JetStream is the connection's own, so that a test sees what the bus sees.
func (b *Bus) JetStream() jetstream.JetStream { return b.js }

// Crash breaks the connection off for good, as the end of the process would: nothing is drained, given back or said.
func (b *Bus) Crash() { b.conn.Close() }

// Waiting is how many publishers wait for an acknowledgement.
func (b *Bus) Waiting() int { return b.acks.waiting() }

// WritePositions writes the same position for each of so many partitions.
func (b *Bus) WritePositions(ctx context.Context, stream, group string, partitions int, p Position) error {
	for partition := range partitions {
		if err := b.writePosition(ctx, stream, group, partition, p); err != nil {
			return err
		}
	}
	return nil
}
