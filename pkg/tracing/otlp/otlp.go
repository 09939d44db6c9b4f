// Package otlp sends the spans of a service to an OpenTelemetry collector, over HTTP. It is linked by the commands alone: what it
// brings along is larger than all else that a service needs.
package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/tracing"
)

// farewell is how long what has not been sent yet may take at the end.
const farewell = 3 * time.Second

// Open returns what a service begins its spans with, and what it is to call when its last span has ended: stop sends what is
// left. Without traces the Tracer is nil. While the collector is away spans are lost; this is logged once.
func Open(cfg config.Tracing, service, version string, log *slog.Logger) (tracer *tracing.Tracer, stop func(), err error) {
	if !cfg.On() {
		return nil, func() {}, nil
	}
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(cfg.TracesURL()))
	if err != nil {
		return nil, nil, fmt.Errorf("preparing to send traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&loggingExporter{SpanExporter: exporter, log: log}),
		sdktrace.WithSampler(sampler(cfg)),
		sdktrace.WithResource(describe(cfg, service, version)),
	)
	stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), farewell)
		defer cancel()
		_ = provider.Shutdown(ctx) // the exporter has logged lost spans
	}
	return tracing.New(provider), stop, nil
}

// describe is what a trace says about the process; the environment has the last word.
func describe(cfg config.Tracing, service, version string) *resource.Resource {
	attributes := []attribute.KeyValue{
		attribute.String("telemetry.sdk.name", "opentelemetry"),
		attribute.String("telemetry.sdk.language", "go"),
		attribute.String("service.namespace", "parley"),
		attribute.String("service.name", service),
		attribute.String("service.version", version),
		attribute.String("service.instance.id", uuid.NewString()),
	}
	for key, value := range cfg.Attributes() {
		attributes = append(attributes, attribute.String(key, value))
	}
	if cfg.TracesServiceName != "" {
		attributes = append(attributes, attribute.String("service.name", cfg.TracesServiceName))
	}
	return resource.NewSchemaless(attributes...) // of one key the last value counts
}

// sampler is the one table from OTEL_TRACES_SAMPLER to what it means.
func sampler(cfg config.Tracing) sdktrace.Sampler {
	ratio := sdktrace.TraceIDRatioBased(cfg.SamplerRatio())
	switch cfg.TracesSampler {
	case config.SamplerAlwaysOn:
		return sdktrace.AlwaysSample()
	case config.SamplerAlwaysOff:
		return sdktrace.NeverSample()
	case config.SamplerRatio:
		return ratio
	case config.SamplerParentOrAlwaysOff:
		return sdktrace.ParentBased(sdktrace.NeverSample())
	case config.SamplerParentOrRatio:
		return sdktrace.ParentBased(ratio)
	}
	return sdktrace.ParentBased(sdktrace.AlwaysSample())
}

// loggingExporter says in the log when spans cannot be sent, and when they can again.
type loggingExporter struct {
	sdktrace.SpanExporter
	log     *slog.Logger
	failing atomic.Bool
}

// ExportSpans implements [sdktrace.SpanExporter].
func (t *loggingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := t.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && !t.failing.Swap(true):
		t.log.Warn("traces cannot be sent, and are lost until they can", "error", err)
	case err == nil && t.failing.Swap(false):
		t.log.Info("traces are sent again")
	}
	return nil // logged; the SDK would write to standard error
}
