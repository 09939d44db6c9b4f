package bus

// The last message on a subject, by a direct get.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// lastTimeout limits [Bus.Last].
const lastTimeout = 2 * time.Second

// Last returns the last message on a published subject, with its payload and the time at which the stream
// stored it. Errors: NotFound, and Unavailable while NATS is disconnected. The response may come from a
// replica that lacks the newest messages (JetStream direct get).
func (b *Bus) Last(ctx context.Context, stream, subj string) (Delivery, error) {
	if !b.conn.IsConnected() {
		return Delivery{}, apperr.Unreachable("NATS", nats.ErrConnectionClosed)
	}
	ctx, cancel := context.WithTimeout(ctx, lastTimeout)
	defer cancel()
	stored, err := b.Stored(ctx, stream, subj)
	if err != nil {
		return Delivery{}, err
	}
	m, err := b.getDirect(ctx, stream+"."+stored, nil)
	if err != nil {
		return Delivery{}, err
	}
	d, err := directDelivery(stream, m)
	if err != nil {
		return Delivery{}, fmt.Errorf("decoding the last message of %s: %w", stream, err)
	}
	return d, nil
}

// StoredAt returns when its stream stored the last event on its subject; the zero time if that is another event, or a
// replica answers that lacks it. Errors are those of [Bus.Last].
func (b *Bus) StoredAt(ctx context.Context, e event.Event) (time.Time, error) {
	d, err := b.Last(ctx, subject.StreamOf(e.Subject()), e.Subject())
	if err != nil || d.ID != e.EventID() {
		return time.Time{}, err
	}
	return d.Time, nil
}

// LastControl returns the last published change of a chat's control. Errors are those of [Bus.Last].
func (b *Bus) LastControl(ctx context.Context, companyID, chatID string) (event.ChatControlChanged, error) {
	d, err := b.Last(ctx, subject.Inbound, subject.ControlChanged(companyID, chatID))
	if err != nil {
		return event.ChatControlChanged{}, err
	}
	return event.Decode[event.ChatControlChanged](d.Subject, d.Data)
}

// lastsPerRequest is the number of subjects per request; nats-server allows 1,024.
const lastsPerRequest = 500

// Lasts returns the last message on each published subject, by subject; it omits subjects without one. It
// returns Unavailable while NATS is disconnected. The response may come from a replica that lacks the newest
// messages.
func (b *Bus) Lasts(ctx context.Context, stream string, subjects []string) (map[string]Delivery, error) {
	partitions, err := b.Partitions(ctx, stream)
	if err != nil {
		return nil, err
	}
	sub, err := b.conn.SubscribeSync(b.conn.NewInbox())
	if err != nil {
		return nil, apperr.Unreachable("NATS", fmt.Errorf("reading the last messages of %s: %w", stream, err))
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only once the connection, and with it the subscription, is closed
	found := make(map[string]Delivery)
	for chunk := range slices.Chunk(subjects, lastsPerRequest) {
		stored := make([]string, len(chunk))
		for i, s := range chunk {
			stored[i] = subject.Stored(s, partitions)
		}
		_, _, err := b.directBatch(ctx, sub, stream, directGet{LastOf: stored}, func(d Delivery, _ error) bool {
			found[d.Subject] = d
			return true
		})
		if err != nil {
			return nil, apperr.Unreachable("NATS", fmt.Errorf("reading the last messages of %s: %w", stream, err))
		}
	}
	return found, nil
}
