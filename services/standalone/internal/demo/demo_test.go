package demo

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

var bot = fstest.MapFS{"parley.png": {Data: []byte("a picture")}}

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer
}

func TestPageAndItsFiles(t *testing.T) {
	t.Parallel()
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		t.Fatal(err)
	}
	with := fstest.MapFS{client: {Data: []byte("io")}}
	for _, name := range []string{"demo.html", "demo.js", "render.js", "demo.css", "favicon.svg"} {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		with[name] = &fstest.MapFile{Data: data}
	}
	h, err := handler(Config{AppID: "app", ClientBaseURL: "http://c", TokenCommand: "TOKEN=x"}, with, bot)
	if err != nil {
		t.Fatal(err)
	}
	for path, kind := range map[string]string{
		"/demo": "text/html", "/demo/demo.js": "text/javascript", "/demo/render.js": "text/javascript", "/demo/demo.css": "text/css",
		"/demo/vendor/socket.io.min.js": "text/javascript", "/demo/favicon.svg": "image/svg+xml", "/demo/assets/parley.png": "image/png",
		"/demo/config.json": "application/json",
	} {
		answer := get(t, h, path)
		if answer.Code != http.StatusOK || !strings.HasPrefix(answer.Header().Get("Content-Type"), kind) {
			t.Errorf("%s: got %d %s, want 200 %s", path, answer.Code, answer.Header().Get("Content-Type"), kind)
		}
		if answer.Header().Get("Content-Security-Policy") == "" || answer.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: got headers %v, want a policy and nosniff", path, answer.Header())
		}
	}
	var c Config
	if err := json.Unmarshal(get(t, h, "/demo/config.json").Body.Bytes(), &c); err != nil || c.AppID != "app" || c.TokenCommand != "TOKEN=x" {
		t.Errorf("config: got %+v, %v", c, err)
	}
	if got := get(t, h, "/demo/nothing").Code; got != http.StatusNotFound {
		t.Errorf("unknown file: got %d, want 404", got)
	}
}

func TestWithoutTheClientThePageSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	h, err := handler(Config{}, fstest.MapFS{"demo.html": {Data: []byte("page")}}, bot)
	if err != nil {
		t.Fatal(err)
	}
	answer := get(t, h, "/demo")
	body := answer.Body.String()
	if answer.Code != http.StatusServiceUnavailable || !strings.Contains(body, "make assets") || strings.Count(body, "\n") != 1 {
		t.Errorf("got %d %q, want 503 and one line about make assets", answer.Code, body)
	}
}

// The page must not be able to run what a message carries.
func TestTextNeverBecomesHTML(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"assets/demo.js", "assets/render.js"} {
		code, err := assets.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("} {
			if strings.Contains(string(code), word) {
				t.Errorf("%s uses %s", name, word)
			}
		}
	}
}
