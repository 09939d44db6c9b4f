package httpapi_test

import (
	"testing"

	"github.com/parley-chat/parley/pkg/httpapi"
)

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
