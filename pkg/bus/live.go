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

// Signal publishes a signal on core NATS without waiting for the server. It fails while NATS is disconnected:
// a delayed signal would be useless.
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

// signalFlush limits the wait for the server to process a subscription.
const signalFlush = time.Second

// OnSignal calls handle sequentially for signals on the subjects of filter until stop is called. Each signal
// reaches one replica of the group; with an empty group it reaches all. When OnSignal returns, a connected
// server has processed the subscription.
func (b *Bus) OnSignal(filter, group string, handle func(subj string, data []byte)) (stop func(), err error) {
	receive := func(m *nats.Msg) { handle(m.Subject, m.Data) }
	var sub *nats.Subscription
	if group == "" {
		sub, err = b.conn.Subscribe(filter, receive)
	} else {
		sub, err = b.conn.QueueSubscribe(filter, group, receive)
	}
	if err != nil {
		return nil, fmt.Errorf("subscribing to signals: %w", apperr.Unreachable("NATS", err))
	}
	if b.conn.IsConnected() {
		_ = b.conn.FlushTimeout(signalFlush) // while disconnected, the reconnect sends it
	}
	return func() { _ = sub.Unsubscribe() }, nil // fails only if the connection, and with it the subscription, is closed
}

const (
	readingTimeout = 2 * time.Second
	readingGroup   = "widget-api" // queue group
)

// Reading is the read state of a chat from the visitor's point of view.
type Reading struct {
	Unread   int       `json:"unread"`             // messages from the company after the visitor's cursor, at most [MaxUnread]
	ReadUpTo string    `json:"readUpTo,omitempty"` // id of the newest message that the visitor has read (the visitor's cursor)
	SeenUpTo time.Time `json:"seenUpTo,omitzero"`  // the company has read the visitor's messages up to this time
}

// MaxUnread is the limit at which counting unread messages stops.
const MaxUnread = 100

// readingRequest moves the visitor's cursor to a message. Without a message id it only queries the read state.
type readingRequest struct {
	CompanyID string `json:"companyId"`
	MessageID string `json:"messageId,omitempty"`
}

// readingResponse is a Reading or an error code. An empty payload is an unspecified error.
type readingResponse struct {
	Reading
	Code string `json:"code,omitempty"`
}

// ReadUpTo makes a Widget API move a visitor's read cursor forward to a message and returns the resulting
// read state. It never moves the cursor back. An empty messageID only queries the state. Errors: NotFound if
// the visitor's open chat does not contain the message; Unavailable.
func (b *Bus) ReadUpTo(ctx context.Context, companyID, appID, chatUserID, messageID string) (Reading, error) {
	request, err := json.Marshal(readingRequest{CompanyID: companyID, MessageID: messageID})
	if err != nil {
		return Reading{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, readingTimeout)
	defer cancel()
	m, err := b.conn.RequestWithContext(ctx, subject.ReadingRequest(appID, chatUserID), request)
	if err != nil {
		return Reading{}, apperr.Unreachable("the Widget API", fmt.Errorf("requesting the read state: %w", err))
	}
	var response readingResponse
	switch {
	case len(m.Data) == 0 || json.Unmarshal(m.Data, &response) != nil:
		return Reading{}, apperr.Unreachable("the Widget API", errors.New("it failed to return the read state"))
	case response.Code != "":
		return Reading{}, apperr.New(apperr.NotFound, response.Code, "There is no such message in the open chat")
	}
	return response.Reading, nil
}

// HandleReading responds to [Bus.ReadUpTo] with the result of read until stop is called; stop waits for
// running calls. Callers receive NotFound errors with their reason, and all others as Unavailable.
func (b *Bus) HandleReading(
	read func(ctx context.Context, companyID, appID, chatUserID, messageID string) (Reading, error),
) (stop func(), err error) {
	a := &responder{respond: func(ctx context.Context, m *nats.Msg) []byte {
		ctx, cancel := context.WithTimeout(ctx, readingTimeout)
		defer cancel()
		var request readingRequest
		appID, chatUserID, _ := strings.Cut(strings.TrimPrefix(m.Subject, "parley.ask.reading."), ".")
		if json.Unmarshal(m.Data, &request) != nil {
			return nil
		}
		found, err := read(ctx, request.CompanyID, appID, chatUserID, request.MessageID)
		response := readingResponse{Reading: found}
		if apperr.Is(err, apperr.NotFound) {
			response.Code = apperr.MessageNotFound.Reason
			if e, ok := errors.AsType[*apperr.Error](err); ok && e.Reason != "" {
				response.Code = e.Reason
			}
		} else if err != nil {
			return nil
		}
		text, _ := json.Marshal(response) // strings, a number and a time: always encodes
		return text
	}}
	return a.listen(b, subject.AllReadingRequests, readingGroup)
}
