package http

import (
	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/services/widget-api/internal/application"
)

// visitorHandler handles a request of a visitor with a valid token.
type visitorHandler func(c echo.Context, who credential.VisitorClaims) error

// forVisitor authenticates the visitor before it reads the body, and rejects any other query parameters.
func (a api) forVisitor(next visitorHandler, parameters ...string) echo.HandlerFunc {
	return func(c echo.Context) error {
		token, err := httpapi.Bearer(c)
		if err != nil {
			return a.Limits.AuthFailures.CountFailure(c, err)
		}
		who, err := a.Verifier.Verify(c.Request().Context(), token)
		if err != nil {
			return a.Limits.AuthFailures.CountFailure(c, err)
		}
		if err := a.Limits.Visitor.Admit(c, who.ChatUserID); err != nil {
			return err
		}
		if err := a.checkOrigin(c, who); err != nil {
			return err
		}
		if err := httpapi.CheckQuery(c, parameters...); err != nil {
			return err
		}
		httpapi.HoldFor(c, httpapi.Owner{Application: who.AppID, Visitor: who.ChatUserID})
		err = next(c, who)
		return a.Limits.AuthFailures.CountFailure(c, err) // the visitor may be deleted, or the tokens revoked
	}
}

// checkOrigin refuses pages of origins that the visitor's application does not allow. The handler reports a
// missing application.
func (a api) checkOrigin(c echo.Context, who credential.VisitorClaims) error {
	origin := c.Request().Header.Get(echo.HeaderOrigin)
	if origin == "" {
		return nil
	}
	app, err := a.Applications.Find(c.Request().Context(), who.AppID)
	if apperr.Is(err, apperr.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return application.CheckOrigin(app, origin)
}
