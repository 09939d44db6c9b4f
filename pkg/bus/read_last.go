package bus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// lastTimeout bounds a look at a stream for which the caller has set no deadline.
const lastTimeout = 2 * time.Second

// Last returns the last message that a stream holds on a subject, with its payload and the time at which the stream took it.
// Errors: NotFound, and Unavailable while NATS is not connected. The answer may come from a replica that lacks the newest
// messages (JetStream direct get).
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
	m, err := b.conn.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+stream+"."+stored, nil)
	if err != nil {
		return Delivery{}, apperr.Unreachable("NATS", fmt.Errorf("reading the last message of %s: %w", stream, err))
	}
	switch m.Header.Get("Status") {
	case "":
	case "404":
		return Delivery{}, apperr.MessageNotFound.New()
	default:
		return Delivery{}, apperr.Unreachable("NATS", fmt.Errorf("reading the last message of %s: %s", stream, m.Header.Get("Description")))
	}
	at, err := time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
	if err != nil {
		return Delivery{}, fmt.Errorf("reading the time of the last message of %s: %w", stream, err)
	}
	return Delivery{Stream: stream, Subject: subject.Published(m.Header.Get(jetstream.SubjectHeader)), Data: m.Data, Header: m.Header, ID: m.Header.Get(headerMsgID), Time: at}, nil
}

// lastsAtOnce is how many subjects one request asks for; the server takes 1,024.
const lastsAtOnce = 500

// Lasts returns the last message that a stream holds on each of the subjects, by subject; those without one are missing. It is
// Unavailable while NATS is not connected. A replica that lacks the newest messages may answer.
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
	for some := range slices.Chunk(subjects, lastsAtOnce) {
		stored := make([]string, len(some))
		for i, s := range some {
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
