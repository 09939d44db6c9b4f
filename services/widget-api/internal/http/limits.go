package http

import (
	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/ratelimit"
)

// Limits bound how often the API may be called. A nil limiter does not limit.
type Limits struct {
	Address      *ratelimit.Limiter // all requests of an address
	Register     *ratelimit.Limiter // registrations from an address
	Visitor      *ratelimit.Limiter // requests with a visitor's tokens
	AuthFailures *ratelimit.Limiter // authentication failures of an address
	Keys         *ratelimit.Limiter // idempotency keys of an application's visitors
	KeysVisitor  *ratelimit.Limiter // of one visitor
	KeysSite     *ratelimit.Limiter // of the visitors from one site, see [event.SiteOf]
}

// key allows a visitor's request to add an idempotency key.
func (l Limits) key(c echo.Context, who credential.VisitorClaims) idempotency.Permit {
	return func() (giveBack func(), err error) {
		return ratelimit.SpendAll(
			c,
			ratelimit.Account{Limiter: l.KeysVisitor, Caller: who.ChatUserID},
			ratelimit.Account{Limiter: l.KeysSite, Caller: event.SiteOf(httpapi.ClientAddress(c))},
			ratelimit.Account{Limiter: l.Keys, Caller: who.AppID},
		)
	}
}

// payerOf returns the account of a visitor's request: the visitor at the client's address.
func payerOf(c echo.Context, who credential.VisitorClaims) event.Account {
	return event.ForVisitor(who.CompanyID, who.AppID, who.ChatUserID, httpapi.ClientAddress(c))
}
