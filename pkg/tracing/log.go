package tracing

import (
	"context"
	"log/slog"

	"github.com/parley-chat/parley/pkg/event"
)

// Handler returns a handler that adds the ids of its context to each line: requestId, and trace_id and span_id, as
// OpenTelemetry names them in logs. A handler that already does this is returned unchanged.
func Handler(h slog.Handler) slog.Handler {
	if _, ok := h.(handler); ok {
		return h
	}
	return handler{h}
}

// Logger is [Handler] for a logger.
func Logger(log *slog.Logger) *slog.Logger { return slog.New(Handler(log.Handler())) }

type handler struct{ slog.Handler }

// Handle implements [slog.Handler].
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	requestID := event.RequestID(ctx)
	traceID, spanID := event.TraceIDs(ctx)
	if requestID == "" && traceID == "" {
		return h.Handler.Handle(ctx, r)
	}
	r = r.Clone()
	if requestID != "" {
		r.AddAttrs(slog.String("requestId", requestID))
	}
	if traceID != "" {
		r.AddAttrs(slog.String("trace_id", traceID), slog.String("span_id", spanID))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
