package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/parley-chat/parley/pkg/httpapi"
)

func serve(a *Assets, path string, headers map[string]string) *httptest.ResponseRecorder {
	e := httpapi.New(httpapi.Config{})
	a.Routes(e)
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

var built = fstest.MapFS{
	"widget.js": {Data: []byte("loader")}, "widget.js.br": {Data: []byte("br")}, "widget.js.gz": {Data: []byte("gz")},
	"widget/chat-0a1b2c3d.js": {Data: []byte("chat")}, "widget/chat-0a1b2c3d.js.gz": {Data: []byte("chat gz")},
	"widget/licenses.txt": {Data: []byte("MIT")},
	"manifest.json":       {Data: []byte("{}")},
}

func TestHashedFilesAreImmutable(t *testing.T) {
	t.Parallel()
	a := newAssets(Config{MaxFileBytes: 42}, built, ".")
	for path, want := range map[string]string{"/widget.js": loaderCache, "/widget/chat-0a1b2c3d.js": "public, max-age=31536000, immutable", "/widget/licenses.txt": loaderCache, "/widget/limits.json": loaderCache} {
		w := serve(a, path, nil)
		if got := w.Header().Get("Cache-Control"); w.Code != http.StatusOK || got != want {
			t.Errorf("%s: got %d with %q, want %q", path, w.Code, got, want)
		}
	}
	w := serve(a, "/widget.js", nil)
	if w.Header().Get("Cross-Origin-Resource-Policy") != "cross-origin" || w.Header().Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("got %v, want a script for pages of any origin", w.Header())
	}
	for _, path := range []string{"/widget/nothing.js", "/widget/chat-0a1b2c3d.js.gz", "/widget/..%2Fmanifest.json"} {
		if got := serve(a, path, nil).Code; got != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, got)
		}
	}
	if got := serve(a, "/widget/limits.json", nil).Body.String(); got != `{"maxFileBytes":42}` {
		t.Errorf("limits: got %s", got)
	}
}

// A clean clone compiles; only the widget is missing, and the error names the command that builds it.
func TestMissingBuild(t *testing.T) {
	t.Parallel()
	a := newAssets(Config{}, fstest.MapFS{".gitignore": {Data: []byte("*")}}, ".")
	for _, path := range []string{"/widget.js", "/widget/chat-0a1b2c3d.js"} {
		if w := serve(a, path, nil); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: got %d %s, want 503", path, w.Code, w.Body)
		}
	}
}
