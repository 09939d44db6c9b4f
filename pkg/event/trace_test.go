package event_test

import (
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/event"
)

const goodTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestTraceParent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   string
		want bool
	}{
		"version 00":                 {goodTrace, true},
		"later version":              {"cc" + goodTrace[2:], true},
		"later version with more":    {"cc" + goodTrace[2:] + "-what-comes", true},
		"empty":                      {"", false},
		"version ff":                 {"ff" + goodTrace[2:], false},
		"version 00 with more":       {goodTrace + "-x", false},
		"later, more without a dash": {"cc" + goodTrace[2:] + "x", false},
		"later, endless":             {"cc" + goodTrace[2:] + "-" + strings.Repeat("x", 300), false},
		"later, with a line end":     {"cc" + goodTrace[2:] + "-a\r\nx: y", false},
		"zero trace":                 {"00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01", false},
		"zero parent":                {"00-0af7651916cd43dd8448eb211c80319c-" + strings.Repeat("0", 16) + "-01", false},
		"upper case":                 {strings.ToUpper(goodTrace), false},
		"no hex":                     {strings.Replace(goodTrace, "a", "g", 1), false},
		"dashes elsewhere":           {strings.Replace(goodTrace, "-", "_", 1), false},
		"short":                      {goodTrace[:54], false},
	} {
		got := event.TraceParent(event.WithTraceParent(t.Context(), c.in))
		if (got == c.in && c.in != "") != c.want || (got != "" && got != c.in) {
			t.Errorf("%s: got %q for %q, want it taken: %v", name, got, c.in, c.want)
		}
	}
	outer := event.WithTraceParent(t.Context(), goodTrace)
	if got := event.TraceParent(event.WithTraceParent(outer, "garbage")); got != goodTrace {
		t.Errorf("garbage over a valid one: got %q, want %q kept", got, goodTrace)
	}
}

func FuzzTraceParent(f *testing.F) {
	f.Add(goodTrace)
	f.Add("cc" + goodTrace[2:] + "-more")
	f.Fuzz(func(t *testing.T, s string) {
		got := event.TraceParent(event.WithTraceParent(t.Context(), s))
		if got != "" && (got != s || strings.ContainsAny(got, "\r\n ") || len(got) > 256) {
			t.Fatalf("got %q from %q", got, s)
		}
	})
}
