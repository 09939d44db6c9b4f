package idempotency_test

import (
	"context"
	"errors"
	"testing"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/idempotency"
)

// messages is a history with one message, or with an error.
type messages struct{ err error }

func (m messages) FindMessage(_ context.Context, id string) (string, chat.Message, error) {
	if m.err != nil {
		return "", chat.Message{}, m.err
	}
	return "chat-1", chat.Message{ID: id}, nil
}

func TestSentBefore(t *testing.T) {
	t.Parallel()
	outage := errors.New("no connection")
	for name, c := range map[string]struct {
		again  bool
		stored error
		chatID string
		sent   bool
		err    error
	}{
		"first attempt does not ask": {stored: outage},
		"stored":                     {again: true, chatID: "chat-1", sent: true},
		"not stored":                 {again: true, stored: apperr.MessageNotFound.New()},
		"outage":                     {again: true, stored: outage, err: outage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			identity := chat.MessageIdentity{ID: "message-1", Again: c.again}
			chatID, sent, err := idempotency.SentBefore(t.Context(), messages{c.stored}, identity)
			if chatID != c.chatID || sent != c.sent || !errors.Is(err, c.err) {
				t.Errorf("got %q, %v, %v, want %q, %v, %v", chatID, sent, err, c.chatID, c.sent, c.err)
			}
		})
	}
}
