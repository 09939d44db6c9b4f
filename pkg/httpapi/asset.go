package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
)

// Asset is an embedded file of an app, in each encoding that the build created (name.br, name.gz).
type Asset struct {
	cacheControl string
	contentType  string
	forms        func() []form // the preferred one first; loaded at the first request
}

// form is an asset in one content coding.
type form struct {
	encoding string // "": identity
	tag      string // its ETag
	body     []byte
}

// Assets are the files of an embedded app by name. A clean clone has none.
type Assets map[string]Asset

const immutable = "public, max-age=31536000, immutable"

// hashed matches the names that contain a hash of the content: of esbuild, or the beginning of a SHA-256.
var hashed = regexp.MustCompile(`-([0-9A-Z]{8}|[0-9a-f]{8})\.\w+$`)

// NewAssets returns the files of a directory that the build has created, apart from its manifest.json and
// hidden files. Files with a hash in their name are immutable; cacheControl is the Cache-Control of the
// others.
func NewAssets(embedded fs.FS, dir, cacheControl string) Assets {
	root, err := fs.Sub(embedded, dir)
	if err != nil {
		panic("httpapi: " + err.Error()) // the directory is embedded
	}
	assets := Assets{}
	_ = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error { // an embedded directory can be read
		if err == nil && !d.IsDir() && isAsset(name) {
			cache := cacheControl
			if hashed.MatchString(name) {
				cache = immutable
			}
			assets[name] = newAsset(root, name, cache)
		}
		return err
	})
	return assets
}

func isAsset(name string) bool {
	extension := path.Ext(name)
	hidden := strings.HasPrefix(path.Base(name), ".")
	return !hidden && extension != ".gz" && extension != ".br" && name != "manifest.json"
}

// Find returns a file. Errors: notBuilt if there are no files at all, and 404.
func (a Assets) Find(name string, notBuilt error) (Asset, error) {
	asset, ok := a[name]
	switch {
	case len(a) == 0:
		return Asset{}, notBuilt
	case !ok:
		return Asset{}, echo.ErrNotFound
	}
	return asset, nil
}

func newAsset(root fs.FS, name, cacheControl string) Asset {
	a := Asset{cacheControl: cacheControl, contentType: mime.TypeByExtension(path.Ext(name))}
	if path.Ext(name) == ".js" {
		a.contentType = "text/javascript; charset=utf-8" // independent of the system's MIME table
	}
	a.forms = sync.OnceValue(func() []form { return readForms(root, name) })
	return a
}

func readForms(root fs.FS, name string) []form {
	plain, err := fs.ReadFile(root, name)
	if err != nil {
		panic("httpapi: reading an embedded file: " + err.Error())
	}
	sum := sha256.Sum256(plain)
	hash := hex.EncodeToString(sum[:12])
	var forms []form
	for _, coding := range []struct{ name, suffix string }{{"br", ".br"}, {"gzip", ".gz"}} {
		if body, err := fs.ReadFile(root, name+coding.suffix); err == nil {
			forms = append(forms, form{encoding: coding.name, tag: `"` + hash + coding.name + `"`, body: body})
		}
	}
	return append(forms, form{tag: `"` + hash + `"`, body: plain})
}

// Serve responds with the smallest form that the client accepts, or with 304 if the client has it (RFC 9110, 13.1.2).
func (a Asset) Serve(c echo.Context) error {
	f := a.accepted(c.Request().Header.Get(echo.HeaderAcceptEncoding))
	h := c.Response().Header()
	h.Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
	h.Set(echo.HeaderContentType, a.contentType)
	h.Set(echo.HeaderCacheControl, a.cacheControl)
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	h.Set("ETag", f.tag)
	if etagMatches(c.Request().Header.Get("If-None-Match"), f.tag) {
		return c.NoContent(http.StatusNotModified)
	}
	if f.encoding != "" {
		h.Set(echo.HeaderContentEncoding, f.encoding)
	}
	h.Set(echo.HeaderContentLength, strconv.Itoa(len(f.body)))
	c.Response().WriteHeader(http.StatusOK)
	if c.Request().Method == http.MethodHead {
		return nil
	}
	if _, err := c.Response().Write(f.body); err != nil {
		return fmt.Errorf("sending an asset: %w", err)
	}
	return nil
}

func (a Asset) accepted(acceptEncoding string) form {
	forms := a.forms()
	for _, f := range forms {
		if f.encoding == "" || accepts(acceptEncoding, f.encoding) {
			return f
		}
	}
	return forms[len(forms)-1]
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

// etagMatches uses weak comparison, as If-None-Match requires (RFC 9110, 8.8.3.2).
func etagMatches(header, tag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || strings.TrimPrefix(candidate, "W/") == tag {
			return true
		}
	}
	return false
}
