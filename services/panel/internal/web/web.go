// Package web serves the panel's app. The files are built from web/panel into dist (`make assets`) and
// embedded, each with its Brotli and gzip forms.
package web

import (
	"embed"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/httpapi"
)

// A clean clone has only the placeholder: everything compiles, and requests for the app are answered with 503.
//
//go:embed all:dist
var dist embed.FS

// Config holds the addresses that the app may reach.
type Config struct {
	WidgetBaseURL string // origin of visitors' files
}

// Assets is the built app.
type Assets struct {
	files  httpapi.Assets
	policy string
}

// New reads the embedded files.
func New(cfg Config) *Assets {
	return &Assets{files: httpapi.NewAssets(dist, "dist", "no-cache"), policy: policy(cfg.WidgetBaseURL)}
}

// policy is the Content-Security-Policy of the app (CSP 3).
func policy(widget string) string {
	widget = strings.TrimSuffix(widget, "/")
	return strings.Join([]string{
		"default-src 'none'",
		"script-src 'self'",
		"style-src 'self'",
		strings.TrimSpace("img-src 'self' data: blob: https: " + widget),
		strings.TrimSpace("media-src 'self' blob: " + widget),
		strings.TrimSpace("connect-src 'self' " + widget),
		"font-src 'self'",
		"frame-src 'self'", "frame-ancestors 'self'", "form-action 'self'", "base-uri 'none'", "manifest-src 'self'",
	}, "; ")
}

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
	f, err := a.files.Find(name, errNotBuilt)
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentSecurityPolicy, a.policy)
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	return f.Serve(c)
}
