package event

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// WithTraceParent returns a context that carries a W3C traceparent (Trace Context, section 3.2) from the edge to whatever is
// published under it. A value that is not a traceparent is left out, so that garbage from a client never enters a stream.
func WithTraceParent(ctx context.Context, traceParent string) context.Context {
	return WithOrigin(ctx, Origin{RequestID: RequestID(ctx), TraceParent: traceParent})
}

// TraceParent returns the traceparent that ctx carries, or the empty string.
func TraceParent(ctx context.Context) string {
	if o := originOf(ctx); o != nil {
		return o.TraceParent
	}
	return ""
}

// TraceIDs returns the ids of the trace and of the span that ctx carries, in hexadecimal, or empty strings.
func TraceIDs(ctx context.Context) (traceID, spanID string) {
	if tp := TraceParent(ctx); tp != "" {
		return tp[3:35], tp[36:52]
	}
	return "", ""
}

// validTraceParent leaves the judgement to OpenTelemetry, which does not look at what a later version may append (section 3.2.2.5): that is
// bounded here, and printable, so that no header line is smuggled in.
func validTraceParent(s string) bool {
	if len(s) > maxTraceParent || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return false
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": s})
	return trace.SpanContextFromContext(ctx).IsValid()
}

const maxTraceParent = 256 // bytes
