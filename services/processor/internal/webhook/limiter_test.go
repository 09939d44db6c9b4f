package webhook

import (
	"net/http"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/webhook"
)

// The limiter of a failing endpoint that was deleted does not stay. One that still fails keeps its pause.
func TestLimitersOfDeletedEndpointsAreForgotten(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := newLimiters(10, 4)
	fail := func(endpoint string, r result) {
		for range breakerFailures {
			if !l.reserve("company", endpoint, now) {
				return // it is paused
			}
			l.report(endpoint, now, r)
			l.release("company", endpoint)
		}
	}
	fail("deleted", result{noAnswer: true})
	fail("paused", result{retryAfter: 2 * forgetAfter, attempt: webhook.Attempt{StatusCode: http.StatusServiceUnavailable}})
	l.forget(now.Add(forgetAfter - time.Second))
	if len(l.of) != 2 {
		t.Errorf("soon after the failures: got %d limiters, want both", len(l.of))
	}
	l.forget(now.Add(forgetAfter))
	if l.of["deleted"] != nil || l.of["paused"] == nil {
		t.Errorf("got %v, want the one with a pause alone", l.of)
	}
	l.forget(now.Add(2 * forgetAfter))
	if len(l.of) != 0 {
		t.Errorf("after the pause: got %v, want none", l.of)
	}
}
