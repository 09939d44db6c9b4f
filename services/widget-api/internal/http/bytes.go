package http

import (
	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/ratelimit"
)

const (
	// eventBytes approximates the size of an event in its stream without its data.
	eventBytes = 1 << 10
	// registrationBytes approximates the size of a registration with its profile.
	registrationBytes = 2 << 10
	// fileMessageBytes approximates the message of a file; it is charged before the file is read.
	fileMessageBytes = 3 << 10
)

// Bytes bounds the size of visitors' events in the stream that all tenants share. A nil limiter does not limit.
type Bytes struct {
	Visitor     *ratelimit.Limiter
	Address     *ratelimit.Limiter
	Application *ratelimit.Limiter
	Company     *ratelimit.Limiter
}

// Register charges a registration, before its visitor is known.
func (b Bytes) Register(c echo.Context, app chat.Application, n int) error {
	return spend(c, n, share{b.Address, httpapi.ClientAddress(c)}, share{b.Application, app.ID}, share{b.Company, app.CompanyID})
}

// Message charges a visitor's message.
func (b Bytes) Message(c echo.Context, who credential.VisitorClaims, n int) error {
	return spend(c, n, share{b.Visitor, who.ChatUserID}, share{b.Address, httpapi.ClientAddress(c)},
		share{b.Application, who.AppID}, share{b.Company, who.CompanyID})
}

type share struct {
	budget *ratelimit.Limiter
	caller string
}

// spend charges the narrowest budget first, so that a refusal costs the wider budgets nothing.
func spend(c echo.Context, n int, shares ...share) error {
	for _, s := range shares {
		if err := s.budget.Spend(c, s.caller, n); err != nil {
			return err
		}
	}
	return nil
}

// publish charges the size of a visitor's message, and its idempotency key.
func (l Limits) publish(c echo.Context, who credential.VisitorClaims, n int) error {
	if idempotency.HasKey(c.Request().Header) {
		if err := l.Keys.Spend(c, who.AppID, 1); err != nil {
			return err
		}
	}
	return l.Bytes.Message(c, who, n)
}
