// Package status looks up the status of a company's messages.
package status

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

// Statuses reads what the processing layer has recorded.
type Statuses interface {
	MessageStatus(ctx context.Context, companyID, messageID string) (chat.MessageStatus, error)
}

// Acceptances looks up messages in the stream SENDS, where the processing layer may not have handled them yet.
// Accepted returns when a company's message was accepted, and its chat if it was sent into one; NotFound if
// there is no such message.
type Acceptances interface {
	Accepted(ctx context.Context, companyID, messageID string) (at time.Time, chatID string, err error)
}

// Service looks up statuses.
type Service struct {
	statuses    Statuses
	acceptances Acceptances
}

// New returns the service.
func New(statuses Statuses, acceptances Acceptances) *Service {
	return &Service{statuses: statuses, acceptances: acceptances}
}

// Status returns the canonical id and the status of a company's message, from its acceptance on. NotFound for
// a message that is unknown or another company's.
func (s *Service) Status(
	ctx context.Context,
	companyID, messageID string,
) (id string, status chat.MessageStatus, err error) {
	id, ok := chat.ParseID(messageID)
	if !ok {
		return "", status, apperr.MessageNotFound.New()
	}
	status, err = s.statuses.MessageStatus(ctx, companyID, id)
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return "", status, err
	}
	if !status.AcceptedAt.IsZero() {
		return id, status, nil
	}
	// The recorder has not stored the acceptance yet, or the message was never accepted: reports about such a
	// message are ignored.
	at, chatID, err := s.acceptances.Accepted(ctx, companyID, id)
	if apperr.Is(err, apperr.NotFound) {
		err = apperr.MessageNotFound.New()
	}
	return id, status.Join(chat.MessageStatus{AcceptedAt: at, ChatID: chatID}), err
}
