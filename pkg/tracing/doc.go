// Package tracing traces a message through the services: its HTTP request, the streams it passes and the sockets it
// reaches are spans of one OpenTelemetry trace.
//
// tracer.go starts and ends spans for other packages, which apply their own semantic conventions; log.go adds trace and
// request ids to log lines. The service's main creates the [Tracer] with the package otlp, the only one that links an
// exporter.
//
// Between processes, and between packages, a trace is propagated as the traceparent of [event.Origin], whether or not
// it is recorded. A tracestate is not propagated: only the ids enter a stream.
//
// Invariants:
//
//   - A nil [Tracer] starts no spans and allocates nothing, and every method of a nil [Span] does nothing.
//   - A span contains ids and sizes, never message content or names.
package tracing
