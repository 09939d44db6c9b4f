package bot

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/event"
)

const appOne, appTwo = "a0000000-0000-4000-8000-000000000001", "a0000000-0000-4000-8000-000000000002"

// wroteTo returns a new message of an application's visitor.
func wroteTo(appID string) event.VisitorMessageAccepted {
	e := newMessage("x")
	e.AppID, e.Message.ID = appID, uuid.NewString()
	return e
}

// coded returns the error of a message, or nil.
func coded(t *testing.T, a Answerer, e event.VisitorMessageAccepted) *apperr.Error {
	t.Helper()
	_, err := a.Answer(t.Context(), e, nil)
	if err == nil {
		return nil
	}
	failure, ok := errors.AsType[*apperr.Error](err)
	if !ok {
		t.Fatalf("got %v, want an error with a code", err)
	}
	return failure
}

// A pause that the server requests for one application, however long, is bounded and silences no other.
func TestAPauseIsOfOneApplication(t *testing.T) {
	t.Parallel()
	w := openWebhook(t, func(rw http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), appOne) {
			rw.Header().Set("Retry-After", time.Now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
			rw.WriteHeader(http.StatusTooManyRequests)
		}
	})
	now := time.Now()
	w.now = func() time.Time { return now }
	for range 2 {
		if err := coded(t, w, wroteTo(appOne)); err == nil || err.Code != apperr.TooMany {
			t.Fatalf("the application: got %v, want a pause", err)
		}
	}
	if got := w.breakers.admit(appOne, now); got != maxRetryAfter {
		t.Errorf("got a pause of %s, want %s", got, maxRetryAfter)
	}
	if err := coded(t, w, wroteTo(appTwo)); err != nil {
		t.Errorf("another application: got %v, want an answer", err)
	}
	if n := w.breakers.open(now); n != 1 {
		t.Errorf("got %d paused applications, want 1", n)
	}
}

// Failures of one application's calls open its breaker only.
func TestABreakerIsOfOneApplication(t *testing.T) {
	t.Parallel()
	w := openWebhook(t, func(rw http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), appOne) {
			rw.WriteHeader(http.StatusInternalServerError)
		}
	})
	for range breakerFailures {
		coded(t, w, wroteTo(appOne))
	}
	if err := coded(t, w, wroteTo(appOne)); err == nil || err.Reason != "WEBHOOK_PAUSED" {
		t.Errorf("the application: got %v, want no call", err)
	}
	if err := coded(t, w, wroteTo(appTwo)); err != nil {
		t.Errorf("another application: got %v, want an answer", err)
	}
}

// An application that has spent its tokens is not answered until the budget has refilled; another one is. A
// question costs at least minTokens, once for all its calls.
func TestTokensOfAnApplication(t *testing.T) {
	t.Parallel()
	m := &model{words: []string{"Yes."}, usage: `{"prompt_tokens":1500,"completion_tokens":1000}`}
	l := openLLM(t, m, func(c *LLMConfig) { c.Tokens = config.Rate{Count: 5 * minTokens, Per: 24 * time.Hour} })
	answers := func(appID string, want int) {
		t.Helper()
		for n := range want + 1 {
			var s stage
			err := s.bot(l).VisitorMessage(t.Context(), wroteTo(appID))
			spent, ok := errors.AsType[*apperr.Error](err)
			switch {
			case n < want && err != nil:
				t.Fatalf("question %d: got %v, want an answer", n+1, err)
			case n == want && (!ok || spent.Reason != "LLM_TOKENS_SPENT" || !bus.IsPermanent(err)):
				t.Errorf("question %d: got %v, want it refused for good", n+1, err)
			}
		}
	}
	answers(appOne, 2) // of 2,500 tokens
	if got := testutil.ToFloat64(l.usage.refused); got != 1 {
		t.Errorf("got %v refused questions in the metric, want 1", got)
	}
	m.usage = ""
	m.status = http.StatusInternalServerError
	failing := wroteTo(appTwo)
	for range 10 {
		if err := coded(t, l, failing); err == nil || err.Code != apperr.Unavailable {
			t.Errorf("a server that fails: got %v, want it unavailable", err)
		}
	}
	m.status = 0
	answers(appTwo, 4) // of minTokens each
}
