package httpapi

import (
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
)

// TokenMissing says that a request came without the credential that it needs; how says where that belongs.
func TokenMissing(how string) error {
	return apperr.TokenMissing.WithMessage("Unauthorized: the token is missing. " + how)
}

// WrongAuthScheme says that a request has a credential, but not in the form that is asked for; how says which.
func WrongAuthScheme(how string) error {
	return apperr.WrongAuthScheme.WithMessage("Unauthorized: the token is not sent in the required form. " + how)
}

const howBearer = "Send one header: Authorization: Bearer <accessToken>."

// Bearer returns the token of the Authorization header (RFC 6750, 2.1). Without the header or with an empty token the error is
// [TokenMissing], with more than one header or another scheme [WrongAuthScheme].
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
