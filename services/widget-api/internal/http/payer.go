package http

import (
	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/idempotency"
)

// payerOf returns the account of a visitor's request: the visitor at the client's address.
func payerOf(c echo.Context, who credential.VisitorClaims) event.Account {
	return event.ForVisitor(who.CompanyID, who.AppID, who.ChatUserID, httpapi.ClientAddress(c))
}

// key charges the request's idempotency key, if it has one.
func (l Limits) key(c echo.Context, who credential.VisitorClaims) error {
	if !idempotency.HasKey(c.Request().Header) {
		return nil
	}
	return l.Keys.Spend(c, who.AppID, 1)
}
