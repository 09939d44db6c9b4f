package event

import "context"

// Origin is the request and the trace that caused an event. Contexts and event headers propagate it, so that log lines
// and spans of an event can be linked to its request.
type Origin struct {
	RequestID   string // X-Request-Id of the HTTP request; empty: unknown
	TraceParent string // W3C traceparent; empty: none
}

// OriginKey is the context key of an *Origin. A custom context type that implements it does not need [WithOrigin].
type OriginKey struct{}

// WithOrigin returns a context with o for the events published under it. A malformed request id or traceparent is
// replaced by that of ctx, so that invalid client input never enters a stream.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	before := originOf(ctx)
	if before == nil {
		before = &Origin{}
	}
	if !ValidRequestID(o.RequestID) {
		o.RequestID = before.RequestID
	}
	if !ValidTraceParent(o.TraceParent) {
		o.TraceParent = before.TraceParent
	}
	if o == *before {
		return ctx
	}
	return &originContext{Context: ctx, origin: o}
}

// RequestID returns the id of the request that ctx belongs to, or the empty string.
func RequestID(ctx context.Context) string {
	if o := originOf(ctx); o != nil {
		return o.RequestID
	}
	return ""
}

func originOf(ctx context.Context) *Origin {
	o, _ := ctx.Value(OriginKey{}).(*Origin)
	return o
}

// originContext combines the context and its origin in one allocation.
type originContext struct {
	context.Context
	origin Origin
}

// Value implements [context.Context].
func (c *originContext) Value(key any) any {
	if _, ok := key.(OriginKey); ok {
		return &c.origin
	}
	return c.Context.Value(key)
}

const maxRequestID = 128

// ValidRequestID reports whether s is a valid request id: up to 128 letters, digits, dots, dashes and underscores.
func ValidRequestID(s string) bool {
	if s == "" || len(s) > maxRequestID {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
