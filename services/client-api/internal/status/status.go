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

// Inbound looks up messages that the processing layer may not have handled yet. Accepted returns when a
// company's message was accepted, and its chat if it was sent into one; NotFound if there is no such message.
type Inbound interface {
	Accepted(ctx context.Context, companyID, messageID string) (at time.Time, chatID string, err error)
}

// Service looks up statuses.
type Service struct {
	statuses Statuses
	inbound  Inbound
}

// New returns the service.
func New(statuses Statuses, inbound Inbound) *Service {
	return &Service{statuses: statuses, inbound: inbound}
}

// Status returns the status of a company's message from its acceptance on. NotFound for a message that is
// unknown or another company's.
func (d *Service) Status(
	ctx context.Context,
	companyID, messageID string,
) (id string, s chat.MessageStatus, err error) {
	id, ok := chat.ParseID(messageID)
	if !ok {
		return "", s, apperr.MessageNotFound.New()
	}
	s, err = d.statuses.MessageStatus(ctx, companyID, id)
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return "", s, err
	}
	if !s.AcceptedAt.IsZero() {
		return id, s, nil
	}
	// Reports about a message that was never accepted are ignored.
	at, chatID, err := d.inbound.Accepted(ctx, companyID, id)
	if apperr.Is(err, apperr.NotFound) {
		err = apperr.MessageNotFound.New()
	}
	return id, s.Join(chat.MessageStatus{AcceptedAt: at, ChatID: chatID}), err
}
