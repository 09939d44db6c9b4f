package httpapi

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/chat"
)

// Document serves the OpenAPI document at GET /openapi.json.
func Document(e *echo.Echo, openapi []byte) {
	e.GET("/openapi.json", func(c echo.Context) error { return c.JSONBlob(http.StatusOK, openapi) })
}

var documentVersion = regexp.MustCompile(`"version"\s*:\s*"[^"]*"`)

// WithVersion returns an OpenAPI document in JSON with the release version, without the v of its tag. In the document,
// the version of info must precede any other member with that name.
func WithVersion(openapi []byte, version string) []byte {
	at := documentVersion.FindIndex(openapi)
	if at == nil {
		return openapi
	}
	release := chat.AppendString([]byte(`"version": `), strings.TrimPrefix(version, "v"))
	return slices.Concat(openapi[:at[0]], release, openapi[at[1]:])
}
