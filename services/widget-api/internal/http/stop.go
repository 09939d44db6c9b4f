package http

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/credential"
)

// stopMessage stops a message that a bot is still streaming. It ignores the body.
func (a api) stopMessage(c echo.Context, who credential.VisitorClaims) error {
	if err := a.Conversations.Stop(c.Request().Context(), who, c.Param("id")); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
