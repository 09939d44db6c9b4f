package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Signal publishes a signal on core NATS. It does not wait for the server; while NATS is not connected the signal is dropped, because it would be
// worthless when NATS is back.
func (b *Bus) Signal(s event.Signal) error {
	if !validSubject(s.Subject()) {
		return fmt.Errorf("signalling %s: %w %q", s.Type(), nats.ErrBadSubject, s.Subject())
	}
	if !b.conn.IsConnected() {
		return fmt.Errorf("signalling %s: %w", s.Type(), apperr.Unreachable("NATS", nats.ErrDisconnected))
	}
	if err := b.conn.Publish(s.Subject(), s.AppendJSON(nil)); err != nil {
		return fmt.Errorf("signalling %s: %w", s.Type(), apperr.Unreachable("NATS", err))
	}
	return nil
}

// signalFlush is how long a server may take to confirm a subscription.
const signalFlush = time.Second

// OnSignal calls heard, one call at a time, for the signals on the subjects of a filter, until stop is called. Of the replicas that
// listen in one group each signal reaches one; with an empty group it reaches all. When it returns, a server that is connected knows of it.
func (b *Bus) OnSignal(filter, group string, heard func(subj string, data []byte)) (stop func(), err error) {
	take := func(m *nats.Msg) { heard(m.Subject, m.Data) }
	var sub *nats.Subscription
	if group == "" {
		sub, err = b.conn.Subscribe(filter, take)
	} else {
		sub, err = b.conn.QueueSubscribe(filter, group, take)
	}
	if err != nil {
		return nil, fmt.Errorf("listening for signals: %w", apperr.Unreachable("NATS", err))
	}
	if b.conn.IsConnected() {
		_ = b.conn.FlushTimeout(signalFlush) // otherwise it is sent after the reconnect
	}
	return func() { _ = sub.Unsubscribe() }, nil // fails only once the connection, and with it the subscription, is closed
}

const (
	readingTimeout = 2 * time.Second
	readingGroup   = "widget-api" // one of them answers
)

// Reading is how far a chat has been read, as the visitor sees it.
type Reading struct {
	Unread   int       `json:"unread"`             // messages of the other side after the visitor's cursor, at most [MaxUnread]
	ReadUpTo string    `json:"readUpTo,omitempty"` // the visitor's cursor: id of the newest message that the visitor has read
	SeenUpTo time.Time `json:"seenUpTo,omitzero"`  // what the visitor wrote up to then has been read by the company
}

// MaxUnread is how far unread messages are counted.
const MaxUnread = 100

// readingQuestion is what a gateway asks: to move the visitor's cursor to a message, or, without one, only how far the chat was read.
type readingQuestion struct {
	CompanyID string `json:"companyId"`
	MessageID string `json:"messageId,omitempty"`
}

// readingAnswer is a Reading, or an error. An empty payload is an error without a reason.
type readingAnswer struct {
	Reading
	Code string `json:"code,omitempty"`
}

// ReadUpTo asks the Widget APIs to move a visitor's read cursor to a message, unless it is further already, and returns how far the chat is
// read then. An empty messageID moves nothing. Errors: NotFound, when the visitor's open chat has no such message; Unavailable.
func (b *Bus) ReadUpTo(ctx context.Context, companyID, appID, chatUserID, messageID string) (Reading, error) {
	question, err := json.Marshal(readingQuestion{CompanyID: companyID, MessageID: messageID})
	if err != nil {
		return Reading{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, readingTimeout)
	defer cancel()
	m, err := b.conn.RequestWithContext(ctx, subject.ReadingRequest(appID, chatUserID), question)
	if err != nil {
		return Reading{}, apperr.Unreachable("the Widget API", fmt.Errorf("asking how far a chat was read: %w", err))
	}
	var answer readingAnswer
	switch {
	case len(m.Data) == 0 || json.Unmarshal(m.Data, &answer) != nil:
		return Reading{}, apperr.Unreachable("the Widget API", errors.New("it did not answer how far a chat was read"))
	case answer.Code != "":
		return Reading{}, apperr.New(apperr.NotFound, answer.Code, "There is no such message in the open chat")
	}
	return answer.Reading, nil
}

// HandleReading answers [Bus.ReadUpTo] with the result of read until stop is called, which waits for running calls of read. Callers see
// NotFound; other errors reach them without a reason.
func (b *Bus) HandleReading(read func(ctx context.Context, companyID, appID, chatUserID, messageID string) (Reading, error)) (stop func(), err error) {
	a := &responder{answer: func(ctx context.Context, m *nats.Msg) []byte {
		ctx, cancel := context.WithTimeout(ctx, readingTimeout)
		defer cancel()
		var question readingQuestion
		appID, chatUserID, _ := strings.Cut(strings.TrimPrefix(m.Subject, "parley.ask.reading."), ".")
		if json.Unmarshal(m.Data, &question) != nil {
			return nil
		}
		found, err := read(ctx, question.CompanyID, appID, chatUserID, question.MessageID)
		answer := readingAnswer{Reading: found}
		if apperr.Is(err, apperr.NotFound) {
			answer.Code = apperr.MessageNotFound.Reason
			if e, ok := errors.AsType[*apperr.Error](err); ok && e.Reason != "" {
				answer.Code = e.Reason
			}
		} else if err != nil {
			return nil
		}
		text, _ := json.Marshal(answer) // strings, a number and a time: always encodes
		return text
	}}
	return a.listen(b, subject.AllReadingQuestions, readingGroup)
}
