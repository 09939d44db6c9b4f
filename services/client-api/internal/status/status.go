// Package status looks up the status of a company's messages.
package status

import (
	"context"
	"errors"
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
	lookupRetryAfter = time.Second
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
	statuses         Statuses
	acceptances      Acceptances
	lookups, waiting *slot.Pool
}

// New returns the service.
func New(statuses Statuses, acceptances Acceptances) *Service {
	return &Service{
		statuses:    statuses,
		acceptances: acceptances,
		lookups:     slot.NewPool(lookupsAtOnce, 1),
		waiting:     slot.NewPool(waitingAtOnce, 1),
	}
}

// Status returns the canonical id and the status of a company's message, from its acceptance on. NotFound for
// a message that is unknown or another company's; TooMany if the company looks up too many at once, and Unavailable if
// all companies together do or the company has sent too many around this one.
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
	at, chatID, err := s.accepted(ctx, companyID, id)
	if apperr.Is(err, apperr.NotFound) {
		err = apperr.MessageNotFound.New()
	}
	return id, status.Join(chat.MessageStatus{AcceptedAt: at, ChatID: chatID}), err
}

// accepted looks up a message in SENDS, when it is the company's turn.
func (s *Service) accepted(ctx context.Context, companyID, id string) (at time.Time, chatID string, err error) {
	turn, err := s.turn(ctx, companyID)
	if err != nil {
		return time.Time{}, "", noTurn(err)
	}
	defer turn.Release()
	return s.acceptances.Accepted(ctx, companyID, id)
}

// turn takes a place of the lookups, and waits for it if there is none.
func (s *Service) turn(ctx context.Context, companyID string) (*slot.Slot, error) {
	lookups := slot.Share{Of: "company", Key: companyID, Most: lookupsOfCompany}
	turn, err := s.lookups.Acquire(ctx, 0, lookups)
	if err == nil {
		return turn, nil
	}
	waits, err := s.waiting.Acquire(ctx, 0, slot.Share{Of: "company", Key: companyID, Most: waitingOfCompany})
	if err != nil {
		return nil, err
	}
	defer waits.Release()
	return s.lookups.Acquire(ctx, lookupWait, lookups)
}

// noTurn returns the public error of a request that did not get its turn.
func noTurn(err error) error {
	full, ok := errors.AsType[*slot.FullError](err)
	if !ok {
		return err
	}
	refused := apperr.ServiceUnavailable.New()
	if full.Share != "" {
		refused = apperr.TooManyRequests.New()
	}
	refused.RetryAfter = lookupRetryAfter
	return refused
}
