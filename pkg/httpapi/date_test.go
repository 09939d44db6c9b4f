package httpapi

import (
	"net/http"
	"testing"
	"time"
)

func TestDateFollowsTheClock(t *testing.T) {
	t.Parallel()
	var d dateHeader
	start := time.Date(2026, 5, 4, 3, 2, 1, 0, time.FixedZone("", 3600))
	for _, after := range []time.Duration{0, 999 * time.Millisecond, time.Second, time.Hour, 0} {
		now := start.Add(after)
		if got, want := d.at(now), now.UTC().Format(http.TimeFormat); len(got) != 1 || got[0] != want {
			t.Errorf("after %v: got %q, want %q", after, got, want)
		}
	}
}
