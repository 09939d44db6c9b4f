package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// lastTimeout bounds a look at a stream for which the caller has set no deadline.
const lastTimeout = 2 * time.Second

// Last returns the last message that a stream holds on a subject, with its payload and the time at which the stream took it.
// It returns NotFound where there is none, and Unavailable while NATS is away. A replica may answer that lacks the newest
// moment (JetStream's direct get).
func (b *Bus) Last(ctx context.Context, stream, subj string) (Delivery, error) {
	if !b.conn.IsConnected() {
		return Delivery{}, apperr.Away("NATS", nats.ErrConnectionClosed)
	}
	ctx, cancel := context.WithTimeout(ctx, lastTimeout)
	defer cancel()
	stored, err := b.Stored(ctx, stream, subj)
	if err != nil {
		return Delivery{}, err
	}
	m, err := b.conn.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+stream+"."+stored, nil)
	if err != nil {
		return Delivery{}, apperr.Away("NATS", fmt.Errorf("reading the last message of %s: %w", stream, err))
	}
	switch m.Header.Get("Status") {
	case "":
	case "404":
		return Delivery{}, apperr.New(apperr.NotFound, "MESSAGE_NOT_FOUND", "Message not found")
	default:
		return Delivery{}, apperr.Away("NATS", fmt.Errorf("reading the last message of %s: %s", stream, m.Header.Get("Description")))
	}
	at, err := time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
	if err != nil {
		return Delivery{}, fmt.Errorf("reading the time of the last message of %s: %w", stream, err)
	}
	return Delivery{Stream: stream, Subject: subject.Published(m.Header.Get(jetstream.SubjectHeader)), Data: m.Data, Header: m.Header, ID: m.Header.Get(headerMsgID), Time: at}, nil
}
