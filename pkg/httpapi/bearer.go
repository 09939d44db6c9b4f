package httpapi

import (
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
)

// TokenMissing returns the error for a request without a required credential; how describes where it must be sent.
func TokenMissing(how string) error {
	return apperr.TokenMissing.WithMessage("Unauthorized: the token is missing. " + how)
}

// WrongAuthScheme returns the error for a credential in the wrong form; how describes the required one.
func WrongAuthScheme(how string) error {
	return apperr.WrongAuthScheme.WithMessage("Unauthorized: the token is not sent in the required form. " + how)
}

const howBearer = "Send one header: Authorization: Bearer <accessToken>."

// Bearer returns the token of the Authorization header (RFC 6750, 2.1). The error is [TokenMissing] without the header
// or with an empty token, and [WrongAuthScheme] with more than one header or another scheme.
func Bearer(c echo.Context) (string, error) {
	values := c.Request().Header[echo.HeaderAuthorization]
	switch {
	case len(values) == 0, len(values) == 1 && strings.TrimSpace(values[0]) == "":
		return "", TokenMissing(howBearer)
	case len(values) > 1:
		return "", WrongAuthScheme(howBearer)
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", WrongAuthScheme(howBearer)
	}
	if token = strings.Trim(token, " "); token == "" {
		return "", TokenMissing(howBearer)
	}
	return token, nil
}
