package bus

// The spans of publishes and tries, which publish.go and consume_handle.go begin and finish.

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/tracing"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Spans follow OpenTelemetry's semantic conventions for messaging: publishing is a "send", and each try of a
// handler is a "process" whose parent is the send. Spans contain subjects, which hold ids, but no payloads.

// beginSend starts the span of a publish. The returned context passes it to the event's headers.
func (b *Bus) beginSend(ctx context.Context, e event.Event) (context.Context, *tracing.Span) {
	if b.cfg.Tracer == nil {
		return ctx, nil
	}
	return b.send(ctx, e.Subject(), e.EventID(), attribute.String("cloudevents.event_type", e.Type()))
}

func (b *Bus) send(ctx context.Context, subj, id string, more ...attribute.KeyValue) (context.Context, *tracing.Span) {
	stream := subject.StreamOf(subj)
	return b.cfg.Tracer.Start(ctx, trace.SpanKindProducer, "publish "+stream, append(more,
		attribute.String("messaging.system", "nats"),
		attribute.String("messaging.operation.type", "send"),
		attribute.String("messaging.operation.name", "publish"),
		attribute.String("messaging.destination.name", subj),
		attribute.String("messaging.message.id", id),
		attribute.String("messaging.nats.stream", stream),
	)...)
}

// originOf returns the context of a delivery, with its request id and its trace.
func (g *group) originOf(t *task) context.Context {
	return event.WithOrigin(t.partition.handlerCtx, event.Origin{
		RequestID: t.delivery.Header.Get(headerRequestID), TraceParent: t.delivery.TraceParent,
	})
}

// beginProcess starts the span of a try, the parent of the handler's spans and publishes.
func (g *group) beginProcess(ctx context.Context, t *task) (context.Context, *tracing.Span) {
	tracer := g.bus.cfg.Tracer
	if tracer == nil {
		return ctx, nil
	}
	d := &t.delivery
	return tracer.Start(ctx, trace.SpanKindConsumer, "process "+g.cfg.Stream,
		attribute.String("messaging.system", "nats"),
		attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.operation.name", "process"),
		attribute.String("messaging.destination.name", d.Subject),
		attribute.String("messaging.consumer.group.name", g.cfg.Durable),
		attribute.String("messaging.message.id", d.ID),
		attribute.Int("messaging.message.body.size", len(d.Data)),
		attribute.String("messaging.nats.stream", g.cfg.Stream),
		attribute.Int64("messaging.nats.sequence", int64(d.Sequence)),
		attribute.Int("messaging.nats.attempt", d.Attempt),
	)
}

// beginAll starts the span of each task in a batch and sets the TraceParent of its delivery.
func (g *group) beginAll(tasks []*task, batch []Delivery) []*tracing.Span {
	if g.bus.cfg.Tracer == nil {
		return nil
	}
	spans := make([]*tracing.Span, len(tasks))
	for i, t := range tasks {
		ctx, span := g.beginProcess(g.originOf(t), t)
		batch[i].TraceParent, spans[i] = event.TraceParent(ctx), span
	}
	return spans
}

func finishAll(spans []*tracing.Span, errs []error) {
	for i, span := range spans {
		span.Finish(errs[i])
	}
}
