package httpapitest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/httpapi"
)

// Accepts decodes a JSON body as the handlers do and reports whether it is valid. The test fails on any error
// other than Invalid.
func Accepts(t testing.TB, body string, into httpapi.Validator) bool {
	t.Helper()
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	req.Header.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	err := httpapi.Decode(echo.New().NewContext(req, httptest.NewRecorder()), into)
	if err != nil && !apperr.Is(err, apperr.Invalid) {
		t.Fatalf("%q: got %v, want it refused as invalid", body, err)
	}
	return err == nil
}
