// Package web serves the panel's app. The files are built from web/panel into dist (`make assets`) and embedded, each with its
// Brotli and gzip forms.
package web

import (
	"embed"
	"io/fs"
	"path"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/httpapi"
)

// A clean clone has only the placeholder: everything compiles, and requests for the app are answered with 503.
//
//go:embed all:dist
var dist embed.FS

const (
	pageCache  = "no-cache"
	assetCache = "public, max-age=31536000, immutable"
)

// Config holds the addresses that the app may reach.
type Config struct {
	WidgetBaseURL string // origin of visitors' files
}

// Assets is the built app.
type Assets struct {
	files  map[string]httpapi.Asset
	policy string
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
	a := &Assets{files: map[string]httpapi.Asset{}, policy: policy(cfg.WidgetBaseURL)}
	_ = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error { // an embedded directory can be read
		if err == nil && !d.IsDir() && wanted(name) {
			cache := pageCache
			if hashed(path.Base(name)) {
				cache = assetCache
			}
			a.files[name] = httpapi.NewAsset(root, name, cache)
		}
		return err
	})
	return a
}

func wanted(name string) bool {
	return !strings.HasPrefix(path.Base(name), ".") && !strings.HasSuffix(name, ".gz") && !strings.HasSuffix(name, ".br") && name != "manifest.json"
}

// hashed reports whether a name ends with esbuild's hash: a dash and eight upper-case letters or digits.
func hashed(name string) bool {
	const length = 8
	stem := strings.TrimSuffix(name, path.Ext(name))
	i := strings.LastIndexByte(stem, '-')
	return i >= 0 && len(stem)-i-1 == length && strings.Trim(stem[i+1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// policy is the Content-Security-Policy of the app (CSP 3).
func policy(widget string) string {
	widget = strings.TrimSuffix(widget, "/")
	return strings.Join([]string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", strings.TrimSpace("img-src 'self' data: blob: https: " + widget),
		strings.TrimSpace("media-src 'self' blob: " + widget), strings.TrimSpace("connect-src 'self' " + widget), "font-src 'self'",
		"frame-src 'self'", "frame-ancestors 'self'", "form-action 'self'", "base-uri 'none'", "manifest-src 'self'",
	}, "; ")
}

// Built reports whether the binary has the app.
func (a *Assets) Built() bool { return len(a.files) > 0 }

// Routes adds the app to e.
func (a *Assets) Routes(e *echo.Echo) {
	e.GET("/", func(c echo.Context) error { return a.serve(c, "index.html") })
	e.GET("/*", func(c echo.Context) error {
		if strings.HasPrefix(c.Request().URL.Path, "/api/") {
			return echo.ErrNotFound
		}
		return a.serve(c, c.Param("*"))
	})
}

var errNotBuilt = apperr.PanelNotBuilt.New()

func (a *Assets) serve(c echo.Context, name string) error {
	f, ok := a.files[name]
	if !ok && !a.Built() {
		return errNotBuilt
	}
	if !ok {
		return echo.ErrNotFound
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentSecurityPolicy, a.policy)
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	return f.Serve(c)
}
