package legacy

import (
	"net/http"
	"testing"
	"time"
)

func TestStrangersHaveABudget(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := newUnauthorizedLimiter(Config{MaxUnauthorized: 3, MaxUnauthorizedPerAddress: 2})
	s.now = func() time.Time { return now }
	for _, step := range []struct {
		from string
		want bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"b", false}, {"c", false}} {
		if got := s.admit(&http.Request{RemoteAddr: step.from}); got != step.want {
			t.Errorf("from %s: got %v, want %v", step.from, got, step.want)
		}
	}
	if got := s.count(); got != 3 {
		t.Errorf("got %d, want 3", got)
	}
	now = now.Add(keepRefused)
	if got := s.count(); got != 0 || len(s.byAddress) != 0 {
		t.Errorf("got %d and %d addresses, want none", got, len(s.byAddress))
	}
	if !s.admit(&http.Request{RemoteAddr: "a"}) {
		t.Error("got a refusal, want it admitted")
	}
}
