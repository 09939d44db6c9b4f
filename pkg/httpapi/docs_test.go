package httpapi_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/httpapi"
)

func TestDocsComeOutOfTheBinary(t *testing.T) {
	t.Parallel()
	a := newAPI(httpapi.Config{})
	httpapi.Docs(a.Echo, "Test API", []byte(`{"openapi":"3.1.0"}`))
	rec := a.do("GET", "/openapi.json")
	if rec.Code != 200 || rec.Body.String() != `{"openapi":"3.1.0"}` || rec.Header().Get("Content-Type") != "application/json" {
		t.Errorf("/openapi.json: got %d %s, want the document", rec.Code, rec.Body)
	}
	page := a.do("GET", "/docs")
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
		if got := a.do("GET", asset[1]); got.Code != 200 || got.Body.Len() == 0 {
			t.Errorf("%s: got %d, want 200", asset[1], got.Code)
		}
	}
	if head := a.do("HEAD", "/docs"); head.Code != 200 {
		t.Errorf("HEAD /docs: got %d, want 200", head.Code)
	}
}

func TestWithVersion(t *testing.T) {
	t.Parallel()
	const document = `{"info":{"title":"t","version" : "dev"},"x":{"version":"1"}}`
	if got, want := string(httpapi.WithVersion([]byte(document), "v1.2.3-4-gab\"c")), `{"info":{"title":"t","version": "1.2.3-4-gab\"c"},"x":{"version":"1"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := string(httpapi.WithVersion([]byte(`{}`), "v1")); got != `{}` {
		t.Errorf("got %s, want a document without a version as it is", got)
	}
}
