// Package tracingtest keeps the spans of a test in memory.
package tracingtest

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/parley-chat/parley/pkg/tracing"
	"github.com/parley-chat/parley/testkit/timetest"
)

// Recorder has the ended spans.
type Recorder struct{ exporter *tracetest.InMemoryExporter }

// New returns a tracer that records every span.
func New(t testing.TB) (*tracing.Tracer, *Recorder) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	return tracing.New(provider), &Recorder{exporter}
}

// Span is an ended span.
type Span struct {
	Name, Kind                   string
	TraceID, SpanID, ParentID    string
	Status, StatusText           string
	Attributes, ExceptionMembers map[string]string
}

// TraceParent returns the traceparent of the span's children.
func (s Span) TraceParent() string { return "00-" + s.TraceID + "-" + s.SpanID + "-01" }

// Spans returns the ended spans with a name, in the order in which they ended; of all names if it is empty.
func (r *Recorder) Spans(name string) []Span {
	var spans []Span
	for _, s := range r.exporter.GetSpans() {
		if name == "" || s.Name == name {
			spans = append(spans, spanOf(s))
		}
	}
	return spans
}

// Await waits for the first ended span with a name.
func (r *Recorder) Await(t testing.TB, name string) Span {
	t.Helper()
	spans := timetest.Await(t, "the end of the span "+name, func() ([]Span, error) { return r.Spans(name), nil },
		func(spans []Span) bool { return len(spans) > 0 })
	return spans[0]
}

func spanOf(s tracetest.SpanStub) Span {
	span := Span{
		Name: s.Name, Kind: s.SpanKind.String(), TraceID: s.SpanContext.TraceID().String(), SpanID: s.SpanContext.SpanID().String(),
		Status: s.Status.Code.String(), StatusText: s.Status.Description,
		Attributes: make(map[string]string), ExceptionMembers: make(map[string]string),
	}
	if s.Parent.IsValid() {
		span.ParentID = s.Parent.SpanID().String()
	}
	for _, a := range s.Attributes {
		span.Attributes[string(a.Key)] = a.Value.String()
	}
	for _, e := range s.Events {
		for _, a := range e.Attributes {
			span.ExceptionMembers[string(a.Key)] = a.Value.String()
		}
	}
	return span
}
