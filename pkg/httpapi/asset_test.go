package httpapi

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/labstack/echo/v4"
)

func TestAnAssetIsServedInTheSmallestFormThatTheClientTakes(t *testing.T) {
	t.Parallel()
	root := fstest.MapFS{
		"app.js": {Data: []byte("plain")}, "app.js.br": {Data: []byte("br")}, "app.js.gz": {Data: []byte("gz")},
		"app.css": {Data: []byte("style")}, "app.css.gz": {Data: []byte("style gz")},
	}
	e := New(Config{})
	for name, asset := range NewAssets(root, ".", "no-cache") {
		e.GET("/"+name, asset.Serve)
	}
	get := func(path, accept, ifNoneMatch string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept-Encoding", accept)
		r.Header.Set("If-None-Match", ifNoneMatch)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		return w
	}
	for _, test := range []struct{ path, accept, body, encoding string }{
		{"/app.js", "gzip, deflate, br, zstd", "br", "br"},
		{"/app.js", "gzip", "gz", "gzip"},
		{"/app.js", "br;q=0, GZIP; q=0.5", "gz", "gzip"},
		{"/app.js", "", "plain", ""},
		{"/app.css", "br, gzip", "style gz", "gzip"},
	} {
		w := get(test.path, test.accept, "")
		if w.Code != http.StatusOK || w.Body.String() != test.body || w.Header().Get("Content-Encoding") != test.encoding {
			t.Errorf("%s with %q: got %d %q as %q, want %q as %q", test.path, test.accept, w.Code, w.Body, w.Header().Get("Content-Encoding"), test.body, test.encoding)
		}
		if w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: got headers %v", test.path, w.Header())
		}
		tag := w.Header().Get("ETag")
		for header, want := range map[string]int{
			tag: http.StatusNotModified, "W/" + tag: http.StatusNotModified, `"other", ` + tag: http.StatusNotModified, "*": http.StatusNotModified,
			`"other"`: http.StatusOK, tag[:len(tag)-1]: http.StatusOK,
		} {
			if again := get(test.path, test.accept, header); again.Code != want || (want == http.StatusNotModified && again.Body.Len() > 0) {
				t.Errorf("%s with If-None-Match %s: got %d %q, want %d", test.path, header, again.Code, again.Body, want)
			}
		}
	}
}

func TestAssetsWithAHashAreImmutable(t *testing.T) {
	t.Parallel()
	root, want := fstest.MapFS{}, map[string]string{
		"index.html": "no-cache", "licenses.txt": "no-cache", "icon-maskable.png": "no-cache", "a/chat-0a1b2c3d.js": immutable, "a/app-N5CPY2NB.js": immutable,
		"manifest.json": "", ".gitignore": "", "a/chat-0a1b2c3d.js.gz": "", "index.html.br": "",
	}
	for name := range want {
		root["dist/"+name] = &fstest.MapFile{Data: []byte(name)}
	}
	assets, notBuilt := NewAssets(root, "dist", "no-cache"), errors.New("not built")
	for name, cache := range want {
		asset, err := assets.Find(name, notBuilt)
		if asset.cacheControl != cache || (cache == "") != errors.Is(err, echo.ErrNotFound) {
			t.Errorf("%s: got %q, %v, want %q", name, asset.cacheControl, err, cache)
		}
	}
	if _, err := NewAssets(fstest.MapFS{".gitignore": {}}, ".", "").Find("index.html", notBuilt); !errors.Is(err, notBuilt) {
		t.Errorf("without a build: got %v, want the error that says so", err)
	}
}
