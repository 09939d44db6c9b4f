package bus

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
)

func TestDisposition(t *testing.T) {
	t.Parallel()
	coded := func(c apperr.Code) error { return fmt.Errorf("handling: %w", apperr.New(c, "R", "m")) }
	for _, c := range []struct {
		name    string
		err     error
		tries   int
		elapsed time.Duration
		want    disposition
	}{
		{"success", nil, 1, 0, acknowledge},
		{"conflict", coded(apperr.Conflict), 1, 0, acknowledge},
		{"invalid", coded(apperr.Invalid), 1, 0, giveUp},
		{"unauthenticated", coded(apperr.Unauthenticated), 1, 0, giveUp},
		{"not found at first", coded(apperr.NotFound), 1, 0, retryLater},
		{"not found, just within the limit", coded(apperr.NotFound), 9, 9900 * time.Millisecond, retryLater},
		{"not found, beyond the limit", coded(apperr.NotFound), 10, 10 * time.Second, giveUp},
		{"too many", coded(apperr.TooMany), 500, 23 * time.Hour, retryLater},
		{"too many, beyond the limit", coded(apperr.TooMany), 500, 24 * time.Hour, giveUp},
		{"unavailable", coded(apperr.Unavailable), 500, 23 * time.Hour, retryLater},
		{"unavailable, beyond the limit", coded(apperr.Unavailable), 500, 25 * time.Hour, giveUp},
		{"unavailable, permanent", fmt.Errorf("handling: %w", Permanent(coded(apperr.Unavailable))), 1, 0, giveUp},
		{"conflict, permanent", Permanent(coded(apperr.Conflict)), 1, 0, acknowledge},
		{"internal, fourth try", coded(apperr.Internal), 4, time.Second, retryLater},
		{"internal, fifth try", coded(apperr.Internal), 5, time.Second, giveUp},
		{"uncoded", errors.New("oops"), 1, 0, retryLater},
		{"uncoded, fifth try", errors.New("oops"), 5, 0, giveUp},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, wait := decide(c.err, c.tries, c.elapsed, maxPause)
			if got != c.want {
				t.Errorf("got disposition %d, want %d", got, c.want)
			}
			if (got == retryLater) != (wait > 0) {
				t.Errorf("got a wait of %v with disposition %d", wait, got)
			}
		})
	}
}

func TestBackoffGrowsToItsLimit(t *testing.T) {
	t.Parallel()
	p := policy{firstWait: 100 * time.Millisecond, maxWait: 5 * time.Second}
	want := []time.Duration{100, 200, 400, 800, 1600, 3200, 5000, 5000}
	for i, w := range want {
		if got := backoff(p, i+1); got != w*time.Millisecond {
			t.Errorf("try %d: got %v, want %v", i+1, got, w*time.Millisecond)
		}
	}
	if got := backoff(p, 1<<40); got != p.maxWait {
		t.Errorf("many tries: got %v, want %v", got, p.maxWait)
	}
}

func TestRetryAfterOverridesTheBackoff(t *testing.T) {
	t.Parallel()
	limited := apperr.New(apperr.TooMany, "R", "m")
	limited.RetryAfter = time.Minute
	if _, got := decide(limited, 1, 0, time.Second); got != time.Minute {
		t.Errorf("got a wait of %v, want the limiter's minute", got)
	}
	if code := apperr.CodeOf(Permanent(limited)); code != apperr.TooMany {
		t.Errorf("got the code %s of a permanent error, want that of its cause", code)
	}
	if _, got := decide(apperr.New(apperr.NotFound, "R", "m"), 9, 9990*time.Millisecond, maxPause); got != 10*time.Millisecond {
		t.Errorf("got a wait of %v, want the remaining 10 ms", got)
	}
}
