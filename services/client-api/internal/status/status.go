// Package status looks up the status of a company's messages.
package status

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/slot"
)

// The lookups in SENDS. A lookup reads up to 10,000 events of the company, on the connection on which all companies
// send; most find their message in milliseconds.
const (
	lookupsAtOnce = 16
	// lookupsOfCompany is the part of one company.
	lookupsOfCompany = 4
	// lookupWait is longer than a lookup of a new, unknown id, which is repeated for a replica that is late.
	lookupWait = 2 * time.Second
	// waitingAtOnce and waitingOfCompany bound the requests that wait for a lookup.
	waitingAtOnce    = 512
	waitingOfCompany = 64
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
	lookups     slot.Line
}

// New returns the service.
func New(statuses Statuses, acceptances Acceptances) *Service {
	return &Service{
		statuses:    statuses,
		acceptances: acceptances,
		lookups:     slot.Line{Pool: slot.NewPool(lookupsAtOnce, 1), Places: slot.NewPool(waitingAtOnce, 1)},
	}
}

// Status returns the canonical id and the status of a company's message, from its acceptance on. NotFound for
// a message that is unknown or another company's; a [*slot.FullError] if the company, or all companies together,
// look up too many at once; Unavailable if the company has sent too many around this one.
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
	at, chatID, err := s.Accepted(ctx, companyID, id)
	if apperr.Is(err, apperr.NotFound) {
		err = apperr.MessageNotFound.New()
	}
	return id, status.Join(chat.MessageStatus{AcceptedAt: at, ChatID: chatID}), err
}

// Accepted looks up a message in SENDS, when it is the company's turn. NotFound: SENDS does not have it.
func (s *Service) Accepted(ctx context.Context, companyID, id string) (at time.Time, chatID string, err error) {
	company := func(most int64) []slot.Share { return []slot.Share{{Of: "company", Key: companyID, Most: most}} }
	turn, err := s.lookups.Acquire(ctx, 1, lookupWait, company(lookupsOfCompany), company(waitingOfCompany))
	if err != nil {
		return time.Time{}, "", err
	}
	defer turn.Release()
	return s.acceptances.Accepted(ctx, companyID, id)
}
