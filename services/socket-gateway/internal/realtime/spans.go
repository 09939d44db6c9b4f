package realtime

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/pkg/tracing"
	"github.com/parley-chat/parley/services/socket-gateway/internal/metadata"
)

// A reply's trace continues from its delivery (a span of the bus): the publish to all gateways is a span,
// whose traceparent is part of the broadcast's metadata, and so is the emit to the sockets of a room on each
// gateway that has any.

// TracePublishes wraps an adapter constructor so that publishes are recorded as spans. Without a tracer it
// returns adapter.
func TracePublishes(
	adapter func(socketio.Local) socketio.Adapter,
	tracer *tracing.Tracer,
) func(socketio.Local) socketio.Adapter {
	if tracer == nil {
		return adapter
	}
	return func(local socketio.Local) socketio.Adapter {
		inner := adapter(local)
		ordered, ok := inner.(socketio.OrderedAdapter)
		if !ok {
			return inner
		}
		return &tracedAdapter{OrderedAdapter: ordered, tracer: tracer}
	}
}

// tracedAdapter records the publishes of an adapter as spans.
type tracedAdapter struct {
	socketio.OrderedAdapter
	tracer *tracing.Tracer
}

// PublishOrdered implements [socketio.OrderedAdapter]. The emits on the gateways are children of the publish's span.
func (a *tracedAdapter) PublishOrdered(ctx context.Context, batch []*socketio.Broadcast) []error {
	before, spans := make([]map[string]string, len(batch)), make([]*tracing.Span, len(batch))
	for i, b := range batch {
		before[i] = b.Metadata
		m := metadata.Of(b)
		if m.TraceParent == "" {
			continue
		}
		m.TraceParent, spans[i] = a.begin(ctx, b, m.TraceParent, len(batch))
		m.Put(b)
	}
	errs := a.OrderedAdapter.PublishOrdered(ctx, batch)
	for i, b := range batch {
		b.Metadata = before[i]
		if errs != nil {
			spans[i].Finish(errs[i])
			continue
		}
		spans[i].End()
	}
	return errs
}

// begin starts the span of a publish, following the OpenTelemetry semantic conventions for Redis.
func (a *tracedAdapter) begin(
	ctx context.Context,
	b *socketio.Broadcast,
	parent string,
	together int,
) (traceParent string, span *tracing.Span) {
	ctx, span = a.tracer.Start(event.WithTraceParent(ctx, parent), trace.SpanKindProducer, "PUBLISH",
		attribute.String("db.system.name", "redis"),
		attribute.String("db.operation.name", "PUBLISH"),
		attribute.Int("db.operation.batch.size", together),
		attribute.StringSlice("parley.rooms", b.Rooms),
	)
	return event.TraceParent(ctx), span
}
