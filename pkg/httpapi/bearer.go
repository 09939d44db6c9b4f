package httpapi

import (
	"strings"

	"github.com/labstack/echo/v4"
)

// Bearer returns the token of the Authorization header (RFC 6750, 2.1). It reports false when there is no such header, more
// than one, another scheme or an empty token.
func Bearer(c echo.Context) (string, bool) {
	const scheme = "Bearer "
	values := c.Request().Header[echo.HeaderAuthorization]
	if len(values) != 1 || len(values[0]) <= len(scheme) || !strings.EqualFold(values[0][:len(scheme)], scheme) {
		return "", false
	}
	token := strings.Trim(values[0][len(scheme):], " ")
	return token, token != ""
}
