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

	// acceptedEvents is the most that one lookup reads: about 13 MiB. The caller chooses the time in the id, so also
	// that of the company's largest burst.
	acceptedEvents = 10_000
	// acceptedRetryAfter gives the recorder time to store the message, which then needs no lookup.
	acceptedRetryAfter = 2 * time.Second
)

// Accepted returns the event with which the Client API accepted a company's message (CompanyMessageAccepted
// or PushAccepted) from the stream SENDS. It is available from the API's response until the stream's
// retention ends. The company "*" matches any. Errors: NotFound, and Unavailable while NATS is disconnected or
// if the company has sent more than acceptedEvents around the creation time of the id.
//
// The cost grows with the number of these events. Use it for messages that are not in the store yet, and bound the
// lookups at once.
func (b *Bus) Accepted(ctx context.Context, companyID, messageID string) (Delivery, error) {
	l := acceptedLookup{bus: b, companyID: companyID, messageID: messageID, remaining: acceptedEvents}
	return l.run(ctx)
}

// acceptedLookup is one call of [Bus.Accepted].
type acceptedLookup struct {
	bus                  *Bus
	companyID, messageID string
	remaining            int // events that it may still read, in all its searches
}

func (l *acceptedLookup) run(ctx context.Context) (Delivery, error) {
	created, ok := chat.IDTime(l.messageID)
	if !ok || created.After(time.Now().Add(acceptedAfter)) || l.companyID != "*" && !subject.Valid(l.companyID) {
		return Delivery{}, apperr.MessageNotFound.New()
	}
	ctx, cancel := context.WithTimeout(ctx, acceptedTimeout)
	defer cancel()
	d, err := l.search(ctx, created.Add(-acceptedBefore), created.Add(acceptedAfter))
	age := time.Since(created)
	if age > acceptedAfter && age < acceptedRetryWindow && apperr.Is(err, apperr.NotFound) {
		now := time.Now()
		return l.search(ctx, now.Add(-acceptedAfter), now)
	}
	pause := acceptedPause
	for try := 1; try < acceptedTries && age <= acceptedAfter && apperr.Is(err, apperr.NotFound); try++ {
		if sleep(ctx, pause) != nil {
			break
		}
		pause *= 2
		d, err = l.search(ctx, created.Add(-acceptedBefore), created.Add(acceptedAfter))
	}
	return d, err
}

// search searches the events that SENDS stored between from and until.
func (l *acceptedLookup) search(ctx context.Context, from, until time.Time) (Delivery, error) {
	for _, filter := range []string{subject.CompanyMessage(l.companyID, "*"), subject.Push(l.companyID, "*")} {
		for d, err := range l.bus.Since(ctx, subject.Sends, filter, from) {
			if err != nil {
				return Delivery{}, err
			}
			if d.EventID() == l.messageID {
				return d, nil
			}
			if d.Time.After(until) {
				break
			}
			l.remaining--
			if l.remaining <= 0 {
				return Delivery{}, tooManyAccepted()
			}
		}
	}
	return Delivery{}, apperr.MessageNotFound.New()
}

// tooManyAccepted reports that a lookup has read as much as it may.
func tooManyAccepted() error {
	e := apperr.ServiceUnavailable.New()
	e.RetryAfter = acceptedRetryAfter
	return e
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
