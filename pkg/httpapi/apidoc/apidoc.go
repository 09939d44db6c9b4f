// Package apidoc serves an API's OpenAPI document with a page to read it. It is apart from [httpapi], because the page's assets are
// megabytes in every binary that imports it.
package apidoc

import (
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5emb"

	"github.com/parley-chat/parley/pkg/httpapi"
)

// Serve serves the OpenAPI document as [httpapi.Document] does and, at GET /docs, a page to read it. All assets come out of the binary.
func Serve(e *echo.Echo, title string, openapi []byte) {
	httpapi.Document(e, openapi)
	page := servePage(v5emb.NewWithConfig(swgui.Config{SettingsUI: map[string]string{
		"persistAuthorization": "true", // a reload keeps the token that was entered
	}})(title, "/openapi.json", "/docs/"))
	e.GET("/docs", page)
	e.GET("/docs/*", page)
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
