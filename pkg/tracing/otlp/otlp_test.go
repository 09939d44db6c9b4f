package otlp_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/parley-chat/parley/pkg/config"
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

func TestSpansAreExportedAtShutdown(t *testing.T) {
	t.Parallel()
	url, requests := collect(t, http.StatusOK)
	cfg := config.Tracing{OTLPEndpoint: url + "/", ResourceAttributes: "deployment.environment.name=a%20test,service.version=7"}
	tracer, stop, err := otlp.Open(cfg, "client-api", "1.2.3", slog.New(slog.DiscardHandler))
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
	t.Parallel()
	url, requests := collect(t, http.StatusOK)
	cfg := config.Tracing{OTLPTracesEndpoint: url + "/v1/traces", TracesServiceName: "shop-chat", ResourceAttributes: "service.name=other"}
	tracer, stop, err := otlp.Open(cfg, "client-api", "", slog.New(slog.DiscardHandler))
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
	t.Parallel()
	const sampled, unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	for _, c := range []struct {
		sampler, arg, parent string
		kept                 bool
	}{
		{"", "", "", true}, {"", "", unsampled, false},
		{config.SamplerAlwaysOn, "", unsampled, true}, {config.SamplerAlwaysOff, "", sampled, false},
		{config.SamplerRatio, "0", sampled, false}, {config.SamplerRatio, "1", unsampled, true}, {config.SamplerRatio, "", "", true},
		{config.SamplerParentOrAlwaysOn, "", "", true}, {config.SamplerParentOrAlwaysOff, "", "", false}, {config.SamplerParentOrAlwaysOff, "", sampled, true},
		{config.SamplerParentOrRatio, "0", "", false}, {config.SamplerParentOrRatio, "0", sampled, true},
	} {
		cfg := config.Tracing{OTLPEndpoint: "http://127.0.0.1:1", TracesSampler: c.sampler, TracesSamplerArg: c.arg}
		tracer, stop, err := otlp.Open(cfg, "test", "", slog.New(slog.DiscardHandler))
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
	t.Parallel()
	for _, cfg := range []config.Tracing{
		{}, {TracesExporter: "otlp"},
		{OTLPEndpoint: "http://127.0.0.1:1", OTelDisabled: true},
		{OTLPEndpoint: "http://127.0.0.1:1", TracesExporter: "none"},
	} {
		tracer, stop, err := otlp.Open(cfg, "test", "", slog.New(slog.DiscardHandler))
		if tracer != nil || err != nil {
			t.Errorf("%+v: got %v (%v), want no tracer", cfg, tracer, err)
		}
		stop()
	}
}

func TestARejectingCollectorIsLogged(t *testing.T) {
	t.Parallel()
	url, _ := collect(t, http.StatusBadRequest)
	var written bytes.Buffer
	tracer, stop, err := otlp.Open(config.Tracing{OTLPEndpoint: url}, "test", "", slog.New(slog.NewJSONHandler(&written, nil)))
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
