package http

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/httpapi"
)

// exceptSend answers GET /message/send with 405, with or without a credential. The router alone would match
// /message/:id.
func exceptSend(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Param("id") == "send" {
			c.Response().Header().Set(echo.HeaderAllow, "OPTIONS, POST")
			return echo.ErrMethodNotAllowed
		}
		return next(c)
	}
}

// getMessage answers the status of a message, without the times of steps that have not happened.
func (a api) getMessage(c echo.Context, companyID string) error {
	id, s, err := a.Statuses.Status(c.Request().Context(), companyID, c.Param("id"))
	if err != nil {
		return httpapi.Busy(err)
	}
	body := chat.AppendString([]byte(`{"messageId":`), id)
	body = append(body, `,"status":"`+s.Status()+`"`...)
	if s.ChatID != "" {
		body = chat.AppendString(append(body, `,"chatId":`...), s.ChatID)
	}
	for _, t := range []struct {
		name string
		at   time.Time
	}{
		{"acceptedAt", s.AcceptedAt},
		{"storedAt", s.StoredAt},
		{"deliveredAt", s.Delivered()},
		{"readAt", s.ReadAt},
		{"failedAt", s.Failure.At},
	} {
		if !t.at.IsZero() {
			body = append(chat.AppendTime(append(body, `,"`+t.name+`":"`...), t.at), '"')
		}
	}
	if s.Failure.Reason != "" {
		body = chat.AppendString(append(body, `,"reason":`...), s.Failure.Reason)
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSONBlob(http.StatusOK, append(body, '}'))
}
