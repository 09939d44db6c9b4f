package bus

// Looking up an accepted message before the recorder has stored it, for the Client API.

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// A message id contains its creation time. The stream stores the message later, by up to the publish
	// timeout, and both limits allow for clock skew between machines.
	acceptedBefore = 2 * time.Second
	acceptedAfter  = publishTimeout + 5*time.Second

	// acceptedRetryWindow is slightly longer than the validity of an Idempotency-Key: a retried request keeps
	// the message id of the first try, and its message may be stored that much later.
	acceptedRetryWindow = 25 * time.Hour

	acceptedTimeout = 5 * time.Second
	// A replica may lack a new message for a moment: it is read again after acceptedPause, and after twice the
	// pause each time, acceptedTries times in all.
	acceptedPause = 100 * time.Millisecond
	acceptedTries = 5
)

// Accepted returns the event with which the Client API accepted a company's message (CompanyMessageAccepted
// or PushAccepted) from the stream SENDS. It is available from the API's response until the stream's
// retention ends. The company "*" matches any. Errors: NotFound, and Unavailable while NATS is disconnected.
//
// The cost grows with the number of events that the company sent around the creation time of the id. Use it
// for messages that are not in the store yet, and in operators' tools.
func (b *Bus) Accepted(ctx context.Context, companyID, messageID string) (Delivery, error) {
	created, ok := chat.IDTime(messageID)
	if !ok || created.After(time.Now().Add(acceptedAfter)) || companyID != "*" && !subject.Valid(companyID) {
		return Delivery{}, apperr.MessageNotFound.New()
	}
	ctx, cancel := context.WithTimeout(ctx, acceptedTimeout)
	defer cancel()
	d, err := b.searchAccepted(ctx, companyID, messageID, created.Add(-acceptedBefore), created.Add(acceptedAfter))
	age := time.Since(created)
	if age > acceptedAfter && age < acceptedRetryWindow && apperr.Is(err, apperr.NotFound) {
		now := time.Now()
		return b.searchAccepted(ctx, companyID, messageID, now.Add(-acceptedAfter), now)
	}
	pause := acceptedPause
	for try := 1; try < acceptedTries && age <= acceptedAfter && apperr.Is(err, apperr.NotFound); try++ {
		if sleep(ctx, pause) != nil {
			break
		}
		pause *= 2
		d, err = b.searchAccepted(ctx, companyID, messageID, created.Add(-acceptedBefore), created.Add(acceptedAfter))
	}
	return d, err
}

// searchAccepted searches the events that SENDS stored between from and until.
func (b *Bus) searchAccepted(
	ctx context.Context,
	companyID, messageID string,
	from, until time.Time,
) (Delivery, error) {
	for _, filter := range []string{subject.CompanyMessage(companyID, "*"), subject.Push(companyID, "*")} {
		for d, err := range b.Since(ctx, subject.Sends, filter, from) {
			if err != nil {
				return Delivery{}, err
			}
			if d.EventID() == messageID {
				return d, nil
			}
			if d.Time.After(until) {
				break
			}
		}
	}
	return Delivery{}, apperr.MessageNotFound.New()
}

// EventID returns the id of the event. Unlike the Nats-Msg-Id of the delivery, it is unchanged in a replay.
func (d Delivery) EventID() string { return d.Header.Get(headerID) }

// EventTime returns the time of the event; zero if it has none.
func (d Delivery) EventTime() time.Time {
	at, err := time.Parse(time.RFC3339Nano, d.Header.Get(headerTime))
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}
