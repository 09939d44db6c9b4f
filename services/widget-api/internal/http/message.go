package http

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/services/widget-api/internal/conversation"
)

type writeRequest struct {
	Type string         `json:"type"`
	Data httpapi.Object `json:"data"`
}

func (r *writeRequest) draft() conversation.Draft {
	return conversation.Draft{Type: chat.MessageType(r.Type), Data: json.RawMessage(r.Data)}
}

// Validate implements [httpapi.Validator].
func (r *writeRequest) Validate() apperr.Fields { return r.draft().Validate() }

func (a api) postMessage(c echo.Context, who credential.VisitorClaims) error {
	if isMultipart(c) {
		return a.postFile(c, who)
	}
	var r writeRequest
	if err := httpapi.Decode(c, &r); err != nil {
		return err
	}
	if idempotency.Asked(c.Request().Header) {
		d := r.draft()
		return a.writeOnce(c, who, idempotency.Fingerprint(string(d.Type), idempotency.Canonical(d.Data)),
			func(ctx context.Context, stamp chat.Stamp) (chat.Message, error) {
				return a.Conversations.Write(ctx, who, d, stamp)
			})
	}
	m, err := a.Conversations.Write(c.Request().Context(), who, r.draft(), chat.Stamp{})
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusCreated, m.AppendJSON(nil))
}

// writeOnce is for requests with an Idempotency-Key; the fingerprint says what was sent, whatever the same would look like in
// another request.
func (a api) writeOnce(
	c echo.Context, who credential.VisitorClaims, fingerprint string, write func(context.Context, chat.Stamp) (chat.Message, error),
) error {
	return a.Once.Answer(c, "POST /message|"+who.ChatUserID, fingerprint,
		func(ctx context.Context, stamp chat.Stamp) (idempotency.Answer, error) {
			m, err := write(ctx, stamp)
			return idempotency.Answer{Status: http.StatusCreated, Body: m.AppendJSON(nil)}, err
		})
}

func (a api) getHistory(c echo.Context, who credential.VisitorClaims) error {
	page, err := pageOf(c.Request().URL.RawQuery)
	if err != nil {
		return err
	}
	messages, more, err := a.Conversations.History(c.Request().Context(), who, page)
	if err != nil {
		return err
	}
	header := c.Response().Header()
	header.Set(echo.HeaderCacheControl, "no-store")
	if more {
		header.Set("Link", linkToNext(page, messages[0].ID))
	}
	return c.JSONBlob(http.StatusOK, appendHistory(make([]byte, 0, 256*len(messages)+2), messages))
}

// appendHistory writes the records by hand, because their data must pass byte for byte.
func appendHistory(dst []byte, messages []chat.Message) []byte {
	dst = append(dst, '[')
	for i, m := range messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = m.AppendJSON(dst)
	}
	return append(dst, ']')
}
