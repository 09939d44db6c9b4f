package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

const readingTimeout = 2 * time.Second

// MaxUnread is the limit at which counting unread messages stops.
const MaxUnread = 100

// Reading is the read state of a chat from the visitor's point of view.
type Reading struct {
	// Unread is the number of messages from the company after the visitor's cursor, at most [MaxUnread].
	Unread int `json:"unread"`
	// ReadUpTo is the visitor's cursor: the id of the newest message that the visitor has read.
	ReadUpTo string `json:"readUpTo,omitempty"`
	// SeenUpTo is the time up to which the company has read the visitor's messages.
	SeenUpTo time.Time `json:"seenUpTo,omitzero"`
}

// readingRequest moves the visitor's cursor to a message. Without a message id it only queries the read
// state.
type readingRequest struct {
	CompanyID string `json:"companyId"`
	MessageID string `json:"messageId,omitempty"`
}

// readingAnswer is a Reading or an error code.
type readingAnswer struct {
	Reading
	Code string `json:"code,omitempty"`
}

// ReadUpTo makes a Widget API move a visitor's read cursor forward to a message and returns the resulting
// read state. It never moves the cursor back. An empty messageID only queries the state. Errors: NotFound if
// the visitor's open chat does not contain the message; Unavailable.
func (c *Conn) ReadUpTo(ctx context.Context, companyID, appID, chatUserID, messageID string) (Reading, error) {
	body, err := json.Marshal(readingRequest{CompanyID: companyID, MessageID: messageID})
	if err != nil {
		return Reading{}, err
	}
	answer, err := Ask[readingAnswer](ctx, c, Question{
		Subject: subject.ReadingRequest(appID, chatUserID),
		Body:    body,
		Service: widgetAPI,
		Timeout: readingTimeout,
	})
	if err != nil {
		return Reading{}, err
	}
	if answer.Code != "" {
		return Reading{}, apperr.New(apperr.NotFound, answer.Code, "There is no such message in the open chat")
	}
	return answer.Reading, nil
}

// HandleReading responds to [Conn.ReadUpTo] with the result of read until stop is called; stop waits for
// running calls. Callers receive NotFound errors with their reason, and all others as Unavailable.
func (c *Conn) HandleReading(
	read func(ctx context.Context, companyID, appID, chatUserID, messageID string) (Reading, error),
) (stop func(), err error) {
	answer := func(ctx context.Context, subj string, body []byte) (any, error) {
		var request readingRequest
		if err := json.Unmarshal(body, &request); err != nil {
			return nil, err
		}
		ids := strings.TrimPrefix(subj, subject.ReadingRequestPrefix)
		appID, chatUserID, _ := strings.Cut(ids, ".")
		found, err := read(ctx, request.CompanyID, appID, chatUserID, request.MessageID)
		if apperr.Is(err, apperr.NotFound) {
			return readingAnswer{Reading: found, Code: notFoundReason(err)}, nil
		}
		return readingAnswer{Reading: found}, err
	}
	return c.answer(subject.AllReadingRequests, widgetGroup, readingTimeout, answer)
}

// notFoundReason returns the reason of a NotFound error, by default that of a missing message.
func notFoundReason(err error) string {
	if e, ok := errors.AsType[*apperr.Error](err); ok && e.Reason != "" {
		return e.Reason
	}
	return apperr.MessageNotFound.Reason
}
