// Package web serves the panel's app. The files are built from web/panel into dist (`make assets`) and embedded, each beside its Brotli
// and gzip forms.
package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
)

// A clean clone has only the placeholder: everything compiles, and requests for the app are answered with 503.
//
//go:embed all:dist
var dist embed.FS

const (
	pageCache  = "no-cache"
	assetCache = "public, max-age=31536000, immutable"
)

// Config is what the app may reach.
type Config struct {
	WidgetBaseURL string // where visitors' files are
}

// asset is one file in all its encodings.
type asset struct {
	contentType, cache, tag string
	plain, gzip, brotli     []byte
}

// Assets is the built app.
type Assets struct {
	files  map[string]asset
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
	a := &Assets{files: map[string]asset{}, policy: policy(cfg.WidgetBaseURL)}
	_ = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error { // an embedded directory can be read
		if err == nil && !d.IsDir() && wanted(name) {
			a.files[name] = read(root, name)
		}
		return err
	})
	return a
}

func wanted(name string) bool {
	return !strings.HasPrefix(path.Base(name), ".") && !strings.HasSuffix(name, ".gz") && !strings.HasSuffix(name, ".br") && name != "manifest.json"
}

func read(root fs.FS, name string) asset {
	plain, _ := fs.ReadFile(root, name) // it has just been listed
	sum := sha256.Sum256(plain)
	f := asset{contentType: mime.TypeByExtension(path.Ext(name)), cache: pageCache, tag: hex.EncodeToString(sum[:12]), plain: plain}
	if path.Ext(name) == ".js" {
		f.contentType = "text/javascript; charset=utf-8"
	}
	if hashed(path.Base(name)) {
		f.cache = assetCache
	}
	f.gzip, _ = fs.ReadFile(root, name+".gz") // absent: sent as it is
	f.brotli, _ = fs.ReadFile(root, name+".br")
	return f
}

// hashed reports whether a name ends with esbuild's hash: a dash and eight capitals or digits.
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

var errNotBuilt = &apperr.Error{Code: apperr.Unavailable, Reason: "PANEL_NOT_BUILT", Message: "This build has no panel. Run `make assets` and build again."}

func (a *Assets) serve(c echo.Context, name string) error {
	f, ok := a.files[name]
	if !ok && !a.Built() {
		return errNotBuilt
	}
	if !ok {
		return echo.ErrNotFound
	}
	body, encoding := f.encoded(c.Request().Header.Get(echo.HeaderAcceptEncoding))
	h := c.Response().Header()
	h.Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
	h.Set(echo.HeaderContentType, f.contentType)
	h.Set(echo.HeaderCacheControl, f.cache)
	h.Set(echo.HeaderContentSecurityPolicy, a.policy)
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	tag := `"` + f.tag + encoding + `"`
	h.Set("ETag", tag)
	if strings.Contains(c.Request().Header.Get("If-None-Match"), tag) {
		return c.NoContent(http.StatusNotModified)
	}
	if encoding != "" {
		h.Set(echo.HeaderContentEncoding, encoding)
	}
	h.Set(echo.HeaderContentLength, strconv.Itoa(len(body)))
	return c.Blob(http.StatusOK, f.contentType, body)
}

// encoded returns the smallest form that the client takes, and its content coding.
func (f asset) encoded(accept string) (body []byte, encoding string) {
	if f.brotli != nil && accepts(accept, "br") {
		return f.brotli, "br"
	}
	if f.gzip != nil && accepts(accept, "gzip") {
		return f.gzip, "gzip"
	}
	return f.plain, ""
}

// accepts reports whether Accept-Encoding names the coding with a weight above zero (RFC 9110, 12.5.3).
func accepts(header, coding string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, parameters, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(name), coding) {
			continue
		}
		weight, found := strings.CutPrefix(strings.ReplaceAll(strings.TrimSpace(parameters), " ", ""), "q=")
		q, err := strconv.ParseFloat(weight, 64)
		return !found || err != nil || q > 0
	}
	return false
}
