package idempotency

import (
	"context"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

// Messages looks up stored messages.
type Messages interface {
	FindMessage(ctx context.Context, id string) (chatID string, m chat.Message, err error)
}

// SentBefore reports whether the message of an earlier attempt with the same key is stored, and in which chat. An
// [Act] asks this first and goes by that message: since the earlier attempt, the chat may have been closed
// or a template withdrawn, and a repeated message could open a second chat.
//
// It reports false while the message is published but not stored yet. The message is then published again under
// its id, and JetStream drops the duplicate (see [Lease]).
func SentBefore(
	ctx context.Context,
	messages Messages,
	identity chat.MessageIdentity,
) (chatID string, sent bool, err error) {
	if !identity.Again {
		return "", false, nil
	}
	chatID, _, err = messages.FindMessage(ctx, identity.ID)
	if apperr.Is(err, apperr.NotFound) {
		return "", false, nil
	}
	return chatID, err == nil, err
}

// Stored are the [Effects] of requests whose messages are stored before they are answered.
type Stored struct{ Messages }

// Exists implements [Effects].
func (s Stored) Exists(ctx context.Context, _ Request, messageID string) (bool, error) {
	_, _, err := s.FindMessage(ctx, messageID)
	if apperr.Is(err, apperr.NotFound) {
		return false, nil
	}
	return err == nil, err
}
