package http

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// keysMaxAge may be long: a verifier fetches the keys again for an unknown key id.
const keysMaxAge = "public, max-age=300"

func (a api) getKeys(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderCacheControl, keysMaxAge)
	return c.JSONBlob(http.StatusOK, a.Keys.JWKS())
}
