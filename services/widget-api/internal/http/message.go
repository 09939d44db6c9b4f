package http

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/httpapi/form"
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
	if idempotency.HasKey(c.Request().Header) {
		d := r.draft()
		return a.writeOnce(c, who, idempotency.Fingerprint(string(d.Type), idempotency.Canonical(d.Data)),
			func(ctx context.Context, identity chat.MessageIdentity) (chat.Message, error) {
				return a.Conversations.Write(ctx, who, payerOf(c, who), d, identity)
			})
	}
	m, err := a.Conversations.Write(c.Request().Context(), who, payerOf(c, who), r.draft(), chat.MessageIdentity{})
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusCreated, m.AppendJSON(nil))
}

// writeOnce handles requests with an Idempotency-Key. The fingerprint identifies the content of the request.
func (a api) writeOnce(
	c echo.Context,
	who credential.VisitorClaims,
	fingerprint string,
	write func(context.Context, chat.MessageIdentity) (chat.Message, error),
) error {
	request := idempotency.Request{
		Scope: "POST /message|" + who.ChatUserID, Fingerprint: fingerprint, Permit: a.Limits.key(c, who),
	}
	return a.Idempotent.Answer(c, request,
		func(ctx context.Context, identity chat.MessageIdentity) (idempotency.Answer, error) {
			m, err := write(ctx, identity)
			return idempotency.Answer{Status: http.StatusCreated, Body: m.AppendJSON(nil)}, err
		})
}

func (a api) getHistory(c echo.Context, who credential.VisitorClaims) error {
	page, err := pageOf(c.Request().URL.RawQuery)
	if err != nil {
		return err
	}
	page.Address = httpapi.ClientAddress(c)
	return a.Conversations.History(c.Request().Context(), who, page, answerHistory(c, page))
}

// answerHistory returns the function that answers with a page of a history.
func answerHistory(c echo.Context, page conversation.PageQuery) func(conversation.Answer) error {
	return func(answer conversation.Answer) error {
		header := c.Response().Header()
		header.Set(echo.HeaderCacheControl, "no-store")
		header.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
		if answer.More {
			header.Set("Link", linkToNext(page, answer.Messages[0].ID))
		}
		if answer.Reading != nil {
			setReadingHeaders(header, *answer.Reading)
		}
		return writeHistory(
			c.Response(), form.NewPace(c, maxHistoryTime, answer.Slot, form.ForWriting), answer.ChatID,
			answer.Messages,
		)
	}
}

const (
	// historyChunk is the size of the encoding buffer.
	historyChunk = 32 << 10
	// maxHistoryTime bounds how long a client may take to receive a history, which stays in memory meanwhile.
	maxHistoryTime = time.Minute
)

// writeHistory sends the records in chunks, so that a history is not in memory twice. They are encoded by
// hand, because their data must pass byte for byte.
func writeHistory(w http.ResponseWriter, p *form.Pace, chatID string, messages []chat.Message) error {
	chunk := append(make([]byte, 0, min(historyChunk+historyChunk/4, 256*len(messages)+2)), '[')
	for i, m := range messages {
		if i > 0 {
			chunk = append(chunk, ',')
		}
		chunk = m.AppendDelivery(chunk, chatID)
		if len(chunk) < historyChunk {
			continue
		}
		if _, err := p.Write(w, chunk); err != nil {
			return err
		}
		chunk = chunk[:0]
	}
	chunk = append(chunk, ']')
	if p.Bytes() == 0 { // all of it: no chunked encoding needed
		w.Header().Set(echo.HeaderContentLength, strconv.Itoa(len(chunk)))
	}
	_, err := p.Write(w, chunk)
	return err
}
