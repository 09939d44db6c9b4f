package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// stopTimeout limits the wait for the response of the bot.
const stopTimeout = time.Second

// RequestStop requests that the bots stop writing a message for a visitor. It returns true if the bot that
// writes it has stopped, and false if none responds within a second because none writes it.
//
// It is not a question as in ask.go: every bot receives it, and only the one that has stopped answers.
func (c *Conn) RequestStop(ctx context.Context, appID, chatUserID, messageID string) (stopped bool, err error) {
	if !subject.Valid(appID) || !subject.Valid(chatUserID) || !subject.Valid(messageID) {
		return false, nil
	}
	request, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	_, err = c.nats.RequestWithContext(request, subject.Stop(appID, chatUserID, messageID), nil)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, nats.ErrNoResponders),
		errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && c.nats.IsConnected():
		return false, nil
	}
	return false, apperr.Unreachable("NATS", fmt.Errorf("requesting the stop of a message: %w", err))
}

// HandleStops calls stop sequentially for every request to stop a message, until unsubscribe is called. stop
// reports whether this process was writing the message; only then does it respond.
func (c *Conn) HandleStops(stop func(appID, chatUserID, messageID string) bool) (unsubscribe func(), err error) {
	return c.subscribe(subject.AllStops, "", func(m *nats.Msg) {
		appID, chatUserID, messageID, ok := subject.ParseStop(m.Subject)
		if ok && stop(appID, chatUserID, messageID) {
			_ = m.Respond(nil) // the visitor retries without a response
		}
	})
}
