package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-chat/parley/pkg/event"
)

// beginSpan starts the span of a request, in the caller's trace or in a new one (semantic conventions for HTTP
// servers). It has the route but not the URL: paths and queries may contain personal data.
func (r *requests) beginSpan(c echo.Context, scope *requestScope) {
	req := c.Request()
	name, method := methodLabel(req.Method), methodLabel(req.Method)
	if method == "OTHER" {
		name, method = "HTTP", "_OTHER" // as the conventions specify
	}
	attributes := []attribute.KeyValue{
		attribute.String("http.request.method", method),
		attribute.String("url.scheme", c.Scheme()),
		attribute.String("network.protocol.version", strings.TrimPrefix(req.Proto, "HTTP/")),
		attribute.String("parley.request.id", scope.origin.RequestID),
	}
	if route := c.Path(); route != "" {
		name += " " + route
		attributes = append(attributes, attribute.String("http.route", route))
	}
	ctx := event.WithOrigin(scope.Context, scope.origin)
	scope.Context, scope.span = r.tracer.Start(ctx, trace.SpanKindServer, name, attributes...)
	scope.origin.TraceParent = event.TraceParent(scope.Context)
}

// endSpan ends the request's span. A client error does not fail the span and adds only the status.
func endSpan(ctx context.Context, status int, err error) {
	span := scopeOf(ctx).span
	span.Set(attribute.Int("http.response.status_code", status))
	if status >= http.StatusInternalServerError && err != nil {
		span.Fail(err)
	}
	span.End()
}
