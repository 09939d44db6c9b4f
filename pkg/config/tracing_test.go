package config_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/parley-chat/parley/pkg/config"
)

func TestTracingValidate(t *testing.T) {
	t.Parallel()
	wrong := config.Tracing{
		OTLPEndpoint: "traces:4318", OTLPTracesEndpoint: "ftp://traces", OTLPProtocol: "grpc", TracesExporter: "zipkin",
		TracesSampler: "sometimes", TracesSamplerArg: "2", ResourceAttributes: "a=b,c",
	}
	want := []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be an http or https URL",
		"OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf",
		"OTEL_TRACES_EXPORTER must be otlp or none",
		"OTEL_TRACES_SAMPLER must be always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off, parentbased_traceidratio",
		"OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1",
		"OTEL_RESOURCE_ATTRIBUTES must be key=value, separated by commas",
	}
	if got := wrong.Validate(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, right := range []config.Tracing{
		{}, {OTLPEndpoint: "https://a:4318/base", OTLPProtocol: config.ProtocolHTTP, TracesSampler: config.SamplerRatio, TracesSamplerArg: "0.05"},
	} {
		if got := right.Validate(); got != nil {
			t.Errorf("%+v: got %q, want no problems", right, got)
		}
	}
}

func TestTracingURL(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]config.Tracing{
		"":                          {},
		"http://a:4318/v1/traces":   {OTLPEndpoint: "http://a:4318"},
		"https://a/base/v1/traces":  {OTLPEndpoint: "https://a/base/"},
		"https://b/own/path/traces": {OTLPEndpoint: "http://a:4318", OTLPTracesEndpoint: "https://b/own/path/traces"},
	} {
		if got := cfg.TracesURL(); got != want || cfg.On() != (want != "") {
			t.Errorf("got %q (on: %v), want %q", got, cfg.On(), want)
		}
	}
}

func TestTracingAttributes(t *testing.T) {
	t.Parallel()
	cfg := config.Tracing{ResourceAttributes: " region = eu%2Cwest , ,empty="}
	if got, want := cfg.Attributes(), map[string]string{"region": "eu,west", "empty": ""}; !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
