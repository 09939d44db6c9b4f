package httpapi

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5emb"

	"github.com/parley-chat/parley/pkg/chat"
)

// Document serves the OpenAPI document at GET /openapi.json.
func Document(e *echo.Echo, openapi []byte) {
	e.GET("/openapi.json", func(c echo.Context) error { return c.JSONBlob(http.StatusOK, openapi) })
}

// Docs serves the OpenAPI document and, at GET /docs, a page to read it. All assets come out of the binary.
func Docs(e *echo.Echo, title string, openapi []byte) {
	Document(e, openapi)
	page := servePage(v5emb.NewWithConfig(swgui.Config{SettingsUI: map[string]string{
		"persistAuthorization": "true", // a reload keeps the token that was entered
	}})(title, "/openapi.json", "/docs/"))
	e.GET("/docs", page)
	e.GET("/docs/*", page)
}

var documentVersion = regexp.MustCompile(`"version"\s*:\s*"[^"]*"`)

// WithVersion returns an OpenAPI document in JSON with the version of the release, without the v of its tag. In the document, the
// version of info stands before any other member of that name.
func WithVersion(openapi []byte, version string) []byte {
	at := documentVersion.FindIndex(openapi)
	if at == nil {
		return openapi
	}
	release := chat.AppendString([]byte(`"version": `), strings.TrimPrefix(version, "v"))
	return slices.Concat(openapi[:at[0]], release, openapi[at[1]:])
}

// servePage answers with what pages has, and as everywhere else where it has nothing.
func servePage(pages http.Handler) echo.HandlerFunc {
	return func(c echo.Context) error {
		w := &pageWriter{ResponseWriter: c.Response()}
		pages.ServeHTTP(w, c.Request())
		if !w.refused {
			return nil
		}
		for _, name := range []string{echo.HeaderContentType, echo.HeaderContentLength, echo.HeaderXContentTypeOptions} {
			w.Header().Del(name) // said of the file server's own words
		}
		return echo.ErrNotFound
	}
}

// pageWriter discards net/http's own answer for a missing file.
type pageWriter struct {
	http.ResponseWriter
	refused bool
}

// WriteHeader implements [http.ResponseWriter].
func (w *pageWriter) WriteHeader(status int) {
	if w.refused = status >= http.StatusBadRequest; !w.refused {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write implements [http.ResponseWriter].
func (w *pageWriter) Write(p []byte) (int, error) {
	if w.refused {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}
