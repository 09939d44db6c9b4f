package bus

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// A message's id says when it was made. The stream took it a moment after that; how long a moment may be the publish's
	// time limit says, and both ways how far the clocks of two machines may be apart.
	acceptedBefore = 2 * time.Second
	acceptedAfter  = publishTimeout + 5*time.Second

	// acceptedAgain is how long a request may be sent again with its Idempotency-Key, a little more: its message keeps the id of the
	// first try, and may reach the stream as much later.
	acceptedAgain = 25 * time.Hour

	acceptedTimeout = 5 * time.Second
	// acceptedPause is the wait before the second look for what is only just there: a replica may lack it for a moment.
	acceptedPause = 100 * time.Millisecond
)

// Accepted returns the event with which the Client API accepted a company's message (CompanyMessageAccepted or PushAccepted),
// as stored in SENDS, from the API's answer until the stream drops it. The company "*" matches any. Errors: NotFound, and
// Unavailable while NATS is not connected.
//
// Its cost grows with the number of events that the company sent in the seconds around the id's time. Use it before the store
// has the message, and for operators.
func (b *Bus) Accepted(ctx context.Context, companyID, messageID string) (Delivery, error) {
	made, ok := chat.IDTime(messageID)
	if !ok || made.After(time.Now().Add(acceptedAfter)) || companyID != "*" && !subject.Valid(companyID) {
		return Delivery{}, apperr.MessageNotFound.New()
	}
	ctx, cancel := context.WithTimeout(ctx, acceptedTimeout)
	defer cancel()
	d, err := b.acceptedIn(ctx, companyID, messageID, made.Add(-acceptedBefore), made.Add(acceptedAfter))
	if !apperr.Is(err, apperr.NotFound) {
		return d, err
	}
	switch now := time.Now(); {
	case now.Sub(made).Abs() < acceptedBefore:
		if sleep(ctx, acceptedPause) == nil {
			return b.acceptedIn(ctx, companyID, messageID, made.Add(-acceptedBefore), made.Add(acceptedAfter))
		}
	case now.Sub(made) > acceptedAfter && now.Sub(made) < acceptedAgain:
		return b.acceptedIn(ctx, companyID, messageID, now.Add(-acceptedAfter), now)
	}
	return d, err
}

// acceptedIn looks at what SENDS took in a span of time.
func (b *Bus) acceptedIn(ctx context.Context, companyID, messageID string, from, until time.Time) (Delivery, error) {
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

// EventID is the id of the event that a delivery carries. Unlike the delivery's own id it stays when the event is replayed.
func (d Delivery) EventID() string { return d.Header.Get(headerID) }

// EventTime is the time of the event; zero if the event has none.
func (d Delivery) EventTime() time.Time {
	at, err := time.Parse(time.RFC3339Nano, d.Header.Get(headerTime))
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}
