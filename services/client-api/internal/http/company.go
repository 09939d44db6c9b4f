package http

import (
	"net/http"
	"net/textproto"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/httpapi"
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
			return a.Limits.AuthFailures.CountFailure(c, err)
		}
		companyID, err := a.Authenticator.Company(c.Request().Context(), secret)
		if err != nil {
			return a.Limits.AuthFailures.CountFailure(c, err)
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
