package demo_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/parley-chat/parley/services/standalone/internal/demo"
)

var config = demo.Config{
	AppID: "the-app", WidgetBaseURL: "http://127.0.0.1:1", ClientBaseURL: "http://127.0.0.1:2", TokenCommand: `TOKEN=$(sed -n 's/"x"/y/p')`, SiteURL: "http://127.0.0.1:3",
}

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer
}

// Both pages embed the widget with the one tag, under a policy that allows nothing else.
func TestPagesEmbedTheWidget(t *testing.T) {
	t.Parallel()
	beside, err := demo.Handler(config, fstest.MapFS{"parley.png": {Data: []byte("a picture")}})
	if err != nil {
		t.Fatal(err)
	}
	site, err := demo.Site(config)
	if err != nil {
		t.Fatal(err)
	}
	nonce := regexp.MustCompile(`script-src 'nonce-(\w+)'`)
	for path, h := range map[string]http.Handler{"/demo": beside, "/": site} {
		answer := get(t, h, path)
		body, policy := answer.Body.String(), answer.Header().Get("Content-Security-Policy")
		found := nonce.FindStringSubmatch(policy)
		if answer.Code != http.StatusOK || found == nil || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "require-trusted-types-for 'script'") {
			t.Fatalf("%s: got %d with the policy %q", path, answer.Code, policy)
		}
		if tag := `<script async src="http://127.0.0.1:1/widget.js" data-app-id="the-app" nonce="` + found[1] + `"></script>`; !strings.Contains(body, tag) {
			t.Errorf("%s: the page lacks %s", path, tag)
		}
		if again := nonce.FindStringSubmatch(get(t, h, path).Header().Get("Content-Security-Policy")); again[1] == found[1] {
			t.Errorf("%s: the nonce is the same twice", path)
		}
	}
	picture := get(t, beside, "/demo/assets/parley.png")
	if picture.Code != http.StatusOK || picture.Header().Get("Cross-Origin-Resource-Policy") != "cross-origin" {
		t.Errorf("picture: got %d with %v, want one that any site may show", picture.Code, picture.Header())
	}
	if got := get(t, beside, "/demo/nothing").Code; got != http.StatusNotFound {
		t.Errorf("unknown file: got %d, want 404", got)
	}
}
