package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/testkit/tracingtest"
)

func TestRequestsAreSpans(t *testing.T) {
	t.Parallel()
	const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, c := range []struct {
		method, path, name, route, status, failed string
	}{
		{"GET", "/ok/ada@example.org?token=secret", "GET /ok/:id", "/ok/:id", "200", ""},
		{"GET", "/invalid", "GET /invalid", "/invalid", "400", ""},
		{"GET", "/unavailable", "GET /unavailable", "/unavailable", "503", "SERVICE_UNAVAILABLE"},
		{"GET", "/panic", "GET /panic", "/panic", "500", "internal"},
		{"GET", "/nowhere/ada@example.org", "GET", "", "404", ""},
		{"BREW", "/ok/1", "HTTP /ok/:id", "/ok/:id", "405", ""},
	} {
		tracer, spans := tracingtest.New(t)
		a := newAPI(httpapi.Config{Tracer: tracer})
		a.do(c.method, c.path, header("Traceparent", caller), header("X-Request-Id", "r1"))
		all := spans.Spans("")
		if len(all) != 1 {
			t.Fatalf("%s %s: got %+v, want one span", c.method, c.path, all)
		}
		got := all[0]
		if got.Name != c.name || got.Kind != "server" || got.TraceID != caller[3:35] || got.ParentID != caller[36:52] || got.StatusText != c.failed {
			t.Errorf("%s %s: got %+v, want %q below the caller's, failed %q", c.method, c.path, got, c.name, c.failed)
		}
		if got.Attributes["http.route"] != c.route || got.Attributes["http.response.status_code"] != c.status || got.Attributes["parley.request.id"] != "r1" {
			t.Errorf("%s %s: got attributes %v", c.method, c.path, got.Attributes)
		}
		for key, value := range got.Attributes {
			if strings.Contains(value, "ada") || strings.Contains(value, "secret") {
				t.Errorf("%s %s: got %s=%q, want nothing of what was sent", c.method, c.path, key, value)
			}
		}
		line := a.log.Records(t)[0]
		if line["trace_id"] != got.TraceID || line["span_id"] != got.SpanID || line["requestId"] != "r1" {
			t.Errorf("%s %s: got %v in the log, want the span and the request", c.method, c.path, line)
		}
	}
}

func TestHandlerSpansAreChildrenOfTheRequest(t *testing.T) {
	t.Parallel()
	tracer, spans := tracingtest.New(t)
	a := newAPI(httpapi.Config{Tracer: tracer})
	rec := a.do(http.MethodGet, "/context", header("X-Request-Id", "r1"))
	if got, want := rec.Body.String(), "r1 "+spans.Spans("GET /context")[0].TraceParent(); got != want {
		t.Errorf("got %q in the handler's context, want %q", got, want)
	}
}

func TestTheCallersTraceIsLoggedWithoutATracer(t *testing.T) {
	t.Parallel()
	a := newAPI(httpapi.Config{})
	a.do(http.MethodGet, "/ok/1", header("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
	if line := a.log.Records(t)[0]; line["trace_id"] != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("got %v, want the caller's trace", line)
	}
}

// The trace of a sampled request is the exemplar of its measurement.
func TestMeasurementsNameATrace(t *testing.T) {
	t.Parallel()
	tracer, spans := tracingtest.New(t)
	a := newAPI(httpapi.Config{Tracer: tracer})
	a.do(http.MethodGet, "/ok/1")
	families, err := a.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, b := range m.GetHistogram().GetBucket() {
				for _, l := range b.GetExemplar().GetLabel() {
					named = append(named, l.GetName()+"="+l.GetValue())
				}
			}
		}
	}
	if want := "trace_id=" + spans.Spans("")[0].TraceID; len(named) != 1 || named[0] != want {
		t.Errorf("got exemplars %v, want %s", named, want)
	}
}
