package httpapitest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/httpapi/apidoc"
	"github.com/parley-chat/parley/testkit/httpapitest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const document = `{
  "openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "servers": [{"url": "https://api.example/v1"}],
  "paths": {"/things/{id}": {"get": {
    "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
    "responses": {
      "200": {"description": "it", "content": {"application/json": {"schema": {
        "type": "object", "required": ["id"], "additionalProperties": false, "properties": {"id": {"type": "string"}}}}}},
      "404": {"description": "none", "content": {"application/json": {"schema": {"type": "object"}, "example": {"code": "NOT_FOUND"}}}}
    }}}}
}`

// recorder is a test that records failures instead of failing.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); panic(r) }

func things() http.Handler {
	e := httpapi.New(httpapi.Config{})
	e.GET("/things/:id", func(c echo.Context) error {
		switch id := c.Param("id"); id {
		case "none":
			return apperr.New(apperr.NotFound, "NOT_FOUND", "Not found")
		case "none-of-another-code":
			return apperr.New(apperr.NotFound, "THING_NOT_FOUND", "Not found")
		case "wrong-body":
			return c.JSON(http.StatusOK, map[string]any{"id": 1})
		case "extra-field":
			return c.JSON(http.StatusOK, map[string]any{"id": id, "x": 1})
		case "wrong-type":
			return c.String(http.StatusOK, id)
		case "wrong-status":
			return c.JSON(http.StatusAccepted, map[string]any{"id": id})
		case "undocumented-error":
			return &apperr.Error{Code: apperr.Conflict}
		case "own-error":
			return c.JSON(http.StatusNotFound, map[string]any{"error": "none"})
		case "other-request":
			return c.JSON(http.StatusNotFound, httpapi.Problem{StatusCode: 404, Code: "X", Message: "x", RequestID: "other"})
		case "other-status":
			return c.JSON(http.StatusNotFound, httpapi.Problem{StatusCode: 400, Code: "X", Message: "x", RequestID: "r"})
		default:
			return c.JSON(http.StatusOK, map[string]any{"id": id})
		}
	})
	e.GET("/secret", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	e.GET("/demo/page", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	apidoc.Serve(e, "t", []byte(document))
	return e
}

func TestTransportFindsWhatTheDocumentDoesNotSay(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(things())
	t.Cleanup(server.Close)
	for _, test := range []struct {
		method, path string
		want         string // empty: no error
	}{
		{"GET", "/things/1", ""},
		{"HEAD", "/things/1", ""},
		{"OPTIONS", "/things/1", ""},
		{"GET", "/things/none", ""},
		{"GET", "/unknown", ""},
		{"DELETE", "/things/1", ""},
		{"GET", "/docs", ""},
		{"GET", "/openapi.json", ""},
		{"GET", "/demo/page", ""},
		{"GET", "/things/none-of-another-code", "no such code"},
		{"GET", "/things/wrong-body", "the document says"},
		{"GET", "/things/extra-field", "the document says"},
		{"GET", "/things/wrong-type", "the document says"},
		{"GET", "/things/wrong-status", "status is not supported"},
		{"GET", "/things/undocumented-error", "status is not supported"},
		{"GET", "/things/own-error", "error body"},
		{"GET", "/things/other-request", "requestId"},
		{"GET", "/things/other-status", "statusCode"},
		{"GET", "/secret", "no matching operation"},
	} {
		r := &recorder{TB: t}
		client := &http.Client{Transport: httpapitest.Contract(r, []byte(document), "/demo/").Transport(server.Client().Transport)}
		req, err := http.NewRequestWithContext(t.Context(), test.method, server.URL+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		got := strings.Join(r.failures, "\n")
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s %s: got failures %q, want %q", test.method, test.path, got, test.want)
		}
	}
}

// Features of 3.1 are checked: null among the types, and keywords of JSON Schema 2020-12.
func TestSchemasOf31(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ schema, good, bad string }{
		{`{"type":["string","null"],"maxLength":2}`, `null`, `"abc"`},
		{`{"type":["string","null"]}`, `"a"`, `1`},
		{`{"type":"string"}`, `"a"`, `null`},
		{`{"const":"a"}`, `"a"`, `"b"`},
		{`{"type":"integer","exclusiveMinimum":1}`, `2`, `1`},
	} {
		d := httpapitest.Contract(t, []byte(`{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{"/":{"get":{"responses":{"200":{
			"description":"it","content":{"application/json":{"schema":{"type":"object","properties":{"a":`+test.schema+`}}}}}}}}}}`))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api.example/", nil)
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{"Content-Type": {"application/json"}}
		if err := d.Check(r, http.StatusOK, header, []byte(`{"a":`+test.good+`}`)); err != nil {
			t.Errorf("%s: %s: got %v, want nil", test.schema, test.good, err)
		}
		if err := d.Check(r, http.StatusOK, header, []byte(`{"a":`+test.bad+`}`)); err == nil {
			t.Errorf("%s: %s: got nil, want an error", test.schema, test.bad)
		}
	}
}

func TestUnseenListsWhatNoAnswerHasShown(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(things())
	t.Cleanup(server.Close)
	d := httpapitest.Contract(t, []byte(document))
	if got, want := d.Unseen(), []string{"GET /things/{id} 200", "GET /things/{id} 404"}; !slices.Equal(got, want) {
		t.Errorf("at first: got %v, want %v", got, want)
	}
	client := &http.Client{Transport: d.Transport(server.Client().Transport)}
	resp, err := client.Get(server.URL + "/things/1")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got, want := d.Unseen(), []string{"GET /things/{id} 404"}; !slices.Equal(got, want) {
		t.Errorf("after a 200: got %v, want %v", got, want)
	}
}

func TestContractRefusesAWrongDocument(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a wrong example": strings.Replace(document, `"paths"`, `"components": {"schemas": {"A": {"type": "object", "properties": {"a": {"type": "string", "examples": ["x", 1]}}}}}, "paths"`, 1),
		"no JSON":         "{",
		"no version":      `{"info":{"title":"t","version":"1"},"paths":{}}`,
	} {
		r := &recorder{TB: t}
		func() {
			defer func() { _ = recover() }() // recorder's Fatalf
			httpapitest.Contract(r, []byte(text))
		}()
		if len(r.failures) != 1 {
			t.Errorf("%s: got failures %q, want one", name, r.failures)
		}
	}
}
