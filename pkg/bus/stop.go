package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// stopTimeout is how long the bot that writes a message has to answer that it stops.
const stopTimeout = time.Second

// RequestStop asks the bots to stop writing a message for a visitor. It returns true when the one that writes it has stopped, and false
// when none says so within a second: none writes it.
func (b *Bus) RequestStop(ctx context.Context, appID, chatUserID, messageID string) (stopped bool, err error) {
	if !subject.Valid(appID) || !subject.Valid(chatUserID) || !subject.Valid(messageID) {
		return false, nil
	}
	asking, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	_, err = b.conn.RequestWithContext(asking, subject.Stop(appID, chatUserID, messageID), nil)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && b.conn.IsConnected():
		return false, nil
	}
	return false, apperr.Unreachable("NATS", fmt.Errorf("asking to stop a message: %w", err))
}

// HandleStops calls stop, one call at a time, for every request to stop a message, until it is unsubscribed. stop reports whether this
// process was writing the message; the others say nothing.
func (b *Bus) HandleStops(stop func(appID, chatUserID, messageID string) bool) (unsubscribe func(), err error) {
	sub, err := b.conn.Subscribe(subject.AllStops, func(m *nats.Msg) {
		if appID, chatUserID, messageID, ok := subject.ParseStop(m.Subject); ok && stop(appID, chatUserID, messageID) {
			_ = m.Respond(nil) // a visitor who gets no answer asks again
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listening for requests to stop: %w", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // fails only once the connection, and with it the subscription, is closed
}
