// Package otlp exports a service's spans to an OpenTelemetry collector, over HTTP. Only commands link it: its
// dependencies are larger than all others of a service.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
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
//
// The OpenTelemetry libraries read their own variables: of the exporter, the batches, the sampler and the resource.
// Without an endpoint tracing is off.
func Open(service, version string, log *slog.Logger) (tracer *tracing.Tracer, stop func(), err error) {
	on, err := enabled()
	if err != nil || !on {
		return nil, func() {}, err
	}
	exporter, err := otlptracehttp.New(context.Background())
	if err != nil {
		return nil, nil, fmt.Errorf("configuring the trace exporter: %w", err)
	}
	process, err := describe(service, version)
	if err != nil {
		return nil, nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&loggingExporter{SpanExporter: exporter, log: log}),
		sdktrace.WithResource(process),
	)
	stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		_ = provider.Shutdown(ctx) // the exporter has logged lost spans
	}
	return tracing.New(provider), stop, nil
}

// enabled reports whether the environment names a collector and does not turn tracing off. What the libraries would
// replace by a default without a word is an error.
func enabled() (bool, error) {
	endpoint := os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
	traces := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	exporter := os.Getenv("OTEL_TRACES_EXPORTER")
	if endpoint == "" && traces == "" || exporter == "none" || os.Getenv("OTEL_SDK_DISABLED") == "true" {
		return false, nil
	}
	if exporter != "" && exporter != "otlp" {
		return false, errors.New("configuration: OTEL_TRACES_EXPORTER must be otlp or none")
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"} {
		if protocol := os.Getenv(name); protocol != "" && protocol != "http/protobuf" {
			return false, errors.New("configuration: " + name + " must be http/protobuf")
		}
	}
	for name, url := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": traces,
	} {
		if url != "" && !config.WebURL(url) {
			return false, errors.New("configuration: " + name + " must be an http or https URL")
		}
	}
	return true, nil
}

// describe returns the resource attributes of the process; the environment takes precedence.
func describe(service, version string) (*resource.Resource, error) {
	return resource.New(context.Background(),
		resource.WithAttributes(
			attribute.String("telemetry.sdk.name", "opentelemetry"),
			attribute.String("telemetry.sdk.language", "go"), attribute.String("service.namespace", "parley"),
			attribute.String("service.name", service), attribute.String("service.version", version),
			attribute.String("service.instance.id", uuid.NewString()),
		),
		resource.WithFromEnv(),
	)
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
