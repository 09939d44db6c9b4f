package tracing_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/tracing"
	"github.com/parley-chat/parley/testkit/tracingtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	traceID     = "0af7651916cd43dd8448eb211c80319c"
	callersSpan = "b7ad6b7169203331"
	traceParent = "00-" + traceID + "-" + callersSpan + "-01"
)

func TestSpansAreChildrenOfTheTraceParent(t *testing.T) {
	t.Parallel()
	tracer, recorder := tracingtest.New(t)
	ctx, outer := tracer.Start(event.WithTraceParent(t.Context(), traceParent), trace.SpanKindServer, "outer")
	if got := event.TraceParent(ctx); got == traceParent || !strings.HasPrefix(got, "00-"+traceID+"-") || !strings.HasSuffix(got, "-01") {
		t.Errorf("under the span: got traceparent %q, want a new span of the caller's trace", got)
	}
	_, inner := tracer.Start(ctx, trace.SpanKindProducer, "inner")
	inner.End()
	outer.End()
	first, second := recorder.Spans("outer")[0], recorder.Spans("inner")[0]
	if first.TraceID != traceID || first.ParentID != callersSpan || event.TraceParent(ctx) != first.TraceParent() {
		t.Errorf("got %+v, want a child of the caller's span", first)
	}
	if second.TraceID != traceID || second.ParentID != first.SpanID {
		t.Errorf("got %+v, want a child of %s", second, first.SpanID)
	}
}

// An unsampled caller's trace is not recorded, but its ids are propagated.
func TestAnUnsampledTraceIsNotRecorded(t *testing.T) {
	t.Parallel()
	tracer, recorder := tracingtest.New(t)
	ctx, span := tracer.Start(event.WithTraceParent(t.Context(), strings.TrimSuffix(traceParent, "01")+"00"), trace.SpanKindServer, "unsampled")
	span.End()
	if got := event.TraceParent(ctx); !strings.HasPrefix(got, "00-"+traceID+"-") || !strings.HasSuffix(got, "-00") {
		t.Errorf("got traceparent %q, want the caller's trace, not sampled", got)
	}
	if got := recorder.Spans(""); len(got) != 0 {
		t.Errorf("got %+v, want no spans", got)
	}
}

func TestFailedSpans(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err             error
		status, message string
	}{
		"a fault of ours":  {errors.New("out of paper"), "internal", "out of paper"},
		"what we need":     {apperr.Unreachable("redis", errors.New("refused")), "SERVICE_UNAVAILABLE", "Service is temporarily unavailable. Please try again.: redis: refused"},
		"the sender's own": {apperr.New(apperr.Invalid, "MALFORMED_EVENT", "Event is malformed").Wrap(errors.New("at ada@example.org")), "MALFORMED_EVENT", "Event is malformed"},
	} {
		tracer, recorder := tracingtest.New(t)
		_, span := tracer.Start(t.Context(), trace.SpanKindConsumer, "work")
		span.Finish(c.err)
		got := recorder.Spans("work")[0]
		if got.Status != "Error" || got.StatusText != c.status || got.Attributes["error.type"] != c.status || got.ExceptionMembers["exception.message"] != c.message {
			t.Errorf("%s: got %+v, want %s and %q", name, got, c.status, c.message)
		}
	}
	tracer, recorder := tracingtest.New(t)
	_, span := tracer.Start(t.Context(), trace.SpanKindConsumer, "work")
	span.Finish(nil)
	if got := recorder.Spans("work")[0]; got.Status != "Unset" {
		t.Errorf("work that was done: got status %s, want none", got.Status)
	}
}

func TestNilTracerDoesNotAllocate(t *testing.T) {
	ctx := event.WithTraceParent(t.Context(), traceParent)
	var tracer *tracing.Tracer
	allocations := testing.AllocsPerRun(100, func() {
		under, span := tracer.Start(ctx, trace.SpanKindServer, "nothing")
		span.Set()
		span.Fail(context.Canceled)
		span.Finish(context.Canceled)
		span.End()
		if under != ctx || span != nil {
			t.Fatal("got a span, want none")
		}
	})
	if allocations != 0 {
		t.Errorf("got %v allocations, want none", allocations)
	}
}

func TestLogLinesHaveRequestAndTraceIDs(t *testing.T) {
	t.Parallel()
	var written bytes.Buffer
	log := tracing.Logger(slog.New(slog.NewJSONHandler(&written, nil)))
	log = tracing.Logger(log).With("service", "test") // wrapping twice adds the ids once
	for name, c := range map[string]struct {
		ctx  context.Context
		want map[string]any
	}{
		"nothing":     {t.Context(), map[string]any{}},
		"a request":   {event.WithOrigin(t.Context(), event.Origin{RequestID: "r1"}), map[string]any{"requestId": "r1"}},
		"a trace":     {event.WithTraceParent(t.Context(), traceParent), map[string]any{"trace_id": traceID, "span_id": callersSpan}},
		"both of one": {event.WithOrigin(t.Context(), event.Origin{RequestID: "r1", TraceParent: traceParent}), map[string]any{"requestId": "r1", "trace_id": traceID, "span_id": callersSpan}},
	} {
		written.Reset()
		log.InfoContext(c.ctx, "line")
		var got map[string]any
		if err := json.Unmarshal(written.Bytes(), &got); err != nil || got["service"] != "test" {
			t.Fatalf("%s: got %s (%v)", name, &written, err)
		}
		for _, member := range []string{"requestId", "trace_id", "span_id"} {
			if got[member] != c.want[member] || strings.Count(written.String(), member) > 1 {
				t.Errorf("%s: got %s, want %s once as %v", name, &written, member, c.want[member])
			}
		}
	}
}
