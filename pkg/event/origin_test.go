package event_test

import (
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/event"
)

func TestOrigin(t *testing.T) {
	t.Parallel()
	outer := event.WithOrigin(t.Context(), event.Origin{RequestID: "r-1_2.3", TraceParent: goodTrace})
	for name, o := range map[string]event.Origin{
		"nothing": {}, "garbage": {RequestID: "a b", TraceParent: "garbage"}, "endless": {RequestID: strings.Repeat("x", 129)}, "a line end": {RequestID: "a\nb"},
	} {
		ctx := event.WithOrigin(outer, o)
		if ctx != outer || event.RequestID(ctx) != "r-1_2.3" || event.TraceParent(ctx) != goodTrace {
			t.Errorf("%s: got %q and %q, want what was there", name, event.RequestID(ctx), event.TraceParent(ctx))
		}
		if got := event.WithOrigin(t.Context(), o); event.RequestID(got) != "" || event.TraceParent(got) != "" {
			t.Errorf("%s: got %q and %q, want nothing", name, event.RequestID(got), event.TraceParent(got))
		}
	}
	const other = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	inner := event.WithTraceParent(outer, other)
	if event.RequestID(inner) != "r-1_2.3" || event.TraceParent(inner) != other {
		t.Errorf("got %q and %q, want the request kept under another span", event.RequestID(inner), event.TraceParent(inner))
	}
	if traceID, spanID := event.TraceIDs(inner); traceID != other[3:35] || spanID != other[36:52] {
		t.Errorf("got %s and %s, want the ids in %s", traceID, spanID, other)
	}
	if traceID, spanID := event.TraceIDs(t.Context()); traceID != "" || spanID != "" {
		t.Errorf("got %s and %s, want none", traceID, spanID)
	}
}
