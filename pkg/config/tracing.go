package config

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Values of OTEL_TRACES_SAMPLER.
const (
	SamplerAlwaysOn          = "always_on"
	SamplerAlwaysOff         = "always_off"
	SamplerRatio             = "traceidratio"
	SamplerParentOrAlwaysOn  = "parentbased_always_on"
	SamplerParentOrAlwaysOff = "parentbased_always_off"
	SamplerParentOrRatio     = "parentbased_traceidratio"
)

// ProtocolHTTP is the only supported OTLP protocol.
const ProtocolHTTP = "http/protobuf"

// Tracing configures trace export with the variables of the OpenTelemetry specification. Without an endpoint, tracing
// is off. The exporter itself reads OTEL_EXPORTER_OTLP_HEADERS, _CERTIFICATE, _COMPRESSION, _TIMEOUT, and OTEL_BSP_*.
type Tracing struct {
	OTLPEndpoint       string `env:"OTEL_EXPORTER_OTLP_ENDPOINT" doc:"http or https address of an OpenTelemetry collector, such as http://traces:4318; empty: no traces"`
	OTLPTracesEndpoint string `env:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" doc:"full URL for traces only; overrides OTEL_EXPORTER_OTLP_ENDPOINT"`
	OTLPProtocol       string `env:"OTEL_EXPORTER_OTLP_PROTOCOL" envDefault:"http/protobuf" doc:"http/protobuf"`
	TracesExporter     string `env:"OTEL_TRACES_EXPORTER" envDefault:"otlp" doc:"otlp, or none"`
	TracesSampler      string `env:"OTEL_TRACES_SAMPLER" envDefault:"parentbased_always_on" doc:"always_on, always_off or traceidratio, each also as parentbased_..., which follows the caller's decision"`
	TracesSamplerArg   string `env:"OTEL_TRACES_SAMPLER_ARG" doc:"share of the traces that traceidratio keeps, from 0 to 1; empty: 1"`
	TracesServiceName  string `env:"OTEL_SERVICE_NAME" doc:"service name in traces; empty: the name of the service"`
	ResourceAttributes string `env:"OTEL_RESOURCE_ATTRIBUTES" doc:"resource attributes: key=value, separated by commas, percent-encoded"`
	OTelDisabled       bool   `env:"OTEL_SDK_DISABLED" envDefault:"false" doc:"disables tracing, whatever else is set"`
}

// On reports whether tracing is on.
func (t Tracing) On() bool {
	return t.TracesURL() != "" && t.TracesExporter != "none" && !t.OTelDisabled
}

// TracesURL returns the URL that traces are posted to; empty: none.
func (t Tracing) TracesURL() string {
	if t.OTLPTracesEndpoint != "" || t.OTLPEndpoint == "" {
		return t.OTLPTracesEndpoint
	}
	return strings.TrimSuffix(t.OTLPEndpoint, "/") + "/v1/traces"
}

// Attributes returns the resource attributes of OTEL_RESOURCE_ATTRIBUTES by key.
func (t Tracing) Attributes() map[string]string {
	attributes, _ := parseAttributes(t.ResourceAttributes)
	return attributes
}

// SamplerRatio returns the share of traces that a ratio sampler keeps.
func (t Tracing) SamplerRatio() float64 {
	ratio, err := strconv.ParseFloat(t.TracesSamplerArg, 64)
	if err != nil {
		return 1
	}
	return ratio
}

// Validate returns the problems of the block; see [Check].
func (t Tracing) Validate() []string {
	var problems []string
	need := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	need(
		t.OTLPEndpoint == "" || validURLs(t.OTLPEndpoint, "http", "https"),
		"OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL",
	)
	need(
		t.OTLPTracesEndpoint == "" || validURLs(t.OTLPTracesEndpoint, "http", "https"),
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be an http or https URL",
	)
	need(t.OTLPProtocol == "" || t.OTLPProtocol == ProtocolHTTP, "OTEL_EXPORTER_OTLP_PROTOCOL must be "+ProtocolHTTP)
	need(slices.Contains([]string{"", "otlp", "none"}, t.TracesExporter), "OTEL_TRACES_EXPORTER must be otlp or none")
	need(slices.Contains(samplers(), t.TracesSampler), "OTEL_TRACES_SAMPLER must be "+strings.Join(samplers()[1:], ", "))
	ratio, err := strconv.ParseFloat(t.TracesSamplerArg, 64)
	need(
		t.TracesSamplerArg == "" || err == nil && ratio >= 0 && ratio <= 1,
		"OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1",
	)
	_, ok := parseAttributes(t.ResourceAttributes)
	need(ok, "OTEL_RESOURCE_ATTRIBUTES must be key=value, separated by commas")
	return problems
}

// samplers lists the valid values; the first, empty, is for a Config written by hand.
func samplers() []string {
	return []string{
		"", SamplerAlwaysOn, SamplerAlwaysOff, SamplerRatio,
		SamplerParentOrAlwaysOn, SamplerParentOrAlwaysOff, SamplerParentOrRatio,
	}
}

// parseAttributes reads key=value pairs whose values are percent-encoded (OpenTelemetry, "Specifying resource
// information via an environment variable").
func parseAttributes(list string) (attributes map[string]string, ok bool) {
	attributes = make(map[string]string)
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, isPair := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !isPair || key == "" || err != nil {
			return nil, false
		}
		attributes[key] = value
	}
	return attributes, true
}
