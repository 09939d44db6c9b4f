package http

import (
	"net/http"
	"net/textproto"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/ratelimit"
)

const accessTokenHeader = "x-access-token"

// companyHandler handles a request of an authenticated company.
type companyHandler func(c echo.Context, companyID string) error

// forCompany authenticates the company before it reads the body, and rejects any other query parameters.
func (a api) forCompany(next companyHandler, parameters ...string) echo.HandlerFunc {
	name := textproto.CanonicalMIMEHeaderKey(accessTokenHeader)
	return func(c echo.Context) error {
		secret, err := accessToken(c.Request().Header, name)
		if err != nil {
			return a.Limits.AuthFailures.Failed(c, err)
		}
		companyID, err := a.Authenticator.Company(c.Request().Context(), secret)
		if err != nil {
			return a.Limits.AuthFailures.Failed(c, err)
		}
		if err := a.Limits.admit(c, secret); err != nil {
			return err
		}
		if err := httpapi.CheckQuery(c, parameters...); err != nil {
			return err
		}
		httpapi.HoldFor(c, httpapi.Owner{Company: companyID})
		return next(c, companyID)
	}
}

const howToSend = "Send one header: x-access-token: <company access token>."

// accessToken returns the single value of the header.
func accessToken(h http.Header, name string) (string, error) {
	values := h[name]
	switch {
	case len(values) == 0 && len(h[echo.HeaderAuthorization]) > 0, len(values) > 1:
		return "", httpapi.WrongAuthScheme(howToSend)
	case len(values) == 0, values[0] == "":
		return "", httpapi.TokenMissing(howToSend)
	}
	const bearer = "Bearer "
	if len(values[0]) > len(bearer) && strings.EqualFold(values[0][:len(bearer)], bearer) {
		return "", httpapi.WrongAuthScheme(howToSend)
	}
	return values[0], nil
}

// Limits bound how often the API may be called. A nil limiter does not limit.
type Limits struct {
	Token        *ratelimit.Limiter // by access token
	Keys         *ratelimit.Limiter // idempotency keys, by company
	AuthFailures *ratelimit.Limiter // by address
}

// key charges the request's idempotency key, if it has one.
func (l Limits) key(c echo.Context, companyID string) error {
	if !idempotency.HasKey(c.Request().Header) {
		return nil
	}
	return l.Keys.Spend(c, companyID, 1)
}

func (l Limits) admit(c echo.Context, secret string) error {
	if l.Token == nil {
		return nil
	}
	hash, _ := credential.HashAccessToken(secret)
	return l.Token.Admit(c, hash)
}
