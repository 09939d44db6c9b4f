// Package web serves the chat widget that site owners embed: /widget.js, the loader that the script tag
// names, and below /widget/ the chunks that it loads later. The files are built from web/widget into dist
// (`make assets`) and embedded, each with its Brotli and gzip forms.
//
// Names below /widget/ contain a hash of the content, so those answers are immutable. The loader keeps its
// name and is cached briefly.
package web

import (
	"embed"
	"io/fs"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/httpapi"
)

// A clean clone has only the placeholder: everything compiles, and requests for the widget are answered with 503.
//
//go:embed all:dist
var dist embed.FS

// loaderCache is short, so that a new release arrives soon; a page uses the stale loader while it revalidates.
const loaderCache = "public, max-age=300, stale-while-revalidate=86400"

// Config holds the service's settings that the widget needs.
type Config struct {
	MaxFileBytes int64 // of a visitor's file
}

// Assets is the built widget.
type Assets struct {
	files  httpapi.Assets
	limits []byte
}

// New reads the embedded files.
func New(cfg Config) *Assets { return newAssets(cfg, dist, "dist") }

func newAssets(cfg Config, root fs.FS, dir string) *Assets {
	return &Assets{
		files:  httpapi.NewAssets(root, dir, loaderCache),
		limits: []byte(`{"maxFileBytes":` + strconv.FormatInt(cfg.MaxFileBytes, 10) + `}`),
	}
}

// Routes adds the widget to e.
func (a *Assets) Routes(e *echo.Echo) {
	e.GET("/widget.js", func(c echo.Context) error { return a.serve(c, "widget.js") })
	e.GET("/widget/limits.json", a.getLimits)
	e.GET("/widget/:file", func(c echo.Context) error { return a.serve(c, "widget/"+c.Param("file")) })
}

var errNotBuilt = apperr.WidgetNotBuilt.New()

func (a *Assets) serve(c echo.Context, name string) error {
	f, err := a.files.Find(name, errNotBuilt)
	if err != nil {
		return err
	}
	// for pages with Cross-Origin-Embedder-Policy
	c.Response().Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
	return f.Serve(c)
}

func (a *Assets) getLimits(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderCacheControl, loaderCache)
	return c.JSONBlob(http.StatusOK, a.limits)
}
