// Package web serves the chat widget that site owners embed: /widget.js, the loader that the script tag names, and below /widget/
// the chunks that it loads later. The files are built from web/widget into dist (`make assets`) and embedded, each with its
// Brotli and gzip forms.
//
// Names below /widget/ contain a hash of the content, so those answers are immutable. The loader keeps its name and is cached
// briefly.
package web

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/httpapi"
)

// A clean clone has only the placeholder: everything compiles, and requests for the widget are answered with 503.
//
//go:embed all:dist
var dist embed.FS

const (
	// loaderCache is short, so that a new release arrives soon; a page uses the stale loader while it revalidates.
	loaderCache = "public, max-age=300, stale-while-revalidate=86400"
	chunkCache  = "public, max-age=31536000, immutable"
)

// Config holds the service's settings that the widget needs.
type Config struct {
	MaxFileBytes int64 // of a visitor's file
}

// Assets is the built widget.
type Assets struct {
	files  map[string]httpapi.Asset
	limits []byte
}

// New reads the embedded files.
func New(cfg Config) *Assets {
	root, err := fs.Sub(dist, "dist")
	if err != nil {
		panic("web: " + err.Error()) // the directory is embedded
	}
	return newAssets(cfg, root)
}

func newAssets(cfg Config, root fs.FS) *Assets {
	a := &Assets{files: map[string]httpapi.Asset{}, limits: []byte(`{"maxFileBytes":` + strconv.FormatInt(cfg.MaxFileBytes, 10) + `}`)}
	names, _ := fs.Glob(root, "widget/*") // the pattern is well formed
	for _, name := range append(names, "widget.js") {
		info, err := fs.Stat(root, name)
		if err != nil || info.IsDir() || path.Ext(name) == ".gz" || path.Ext(name) == ".br" {
			continue
		}
		cache := loaderCache
		if strings.Contains(path.Base(name), "-") { // a hash
			cache = chunkCache
		}
		a.files[name] = httpapi.NewAsset(root, name, cache)
	}
	return a
}

// Built reports whether the binary has the widget.
func (a *Assets) Built() bool { return len(a.files) > 0 }

// Routes adds the widget to e.
func (a *Assets) Routes(e *echo.Echo) {
	e.GET("/widget.js", func(c echo.Context) error { return a.serve(c, "widget.js") })
	e.GET("/widget/limits.json", a.getLimits)
	e.GET("/widget/:file", func(c echo.Context) error { return a.serve(c, "widget/"+c.Param("file")) })
}

var errNotBuilt = apperr.WidgetNotBuilt.New()

func (a *Assets) serve(c echo.Context, name string) error {
	f, ok := a.files[name]
	if !ok && !a.Built() {
		return errNotBuilt
	}
	if !ok {
		return echo.ErrNotFound
	}
	c.Response().Header().Set("Cross-Origin-Resource-Policy", "cross-origin") // for pages with Cross-Origin-Embedder-Policy
	return f.Serve(c)
}

func (a *Assets) getLimits(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderCacheControl, loaderCache)
	return c.JSONBlob(http.StatusOK, a.limits)
}
