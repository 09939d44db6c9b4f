package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/httpapi/apidoc"
	"github.com/parley-chat/parley/testkit/logtest"
)

// api is a server under test with routes for every outcome of a request.
type api struct {
	*echo.Echo
	log      *logtest.Buffer
	registry *prometheus.Registry
}

func newAPI(cfg httpapi.Config) *api {
	a := &api{log: &logtest.Buffer{}, registry: prometheus.NewRegistry()}
	cfg.Service, cfg.Registerer = "test", a.registry
	cfg.Logger = slog.New(slog.NewJSONHandler(a.log, nil))
	a.Echo = httpapi.New(cfg)
	fails := func(path string, err error) { a.GET(path, func(echo.Context) error { return err }) }
	fails("/invalid", &apperr.Error{
		Code: apperr.Invalid, Reason: "CHAT_TOO_OLD", Message: "Chat is too old. Please start a new chat.",
	})
	fails("/fields", apperr.Fields{
		{Name: "source", Message: "must have at least 11 characters"}, {Name: "username", Message: "must have at least 3 characters"},
	}.Err())
	fails("/unauthenticated", apperr.New(apperr.Unauthenticated, "UNAUTHORIZED", "Unauthorized").Wrap(errors.New("token of Ada expired")))
	fails("/notfound", apperr.New(apperr.NotFound, "CHAT_NOT_FOUND", "Chat not found"))
	fails("/conflict", apperr.New(apperr.Conflict, "IN_PROGRESS", "Still in progress"))
	fails("/reused", apperr.IdempotencyKeyReused.WithMessage("Another body"))
	fails("/toomany", &apperr.Error{Code: apperr.TooMany, RetryAfter: 1500 * time.Millisecond})
	fails("/unavailable", apperr.Unreachable("MongoDB", errors.New("mongodb://secret-host: refused")))
	fails("/internal", apperr.New(apperr.Internal, "SECRET_REASON", "secret message").Wrap(errors.New("secret cause")))
	fails("/uncoded", errors.New("secret cause"))
	apidoc.Serve(a.Echo, "Test API", []byte("{}"))
	fails("/echo", echo.NewHTTPError(http.StatusTeapot, "secret"))
	fails("/echo500", echo.NewHTTPError(http.StatusBadGateway, "secret"))
	a.GET("/panic", func(echo.Context) error { panic("secret cause") })
	a.GET("/nilpanic", func(echo.Context) error { var p *apperr.Error; _ = p.Message; return nil })
	a.GET("/abort", func(echo.Context) error { panic(http.ErrAbortHandler) })
	a.GET("/halfway", func(c echo.Context) error {
		c.Response().WriteHeader(http.StatusOK)
		_, _ = c.Response().Write([]byte(`{"half`))
		c.Response().Flush()
		panic("halfway")
	})
	a.GET("/late", func(c echo.Context) error {
		_ = c.String(http.StatusOK, "answered")
		return errors.New("secret cause")
	})
	a.GET("/ok/:id", func(c echo.Context) error { return c.String(http.StatusOK, c.Param("id")) })
	a.POST("/ok/:id", func(c echo.Context) error { return c.NoContent(http.StatusCreated) })
	a.POST("/decode", func(c echo.Context) error {
		var r sendRequest
		if err := httpapi.Decode(c, &r); err != nil {
			return err
		}
		return c.JSONBlob(http.StatusOK, r.Data)
	})
	a.GET("/context", func(c echo.Context) error {
		ctx := c.Request().Context()
		return c.String(http.StatusOK, event.RequestID(ctx)+" "+event.TraceParent(ctx))
	})
	return a
}

func (a *api) do(method, path string, edit ...func(*http.Request)) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, nil)
	for _, e := range edit {
		e(req)
	}
	rec := httptest.NewRecorder()
	a.ServeHTTP(rec, req)
	return rec
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func TestEveryErrorHasTheSameBody(t *testing.T) {
	t.Parallel()
	const internal = `{"statusCode":500,"code":"INTERNAL_ERROR","message":"Internal server error","requestId":"r1"}`
	for _, test := range []struct {
		method, path string
		want         string
		headers      map[string]string
	}{
		{"GET", "/invalid", `{"statusCode":400,"code":"CHAT_TOO_OLD","message":"Chat is too old. Please start a new chat.","requestId":"r1"}`, nil},
		{"GET", "/fields", `{"statusCode":400,"code":"VALIDATION_ERROR","message":"Validation failed: source must have at least 11 characters (1 more in details)",` +
			`"details":[{"field":"source","message":"must have at least 11 characters"},` +
			`{"field":"username","message":"must have at least 3 characters"}],"requestId":"r1"}`, nil},
		{"GET", "/unauthenticated", `{"statusCode":401,"code":"UNAUTHORIZED","message":"Unauthorized","requestId":"r1"}`,
			map[string]string{"WWW-Authenticate": "Bearer"}},
		{"GET", "/notfound", `{"statusCode":404,"code":"CHAT_NOT_FOUND","message":"Chat not found","requestId":"r1"}`, nil},
		{"GET", "/conflict", `{"statusCode":409,"code":"IN_PROGRESS","message":"Still in progress","requestId":"r1"}`, nil},
		{"GET", "/reused", `{"statusCode":422,"code":"IDEMPOTENCY_KEY_REUSED","message":"Another body","requestId":"r1"}`, nil},
		{"GET", "/toomany", `{"statusCode":429,"code":"TOO_MANY_REQUESTS","message":"Too many requests","requestId":"r1"}`,
			map[string]string{"Retry-After": "2"}},
		{"GET", "/unavailable", `{"statusCode":503,"code":"SERVICE_UNAVAILABLE","message":"Service is temporarily unavailable. Please try again.","requestId":"r1"}`,
			map[string]string{"Retry-After": "2"}},
		{"GET", "/internal", internal, nil},
		{"GET", "/uncoded", internal, nil},
		{"GET", "/panic", internal, nil},
		{"GET", "/nilpanic", internal, nil},
		{"GET", "/echo", `{"statusCode":400,"code":"BAD_REQUEST","message":"Bad request","requestId":"r1"}`, nil},
		{"GET", "/echo500", internal, nil},
		{"GET", "/", `{"statusCode":404,"code":"NOT_FOUND","message":"Route not found","requestId":"r1"}`, nil},
		{"GET", "/unknown/route", `{"statusCode":404,"code":"NOT_FOUND","message":"Route not found","requestId":"r1"}`, nil},
		{"GET", "/ok/1/", `{"statusCode":404,"code":"NOT_FOUND","message":"Route not found","requestId":"r1"}`, nil},
		{"GET", "/ok/1/2", `{"statusCode":404,"code":"NOT_FOUND","message":"Route not found","requestId":"r1"}`, nil},
		{"DELETE", "/ok/1/2", `{"statusCode":404,"code":"NOT_FOUND","message":"Route not found","requestId":"r1"}`, nil},
		{"GET", "/docs/nothing.js", `{"statusCode":404,"code":"NOT_FOUND","message":"Route not found","requestId":"r1"}`, nil},
		{"POST", "/docs/nothing.js", `{"statusCode":405,"code":"METHOD_NOT_ALLOWED","message":"Method not allowed","requestId":"r1"}`,
			map[string]string{"Allow": "OPTIONS, GET, HEAD"}},
		{"OPTIONS", "/unknown", `{"statusCode":404,"code":"NOT_FOUND","message":"Route not found","requestId":"r1"}`, nil},
		{"DELETE", "/ok/1", `{"statusCode":405,"code":"METHOD_NOT_ALLOWED","message":"Method not allowed","requestId":"r1"}`,
			map[string]string{"Allow": "OPTIONS, GET, HEAD, POST"}},
		{"BREW", "/decode", `{"statusCode":405,"code":"METHOD_NOT_ALLOWED","message":"Method not allowed","requestId":"r1"}`,
			map[string]string{"Allow": "OPTIONS, POST"}},
	} {
		rec := newAPI(httpapi.Config{}).do(test.method, test.path, header("X-Request-Id", "r1"))
		if got := rec.Body.String(); got != test.want {
			t.Errorf("%s %s:\ngot  %s\nwant %s", test.method, test.path, got, test.want)
		}
		var body struct{ StatusCode int }
		if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil || body.StatusCode != rec.Code {
			t.Errorf("%s %s: got status %d and statusCode %d, want the same", test.method, test.path, rec.Code, body.StatusCode)
		}
		if got := rec.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("%s %s: Content-Type: got %q, want application/json", test.method, test.path, got)
		}
		if got := rec.Header().Get("X-Request-Id"); got != "r1" {
			t.Errorf("%s %s: X-Request-Id: got %q, want r1", test.method, test.path, got)
		}
		for name, want := range test.headers {
			if got := rec.Header().Get(name); got != want {
				t.Errorf("%s %s: %s: got %q, want %q", test.method, test.path, name, got, want)
			}
		}
	}
}

// An escaped slash is part of a parameter, not a separator.
func TestParametersAreOneSegment(t *testing.T) {
	t.Parallel()
	a := newAPI(httpapi.Config{})
	for path, want := range map[string]int{"/ok/1": 200, "/ok/1%2F2": 200, "/ok/%2F": 200, "/ok/1/2": 404, "/ok/1//": 404, "/ok//": 404} {
		if rec := a.do("GET", path); rec.Code != want {
			t.Errorf("%s: got %d %s, want %d", path, rec.Code, rec.Body, want)
		}
	}
}

func TestChallengeOfTheService(t *testing.T) {
	t.Parallel()
	rec := newAPI(httpapi.Config{Challenge: "AccessToken"}).do("GET", "/unauthenticated")
	if got := rec.Header().Get("WWW-Authenticate"); got != "AccessToken" {
		t.Errorf("WWW-Authenticate: got %q, want AccessToken", got)
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	a := newAPI(httpapi.Config{})
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for _, sent := range []string{"", "with space", "nl\n", "é", "a/b", "<x>", strings.Repeat("a", 129)} {
		got := a.do("GET", "/ok/1", func(r *http.Request) {
			if sent != "" {
				r.Header["X-Request-Id"] = []string{sent}
			}
		}).Header().Get("X-Request-Id")
		if !uuid.MatchString(got) || seen[got] {
			t.Errorf("%q sent: got %q, want a fresh UUID", sent, got)
		}
		seen[got] = true
	}
	for _, sent := range []string{"a", "01890a5d-ac96-774b-bcce-b302099a8057", "A.b_c-9", strings.Repeat("a", 128)} {
		if got := a.do("GET", "/ok/1", header("X-Request-Id", sent)).Header().Get("X-Request-Id"); got != sent {
			t.Errorf("%q sent: got %q, want it taken over", sent, got)
		}
	}
	two := a.do("GET", "/ok/1", func(r *http.Request) { r.Header["X-Request-Id"] = []string{"a", "b"} })
	if got := two.Header()["X-Request-Id"]; len(got) != 1 || !uuid.MatchString(got[0]) {
		t.Errorf("two sent: got %q, want one fresh UUID", got)
	}
}

func TestContextCarriesRequestIDAndTraceParent(t *testing.T) {
	t.Parallel()
	a := newAPI(httpapi.Config{})
	const traceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	rec := a.do("GET", "/context", header("X-Request-Id", "r1"), header("Traceparent", traceParent))
	if got, want := rec.Body.String(), "r1 "+traceParent; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := a.do("GET", "/context", header("X-Request-Id", "r1"), header("Traceparent", "garbage")).Body.String(); got != "r1 " {
		t.Errorf("garbage as traceparent: got %q, want none", got)
	}
	if got := event.RequestID(t.Context()); got != "" {
		t.Errorf("outside of a request: got %q, want none", got)
	}
}

func TestHeadAndOptions(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newAPI(httpapi.Config{}))
	t.Cleanup(server.Close)
	for _, test := range []struct {
		method, path string
		status       int
		allow        string
		length       int64
	}{
		{"HEAD", "/ok/12345", 200, "", 5},
		{"HEAD", "/notfound", 404, "", -2},
		{"HEAD", "/unknown", 404, "", -2},
		{"HEAD", "/decode", 405, "OPTIONS, POST", -2},
		{"OPTIONS", "/ok/1", 204, "OPTIONS, GET, HEAD, POST", -2},
		{"OPTIONS", "/decode", 204, "OPTIONS, POST", -2},
	} {
		req, err := http.NewRequestWithContext(t.Context(), test.method, server.URL+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != test.status || resp.Header.Get("Allow") != test.allow {
			t.Errorf("%s %s: got %d with Allow %q, want %d with %q",
				test.method, test.path, resp.StatusCode, resp.Header.Get("Allow"), test.status, test.allow)
		}
		if test.length >= 0 && resp.ContentLength != test.length {
			t.Errorf("%s %s: Content-Length: got %d, want %d", test.method, test.path, resp.ContentLength, test.length)
		}
		if test.status >= 400 && resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: Content-Type: got %q, want application/json", test.method, test.path, resp.Header.Get("Content-Type"))
		}
	}
}

func TestAccessLog(t *testing.T) {
	t.Parallel()
	a := newAPI(httpapi.Config{})
	a.do("GET", "/ok/ada@example.com?token=secret", header("X-Request-Id", "r1"), header("Authorization", "Bearer secret"))
	lines := a.log.Records(t)
	if len(lines) != 1 {
		t.Fatalf("lines: got %d, want 1", len(lines))
	}
	line := lines[0]
	for name, want := range map[string]any{
		"level": "INFO", "msg": "request", "method": "GET", "route": "/ok/:id", "status": 200.0, "requestId": "r1", "bytes": 15.0,
	} {
		if line[name] != want {
			t.Errorf("%s: got %v, want %v", name, line[name], want)
		}
	}
	if d, ok := line["durationUs"].(float64); !ok || d < 0 {
		t.Errorf("durationUs: got %v, want a number", line["durationUs"])
	}
	if text := a.log.String(); strings.Contains(text, "ada@") || strings.Contains(text, "secret") {
		t.Errorf("got %s, want neither path nor query nor headers", text)
	}
}

func TestErrorsAreLoggedOnceWithTheirCause(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ path, level, code, cause string }{
		{"/uncoded", "ERROR", "INTERNAL_ERROR", "secret cause"},
		{"/internal", "ERROR", "INTERNAL_ERROR", "secret message: secret cause"},
		{"/panic", "ERROR", "INTERNAL_ERROR", "panic: secret cause"},
		{"/late", "ERROR", "INTERNAL_ERROR", "secret cause"},
		{"/unavailable", "WARN", "SERVICE_UNAVAILABLE", "mongodb://secret-host: refused"},
		{"/unauthenticated", "INFO", "UNAUTHORIZED", ""},
		{"/fields", "INFO", "VALIDATION_ERROR", ""},
		{"/unknown", "INFO", "NOT_FOUND", ""},
	} {
		a := newAPI(httpapi.Config{})
		a.do("GET", test.path)
		lines := a.log.Records(t)
		if len(lines) != 1 {
			t.Fatalf("%s: lines: got %d, want 1", test.path, len(lines))
		}
		cause, _ := lines[0]["error"].(string)
		if lines[0]["level"] != test.level || lines[0]["code"] != test.code || (cause == "") != (test.cause == "") || !strings.Contains(cause, test.cause) {
			t.Errorf("%s: got %v, want %s, %s and the cause %q", test.path, lines[0], test.level, test.code, test.cause)
		}
		if stack, _ := lines[0]["stack"].(string); (test.path == "/panic") != strings.Contains(stack, "api_test.go") {
			t.Errorf("%s: stack: got %q, want one only for a panic", test.path, stack)
		}
	}
}

func TestADisconnectedCallerIsNotAnError(t *testing.T) {
	t.Parallel()
	a := newAPI(httpapi.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, path := range []string{"/uncoded", "/unavailable", "/invalid"} {
		a.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
	}
	for i, want := range []float64{499, 499, 400} {
		if line := a.log.Records(t)[i]; line["status"] != want || line["level"] != "INFO" {
			t.Errorf("line %d: got %v, want status %v at INFO", i, line, want)
		}
	}
}

func TestPanicAfterAPartialResponseAbortsTheConnection(t *testing.T) {
	t.Parallel()
	a := newAPI(httpapi.Config{})
	server := httptest.NewServer(a)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	t.Cleanup(server.Close)
	for _, path := range []string{"/halfway", "/abort"} {
		resp, err := server.Client().Get(server.URL + path)
		if err == nil {
			_, err = new(bytes.Buffer).ReadFrom(resp.Body)
			_ = resp.Body.Close()
		}
		if err == nil {
			t.Errorf("%s: got a whole answer, want the connection aborted", path)
		}
	}
	if lines := a.log.Records(t); len(lines) != 1 || lines[0]["level"] != "ERROR" || lines[0]["error"] != "panic: halfway" {
		t.Errorf("log: got %v, want the panic", lines)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	a := newAPI(httpapi.Config{})
	for _, request := range [][2]string{{"GET", "/ok/1"}, {"GET", "/ok/2"}, {"GET", "/unknown/1"}, {"GET", "/unknown/2"}, {"X1", "/ok/1"}, {"X2", "/ok/1"}} {
		a.do(request[0], request[1])
	}
	families, err := a.registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "parley_http_request_seconds" {
		t.Fatalf("got %v, %v, want parley_http_request_seconds alone", families, err)
	}
	got := map[string]uint64{}
	for _, metric := range families[0].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		got[labels["service"]+" "+labels["method"]+" "+labels["route"]+" "+labels["status"]] = metric.GetHistogram().GetSampleCount()
	}
	want := map[string]uint64{"test GET /ok/:id 200": 2, "test GET unmatched 404": 2, "test OTHER /ok/:id 405": 2}
	if len(got) != len(want) {
		t.Errorf("series: got %v, want %v", got, want)
	}
	for series, n := range want {
		if got[series] != n {
			t.Errorf("%s: got %d, want %d", series, got[series], n)
		}
	}
}

func TestTwoServersShareARegistry(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	for _, service := range []string{"a", "a", "b"} {
		e := httpapi.New(httpapi.Config{Service: service, Registerer: registry})
		e.GET("/", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 2 {
		t.Fatalf("got %v, %v, want one series a service", families, err)
	}
	for _, metric := range families[0].GetMetric() {
		want := map[string]uint64{"a": 2, "b": 1}[serviceOf(metric.GetLabel())]
		if got := metric.GetHistogram().GetSampleCount(); got != want {
			t.Errorf("service %s: got %d, want %d", serviceOf(metric.GetLabel()), got, want)
		}
	}
}

func serviceOf[L interface {
	GetName() string
	GetValue() string
}](labels []L) string {
	for _, l := range labels {
		if l.GetName() == "service" {
			return l.GetValue()
		}
	}
	return ""
}

func TestBearer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		headers []string
		want    string
		reason  string
	}{
		{nil, "", apperr.TokenMissing.Reason},
		{[]string{""}, "", apperr.TokenMissing.Reason},
		{[]string{"Bearer"}, "", apperr.TokenMissing.Reason},
		{[]string{"Bearer "}, "", apperr.TokenMissing.Reason},
		{[]string{"Bearer    "}, "", apperr.TokenMissing.Reason},
		{[]string{"Basic abc"}, "", apperr.WrongAuthScheme.Reason},
		{[]string{"Bearerabc"}, "", apperr.WrongAuthScheme.Reason},
		{[]string{"abc.def"}, "", apperr.WrongAuthScheme.Reason},
		{[]string{"Bearer a", "Bearer b"}, "", apperr.WrongAuthScheme.Reason},
		{[]string{"Bearer abc.def"}, "abc.def", ""},
		{[]string{"bearer abc"}, "abc", ""},
		{[]string{"BEARER   abc "}, "abc", ""},
	} {
		req := httptest.NewRequest(http.MethodGet, "/", nil)
		if test.headers != nil {
			req.Header["Authorization"] = test.headers
		}
		got, err := httpapi.Bearer(echo.New().NewContext(req, nil))
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q: got %q, %v, want %q", test.headers, got, err, test.want)
		}
		if err != nil && (!apperr.Is(err, apperr.Unauthenticated) || apperr.ReasonOf(err) != test.reason) {
			t.Errorf("%q: got %s, want %s", test.headers, apperr.ReasonOf(err), test.reason)
		}
	}
}

// Names that cannot be shown in a response, or would make it long, are not repeated.
func TestCheckQuery(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 65)
	for query, want := range map[string]string{
		"":             "",
		"dryRun=true":  "",
		"dryrun=true":  "dryrun is not a parameter of this request (dryRun is)",
		"b=1&a=2":      "a is not a parameter of this request; b is not a parameter of this request",
		"%ff=1":        "query has a parameter that is not one of this request",
		"=1":           "query has a parameter that is not one of this request",
		long + "=1":    "query has a parameter that is not one of this request",
		"dryRun=1&x=1": "x is not a parameter of this request",
	} {
		c := echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/?"+query, nil), httptest.NewRecorder())
		var got []string
		if e, ok := errors.AsType[*apperr.Error](httpapi.CheckQuery(c, "dryRun")); ok {
			for _, f := range e.Fields {
				got = append(got, f.Name+" "+f.Message)
			}
		}
		if all := strings.Join(got, "; "); all != want {
			t.Errorf("%q: got %q, want %q", query, all, want)
		}
	}
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("p%d=1", i)
	}
	c := echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/?"+strings.Join(many, "&"), nil), httptest.NewRecorder())
	if e, ok := errors.AsType[*apperr.Error](httpapi.CheckQuery(c)); !ok || len(e.Fields) > 8 {
		t.Errorf("got %v, want a few of a hundred", e)
	}
}
