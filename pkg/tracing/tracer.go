package tracing

import (
	"context"
	"encoding/hex"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/event"
)

// scope is the instrumentation scope of the spans.
const scope = "github.com/parley-chat/parley"

// Tracer starts the spans of one service. It is safe for concurrent use; a nil Tracer starts none.
//
// The attributes of a span are evaluated before Start is called: on a hot path check for nil first.
type Tracer struct{ tracer trace.Tracer }

// New returns a Tracer with spans from provider.
func New(provider trace.TracerProvider) *Tracer { return &Tracer{provider.Tracer(scope)} }

// Start starts a span as a child of the span in ctx: one of this process, or the traceparent of another one. The
// returned context carries the new span, also as its traceparent.
func (t *Tracer) Start(
	ctx context.Context,
	kind trace.SpanKind,
	name string,
	attributes ...attribute.KeyValue,
) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	if parent := event.TraceParent(ctx); parent != "" && !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parse(parent))
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
	return event.WithTraceParent(ctx, format(span.SpanContext())), &Span{span}
}

// Span is a unit of work. It is used by one goroutine at a time; a nil Span does nothing.
type Span struct{ span trace.Span }

// SampledTraceID returns the id of the span's trace if it is sampled, else the empty string.
func (s *Span) SampledTraceID() string {
	if s == nil || !s.span.SpanContext().IsSampled() {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}

// Set adds attributes.
func (s *Span) Set(attributes ...attribute.KeyValue) {
	if s != nil {
		s.span.SetAttributes(attributes...)
	}
}

// Fail marks the span as failed, with the text of internal errors only: other texts could contain caller input.
func (s *Span) Fail(err error) {
	if s == nil {
		return
	}
	reason := apperr.ReasonOf(err)
	s.span.SetAttributes(attribute.String("error.type", reason))
	s.span.SetStatus(codes.Error, reason)
	s.span.AddEvent("exception", trace.WithAttributes(
		attribute.String("exception.type", reason),
		attribute.String("exception.message", apperr.LogText(err)),
	))
}

// End ends the span, which must not be used afterwards.
func (s *Span) End() {
	if s != nil {
		s.span.End()
	}
}

// Finish ends the span of work that returned err.
func (s *Span) Finish(err error) {
	if err != nil {
		s.Fail(err)
	}
	s.End()
}

// parse parses a traceparent; an invalid one yields an empty context.
func parse(traceParent string) trace.SpanContext {
	if !event.ValidTraceParent(traceParent) {
		return trace.SpanContext{}
	}
	var cfg trace.SpanContextConfig
	var flags [1]byte
	// Valid ones have hexadecimal digits at these positions.
	_, _ = hex.Decode(cfg.TraceID[:], []byte(traceParent[3:35]))
	_, _ = hex.Decode(cfg.SpanID[:], []byte(traceParent[36:52]))
	_, _ = hex.Decode(flags[:], []byte(traceParent[53:55]))
	cfg.TraceFlags, cfg.Remote = trace.TraceFlags(flags[0])&trace.FlagsSampled, true
	return trace.NewSpanContext(cfg)
}

// format formats the traceparent of a span, in version 00 (W3C Trace Context, section 3.2.2).
func format(sc trace.SpanContext) string {
	traceID, spanID, flags := sc.TraceID(), sc.SpanID(), sc.TraceFlags()&trace.FlagsSampled
	dst := make([]byte, 0, 55)
	dst = hex.AppendEncode(append(dst, "00-"...), traceID[:])
	dst = hex.AppendEncode(append(dst, '-'), spanID[:])
	return string(hex.AppendEncode(append(dst, '-'), []byte{byte(flags)}))
}
