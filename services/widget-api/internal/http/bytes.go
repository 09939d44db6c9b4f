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
	// eventBytes is about what an event takes in its stream beside its data.
	eventBytes = 1 << 10
	// registrationBytes is about what a registration takes, with its profile.
	registrationBytes = 2 << 10
	// fileMessageBytes is about what the message of a file takes; it is spent before anything of the file is read.
	fileMessageBytes = 3 << 10
)

// Bytes bound what visitors' events take in the stream, which all tenants share; nil ones do not.
type Bytes struct {
	Visitor     *ratelimit.Limiter
	Address     *ratelimit.Limiter
	Application *ratelimit.Limiter
	Company     *ratelimit.Limiter
}

// Register spends the bytes of a registration, whose visitor is not known yet.
func (b Bytes) Register(c echo.Context, app chat.Application, n int) error {
	return spend(c, n, share{b.Address, httpapi.ClientAddress(c)}, share{b.Application, app.ID}, share{b.Company, app.CompanyID})
}

// Message spends the bytes of a visitor's message.
func (b Bytes) Message(c echo.Context, who credential.VisitorClaims, n int) error {
	return spend(c, n, share{b.Visitor, who.ChatUserID}, share{b.Address, httpapi.ClientAddress(c)},
		share{b.Application, who.AppID}, share{b.Company, who.CompanyID})
}

type share struct {
	budget *ratelimit.Limiter
	caller string
}

// spend asks the narrowest budget first, so that what it refuses costs the wider ones nothing.
func spend(c echo.Context, n int, shares ...share) error {
	for _, s := range shares {
		if err := s.budget.Spend(c, s.caller, n); err != nil {
			return err
		}
	}
	return nil
}

// publish spends what a visitor's message takes, and its idempotency key.
func (l Limits) publish(c echo.Context, who credential.VisitorClaims, n int) error {
	if idempotency.Asked(c.Request().Header) {
		if err := l.Keys.Spend(c, who.AppID, 1); err != nil {
			return err
		}
	}
	return l.Bytes.Message(c, who, n)
}
