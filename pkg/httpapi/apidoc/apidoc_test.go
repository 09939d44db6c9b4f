package apidoc_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/httpapi/apidoc"
)

func TestDocsAreEmbedded(t *testing.T) {
	t.Parallel()
	e := httpapi.New(httpapi.Config{Service: "test", Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
	apidoc.Serve(e, "Test API", []byte(`{"openapi":"3.1.0"}`))
	do := func(method, path string) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		e.ServeHTTP(rec, httptest.NewRequest(method, path, http.NoBody))
		return rec
	}
	rec := do("GET", "/openapi.json")
	if rec.Code != 200 || rec.Body.String() != `{"openapi":"3.1.0"}` || rec.Header().Get("Content-Type") != "application/json" {
		t.Errorf("/openapi.json: got %d %s, want the document", rec.Code, rec.Body)
	}
	page := do("GET", "/docs")
	if page.Code != 200 || !strings.Contains(page.Body.String(), "Test API") || !strings.Contains(page.Body.String(), "/openapi.json") {
		t.Fatalf("/docs: got %d, want a page that shows the document", page.Code)
	}
	if !regexp.MustCompile(`persistAuthorization:\s*true`).MatchString(page.Body.String()) {
		t.Error("/docs: got a page that forgets the token, want persistAuthorization")
	}
	assets := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(page.Body.String(), -1)
	if len(assets) == 0 {
		t.Fatal("/docs: got no assets, want some")
	}
	for _, asset := range assets {
		if !strings.HasPrefix(asset[1], "/docs/") {
			t.Errorf("asset: got %s, want one of our own", asset[1])
			continue
		}
		if got := do("GET", asset[1]); got.Code != 200 || got.Body.Len() == 0 {
			t.Errorf("%s: got %d, want 200", asset[1], got.Code)
		}
	}
	if head := do("HEAD", "/docs"); head.Code != 200 {
		t.Errorf("HEAD /docs: got %d, want 200", head.Code)
	}
}
