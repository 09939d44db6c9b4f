package http

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/credential"
)

// readMessage marks everything up to a message as read. It ignores the body.
func (a api) readMessage(c echo.Context, who credential.VisitorClaims) error {
	if err := a.Conversations.MarkRead(c.Request().Context(), who, c.Param("id")); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
