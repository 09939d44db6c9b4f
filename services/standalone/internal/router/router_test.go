package router_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/parley-chat/parley/services/standalone/internal/router"
)

func TestWhoAnswers(t *testing.T) {
	t.Parallel()
	named := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })
	}
	h := router.Handler(named("widget"), named("sockets"), named("demo"))
	for path, want := range map[string]string{
		"/socket.io/":   "sockets",
		"/socket.io":    "sockets",
		"/demo":         "demo",
		"/demo/demo.js": "demo",
		"/demolition":   "widget",
		"/message":      "widget",
		"//message":     "widget",
		"/":             "widget",
	} {
		answer := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "http://parley.test/", nil)
		r.URL.Path = path
		h.ServeHTTP(answer, r)
		if got := answer.Body.String(); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
