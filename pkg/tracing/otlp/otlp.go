// Package otlp exports a service's spans to an OpenTelemetry collector, over HTTP. Only commands link it: its
// dependencies are larger than all others of a service.
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

// shutdownTimeout bounds the export of the remaining spans at shutdown.
const shutdownTimeout = 3 * time.Second

// Open returns the tracer of a service, and a function to call after its last span: stop exports the remaining spans.
// If tracing is off the Tracer is nil. While the collector is unavailable spans are lost; this is logged once.
func Open(
	cfg config.Tracing,
	service, version string,
	log *slog.Logger,
) (tracer *tracing.Tracer, stop func(), err error) {
	if !cfg.On() {
		return nil, func() {}, nil
	}
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(cfg.TracesURL()))
	if err != nil {
		return nil, nil, fmt.Errorf("configuring the trace exporter: %w", err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&loggingExporter{SpanExporter: exporter, log: log}),
		sdktrace.WithSampler(sampler(cfg)),
		sdktrace.WithResource(describe(cfg, service, version)),
	)
	stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		_ = provider.Shutdown(ctx) // the exporter has logged lost spans
	}
	return tracing.New(provider), stop, nil
}

// describe returns the resource attributes of the process; the environment takes precedence.
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
	return resource.NewSchemaless(attributes...) // of duplicate keys the last value counts
}

// sampler maps OTEL_TRACES_SAMPLER to a sampler.
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

// loggingExporter logs when exporting fails, and when it works again.
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
		t.log.Warn("exporting traces failed, spans are lost until it recovers", "error", err)
	case err == nil && t.failing.Swap(false):
		t.log.Info("exporting traces works again")
	}
	return nil // logged; the SDK would write to standard error
}
