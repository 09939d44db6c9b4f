// Package tracing follows a message through the services: the request that brought it, the streams that it passes, and the
// sockets that it reaches are spans of one OpenTelemetry trace.
//
// tracer.go begins and ends spans for the packages that do the work, each of which knows its own semantic conventions; log.go
// adds the ids of the trace and of the request to log lines. The service's main creates the [Tracer] with the package otlp, the
// only one that links an exporter.
//
// Between processes, and between the packages of one, a trace travels as the traceparent of [event.Origin], which is passed on
// whether traces are kept or not. A tracestate is not passed on: no more than the ids enters a stream.
//
// Invariants:
//
//   - A nil [Tracer] begins no spans and allocates nothing, and every method of a nil [Span] does nothing.
//   - A span holds ids and sizes, never what people wrote or are called.
package tracing
