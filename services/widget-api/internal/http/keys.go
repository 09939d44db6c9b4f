package http

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// keysMaxAge may be long: whoever meets a token of a key that it does not know asks again.
const keysMaxAge = "public, max-age=300"

func (a api) getKeys(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderCacheControl, keysMaxAge)
	return c.JSONBlob(http.StatusOK, a.Keys.JWKS())
}
