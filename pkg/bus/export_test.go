package bus

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"
)

// PinnedTTL is the lifetime of a dead reader's pin.
const PinnedTTL = pinnedTTL

// JetStream returns the JetStream context of the bus.
func (b *Bus) JetStream() jetstream.JetStream { return b.js }

// Crash closes the connection without draining, as a crash of the process would.
func (b *Bus) Crash() { b.conn.Close() }

// Waiting returns the number of publishers that wait for an acknowledgement.
func (b *Bus) Waiting() int { return b.acks.waiting() }

// WriteOffsets saves the same offset for each partition.
func (b *Bus) WriteOffsets(ctx context.Context, stream, group string, partitions int, p Offset) error {
	for partition := range partitions {
		if err := b.writeOffset(ctx, stream, group, partition, p); err != nil {
			return err
		}
	}
	return nil
}

// MeasureStreams measures how full the streams are, which happens at intervals otherwise.
func (b *Bus) MeasureStreams(ctx context.Context) error { return b.measureStreams(ctx) }

// AcceptedWithin is Accepted with that bound of the events.
func (b *Bus) AcceptedWithin(ctx context.Context, companyID, messageID string, events int) (Delivery, error) {
	l := acceptedLookup{bus: b, companyID: companyID, messageID: messageID, remaining: events}
	return l.run(ctx)
}
