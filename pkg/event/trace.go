package event

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// WithTraceParent returns a context with a W3C traceparent (Trace Context, section 3.2) for the events published under
// it. A malformed value is ignored, so that invalid client input never enters a stream.
func WithTraceParent(ctx context.Context, traceParent string) context.Context {
	return WithOrigin(ctx, Origin{RequestID: RequestID(ctx), TraceParent: traceParent})
}

// TraceParent returns the traceparent of ctx, or the empty string.
func TraceParent(ctx context.Context) string {
	if o := originOf(ctx); o != nil {
		return o.TraceParent
	}
	return ""
}

// TraceIDs returns the trace id and span id of ctx, in hexadecimal, or empty strings.
func TraceIDs(ctx context.Context) (traceID, spanID string) {
	if tp := TraceParent(ctx); tp != "" {
		return tp[3:35], tp[36:52]
	}
	return "", ""
}

// ValidTraceParent reports whether s is a traceparent that can be propagated. It uses OpenTelemetry's parser,
// which ignores the suffix of later versions (section 3.2.2.5). The suffix is bounded and printable here, so
// that it cannot inject a header line.
func ValidTraceParent(s string) bool {
	if len(s) > maxTraceParent || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return false
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": s})
	return trace.SpanContextFromContext(ctx).IsValid()
}

const maxTraceParent = 256 // bytes
