package otlp_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/tracing/otlp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collect serves a collector that records its requests.
func collect(t *testing.T, status int) (url string, requests chan *collector.ExportTraceServiceRequest) {
	t.Helper()
	requests = make(chan *collector.ExportTraceServiceRequest, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		request := new(collector.ExportTraceServiceRequest)
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, request) != nil {
			t.Errorf("got %s %s (%v), want spans in protobuf", r.URL.Path, r.Header.Get("Content-Type"), err)
		}
		requests <- request
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

// setenv sets the variables of OpenTelemetry: those of a test, and no other.
func setenv(t *testing.T, vars map[string]string) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range vars {
		t.Setenv(name, value)
	}
}

func TestSpansAreExportedAtShutdown(t *testing.T) {
	url, requests := collect(t, http.StatusOK)
	setenv(t, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": url + "/",
		"OTEL_RESOURCE_ATTRIBUTES":    "deployment.environment.name=a%20test,service.version=7",
	})
	tracer, stop, err := otlp.Open("client-api", "1.2.3", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Start(t.Context(), trace.SpanKindServer, "POST /message/send", attribute.Int("http.response.status_code", 200))
	span.End()
	stop()
	got := (<-requests).ResourceSpans[0]
	resource := make(map[string]string)
	for _, a := range got.Resource.Attributes {
		resource[a.Key] = a.Value.GetStringValue()
	}
	for key, want := range map[string]string{
		"service.name": "client-api", "service.version": "7", "service.namespace": "parley", "deployment.environment.name": "a test",
	} {
		if resource[key] != want {
			t.Errorf("resource: got %s=%q, want %q", key, resource[key], want)
		}
	}
	if name := got.ScopeSpans[0].Spans[0].Name; name != "POST /message/send" || resource["service.instance.id"] == "" {
		t.Errorf("got span %q of %v", name, resource)
	}
}

func TestServiceNameFromTheEnvironment(t *testing.T) {
	url, requests := collect(t, http.StatusOK)
	setenv(t, map[string]string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": url + "/v1/traces",
		"OTEL_SERVICE_NAME":                  "shop-chat",
		"OTEL_RESOURCE_ATTRIBUTES":           "service.name=other",
	})
	tracer, stop, err := otlp.Open("client-api", "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Start(t.Context(), trace.SpanKindServer, "a")
	span.End()
	stop()
	for _, a := range (<-requests).ResourceSpans[0].Resource.Attributes {
		if a.Key == "service.name" && a.Value.GetStringValue() != "shop-chat" {
			t.Errorf("got service.name %s, want the value of OTEL_SERVICE_NAME", a.Value)
		}
	}
}

func TestSamplers(t *testing.T) {
	const sampled, unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	for _, c := range []struct {
		sampler, arg, parent string
		kept                 bool
	}{
		{"", "", "", true}, {"", "", unsampled, false},
		{"always_on", "", unsampled, true}, {"always_off", "", sampled, false},
		{"traceidratio", "0", sampled, false}, {"traceidratio", "1", unsampled, true}, {"traceidratio", "", "", true},
		{"parentbased_always_on", "", "", true}, {"parentbased_always_off", "", "", false}, {"parentbased_always_off", "", sampled, true},
		{"parentbased_traceidratio", "0", "", false}, {"parentbased_traceidratio", "0", sampled, true},
	} {
		setenv(t, map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
			"OTEL_TRACES_SAMPLER":         c.sampler,
			"OTEL_TRACES_SAMPLER_ARG":     c.arg,
		})
		tracer, stop, err := otlp.Open("test", "", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, _ := tracer.Start(event.WithTraceParent(t.Context(), c.parent), trace.SpanKindServer, "never ends")
		if got := strings.HasSuffix(event.TraceParent(ctx), "-01"); got != c.kept {
			t.Errorf("%+v: got kept %v", c, got)
		}
		stop()
	}
}

func TestNoEndpointIsNoTracer(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for _, vars := range []map[string]string{
		{}, {"OTEL_TRACES_EXPORTER": "otlp"},
		{endpoint: "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		{endpoint: "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		setenv(t, vars)
		tracer, stop, err := otlp.Open("test", "", slog.New(slog.DiscardHandler))
		if tracer != nil || err != nil {
			t.Errorf("%+v: got %v (%v), want no tracer", vars, tracer, err)
		}
		stop()
	}
}

func TestWrongVariablesAreErrors(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT":        "traces:4318",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "ftp://traces",
		"OTEL_EXPORTER_OTLP_PROTOCOL":        "grpc",
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
		"OTEL_TRACES_EXPORTER":               "zipkin",
		"OTEL_RESOURCE_ATTRIBUTES":           "a=b,c",
	} {
		vars := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
		vars[name] = value
		setenv(t, vars)
		_, _, err := otlp.Open("test", "", slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: got %v, want an error that names it", name, value, err)
		}
		setenv(t, map[string]string{name: ""})
	}
}

func TestARejectingCollectorIsLogged(t *testing.T) {
	url, _ := collect(t, http.StatusBadRequest)
	setenv(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url})
	var written bytes.Buffer
	tracer, stop, err := otlp.Open("test", "", slog.New(slog.NewJSONHandler(&written, nil)))
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Start(t.Context(), trace.SpanKindServer, "a")
	span.End()
	stop()
	if got := written.String(); strings.Count(got, "exporting traces failed") != 1 || !strings.Contains(got, "WARN") {
		t.Errorf("got %q, want one warning", got)
	}
}
