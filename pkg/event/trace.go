package event

import "context"

// WithTraceParent returns a context that carries a W3C traceparent (Trace Context, section 3.2) from the edge to whatever is
// published under it. A value that is not a traceparent is left out, so that garbage from a client never enters a stream.
func WithTraceParent(ctx context.Context, traceParent string) context.Context {
	return WithOrigin(ctx, Origin{RequestID: RequestID(ctx), TraceParent: traceParent})
}

// TraceParent returns the traceparent that ctx carries, or the empty string.
func TraceParent(ctx context.Context) string {
	if o := originOf(ctx); o != nil {
		return o.TraceParent
	}
	return ""
}

// TraceIDs returns the ids of the trace and of the span that ctx carries, in hexadecimal, or empty strings.
func TraceIDs(ctx context.Context) (traceID, spanID string) {
	if tp := TraceParent(ctx); tp != "" {
		return tp[3:35], tp[36:52]
	}
	return "", ""
}

const (
	traceParentLength = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	zeroTraceID       = "00000000000000000000000000000000"
	zeroParentID      = "0000000000000000"
)

// validTraceParent accepts version 00, and of later versions the part that version 00 understands (section 3.2.2.5).
func validTraceParent(s string) bool {
	if len(s) < traceParentLength || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return false
	}
	version, traceID, parentID, flags := s[:2], s[3:35], s[36:52], s[53:55]
	if version == "ff" || traceID == zeroTraceID || parentID == zeroParentID {
		return false
	}
	if len(s) > traceParentLength && (version == "00" || len(s) > 256 || s[traceParentLength] != '-' || !printable(s)) {
		return false
	}
	return lowerHex(version) && lowerHex(traceID) && lowerHex(parentID) && lowerHex(flags)
}

func lowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
