// Package apidoc serves an API's OpenAPI document with a page to read it. It is separate from [httpapi], because the
// page's assets add megabytes to every binary that imports it.
package apidoc

import (
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5emb"

	"github.com/parley-chat/parley/pkg/httpapi"
)

// Serve serves the OpenAPI document as [httpapi.Document] does, and at GET /docs a page to read it. All assets are
// embedded.
func Serve(e *echo.Echo, title string, openapi []byte) {
	httpapi.Document(e, openapi)
	page := servePage(v5emb.NewWithConfig(swgui.Config{SettingsUI: map[string]string{
		"persistAuthorization": "true", // a reload keeps the entered token
	}})(title, "/openapi.json", "/docs/"))
	e.GET("/docs", page)
	e.GET("/docs/*", page)
}

// servePage serves files from pages, and the API's 404 for missing ones.
func servePage(pages http.Handler) echo.HandlerFunc {
	return func(c echo.Context) error {
		w := &pageWriter{ResponseWriter: c.Response()}
		pages.ServeHTTP(w, c.Request())
		if !w.refused {
			return nil
		}
		for _, name := range []string{
			echo.HeaderContentType,
			echo.HeaderContentLength,
			echo.HeaderXContentTypeOptions,
		} {
			w.Header().Del(name) // set by the file server for its own error page
		}
		return echo.ErrNotFound
	}
}

// pageWriter discards net/http's error body for a missing file.
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
