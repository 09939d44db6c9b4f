package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/parley-chat/parley/pkg/service/web"
)

func TestRequestsWaitForOpen(t *testing.T) {
	t.Parallel()
	h := web.NewHandler()
	gone, leave := context.WithCancel(t.Context())
	leave()
	early := httptest.NewRecorder()
	h.ServeHTTP(early, httptest.NewRequestWithContext(gone, http.MethodGet, "/", nil))
	if early.Code != http.StatusServiceUnavailable {
		t.Errorf("a disconnected client: got %d, want 503", early.Code)
	}
	answered := make(chan int)
	go func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		answered <- w.Code
	}()
	h.Open(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	if got := <-answered; got != http.StatusTeapot {
		t.Errorf("got %d, want the service's own answer", got)
	}
}
