// Package web serves the chat widget that site owners embed: /widget.js, the loader that the script tag names, and below
// /widget/ what it loads later. The files are built from web/widget into dist (`make assets`) and embedded, each beside its
// Brotli and gzip forms.
//
// Names below /widget/ carry a hash of the content, so those answers are immutable. The loader keeps its name and is cached
// briefly.
package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
)

// A clean clone has only the placeholder: everything compiles, and requests for the widget are answered with 503.
//
//go:embed all:dist
var dist embed.FS

const (
	// loaderCache is short, so that a new release arrives; a page that finds the old one meanwhile is not held up.
	loaderCache = "public, max-age=300, stale-while-revalidate=86400"
	chunkCache  = "public, max-age=31536000, immutable"
)

// Config is what the widget must know of the service.
type Config struct {
	MaxFileBytes int64 // of a visitor's file
}

// asset is one file in all its encodings.
type asset struct {
	contentType, cache, tag string
	plain, gzip, brotli     []byte
}

// Assets is the built widget.
type Assets struct {
	files  map[string]asset
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
	a := &Assets{files: map[string]asset{}, limits: []byte(`{"maxFileBytes":` + strconv.FormatInt(cfg.MaxFileBytes, 10) + `}`)}
	if f, ok := read(root, "widget.js", loaderCache); ok {
		a.files["widget.js"] = f
	}
	names, _ := fs.Glob(root, "widget/*") // the pattern is well formed
	for _, name := range names {
		if f, ok := read(root, name, chunkCache); ok && !strings.HasSuffix(name, ".gz") && !strings.HasSuffix(name, ".br") {
			a.files[name] = f
		}
	}
	return a
}

func read(root fs.FS, name, cache string) (asset, bool) {
	plain, err := fs.ReadFile(root, name)
	if err != nil {
		return asset{}, false
	}
	sum := sha256.Sum256(plain)
	f := asset{contentType: mime.TypeByExtension(path.Ext(name)), cache: cache, tag: hex.EncodeToString(sum[:12]), plain: plain}
	if path.Ext(name) == ".js" {
		f.contentType = "text/javascript; charset=utf-8"
	}
	if !strings.Contains(path.Base(name), "-") { // no hash in the name
		f.cache = loaderCache
	}
	f.gzip, _ = fs.ReadFile(root, name+".gz") // absent: sent as it is
	f.brotli, _ = fs.ReadFile(root, name+".br")
	return f, true
}

// Built reports whether the binary has the widget.
func (a *Assets) Built() bool { return len(a.files) > 0 }

// Routes adds the widget to e.
func (a *Assets) Routes(e *echo.Echo) {
	e.GET("/widget.js", func(c echo.Context) error { return a.serve(c, "widget.js") })
	e.GET("/widget/limits.json", a.getLimits)
	e.GET("/widget/:file", func(c echo.Context) error { return a.serve(c, "widget/"+c.Param("file")) })
}

var errNotBuilt = &apperr.Error{Code: apperr.Unavailable, Reason: "WIDGET_NOT_BUILT", Message: "This build has no widget. Run `make assets` and build again."}

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
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin") // for pages with Cross-Origin-Embedder-Policy
	tag := `"` + f.tag + encoding + `"`
	h.Set("ETag", tag)
	if matches(c.Request().Header.Get("If-None-Match"), tag) {
		return c.NoContent(http.StatusNotModified)
	}
	if encoding != "" {
		h.Set(echo.HeaderContentEncoding, encoding)
	}
	h.Set(echo.HeaderContentLength, strconv.Itoa(len(body)))
	c.Response().WriteHeader(http.StatusOK)
	if c.Request().Method == http.MethodHead {
		return nil
	}
	if _, err := c.Response().Write(body); err != nil {
		return errors.Join(errors.New("sending the widget"), err)
	}
	return nil
}

func (a *Assets) getLimits(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderCacheControl, loaderCache)
	return c.JSONBlob(http.StatusOK, a.limits)
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

func matches(header, tag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || strings.TrimPrefix(candidate, "W/") == tag {
			return true
		}
	}
	return false
}
