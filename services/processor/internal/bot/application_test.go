package bot

import (
	"errors"
	"fmt"
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

// wroteTo returns a message of a new visitor of an application.
func wroteTo(appID string) event.VisitorMessageAccepted { return wroteAs(appID, uuid.NewString()) }

// wroteAs returns a new message of an application's visitor.
func wroteAs(appID, chatUserID string) event.VisitorMessageAccepted {
	e := newMessage("x")
	e.AppID, e.ChatUserID, e.Message.ID = appID, chatUserID, uuid.NewString()
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
	if got := w.breakers.Admit(w.standard.breaker(appOne), now); got != maxRetryAfter {
		t.Errorf("got a pause of %s, want %s", got, maxRetryAfter)
	}
	if err := coded(t, w, wroteTo(appTwo)); err != nil {
		t.Errorf("another application: got %v, want an answer", err)
	}
	if n := w.breakers.Open(now); n != 1 {
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

// An application that has spent its tokens, with the reserve, is not answered until the budget has refilled; another
// one is. A question costs at least minTokens, once for all its calls.
func TestTokensOfAnApplication(t *testing.T) {
	t.Parallel()
	m := &model{usage: `{"prompt_tokens":1500,"completion_tokens":500}`}
	l, _ := openBudget(t, m, 8*minTokens)
	answers := func(appID string, want int) {
		t.Helper()
		if got := ask(t, l, func() event.VisitorMessageAccepted { return wroteTo(appID) }); got != want {
			t.Errorf("got %d questions answered, want %d", got, want)
		}
	}
	answers(appOne, 4) // of 2,000 tokens
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
	answers(appTwo, 7) // of minTokens each
}

// A visitor that has spent its part gets what it would get from an exhausted application. The others are answered.
func TestTokensOfAVisitor(t *testing.T) {
	t.Parallel()
	l, _ := openBudget(t, &model{usage: `{"prompt_tokens":3000,"completion_tokens":1000}`}, 64*40*minTokens)
	if got := ask(t, l, func() event.VisitorMessageAccepted { return wroteAs(appOne, "greedy") }); got != 10 {
		t.Errorf("got %d questions of a visitor answered, want the 10 of its part", got)
	}
	if err := coded(t, l, wroteAs(appOne, "another")); err != nil {
		t.Errorf("another visitor: got %v, want an answer", err)
	}
}

// What an answer costs above what is left is owed: the next question waits until that has refilled too.
func TestTokensAboveTheBudgetAreOwed(t *testing.T) {
	t.Parallel()
	l, now := openBudget(t, &model{usage: `{"prompt_tokens":50000,"completion_tokens":10000}`}, 64*40*minTokens)
	visitor := func() event.VisitorMessageAccepted { return wroteAs(appOne, "v") }
	if got := ask(t, l, visitor); got != 1 {
		t.Errorf("got %d questions of 60,000 tokens answered, want 1 of a part of 40,000", got)
	}
	*now = now.Add(12 * time.Hour) // refills 20,000
	if got := ask(t, l, visitor); got != 0 {
		t.Errorf("after half a day: got %d questions answered, want none, with 20,000 owed", got)
	}
	*now = now.Add(time.Hour)
	if got := ask(t, l, visitor); got != 1 {
		t.Errorf("an hour later: got %d questions answered, want 1", got)
	}
}

// Many visitors spend an application's tokens. A visitor that has used much is refused then, and one that has used
// little is answered, until the reserve is spent too.
func TestAFloodLeavesTokensForTheOthers(t *testing.T) {
	t.Parallel()
	const tokens, question = 64 * 40 * minTokens, 4 * minTokens
	l, _ := openBudget(t, &model{usage: `{"prompt_tokens":3000,"completion_tokens":1000}`}, tokens)
	much := func() event.VisitorMessageAccepted { return wroteAs(appOne, "much") }
	if err := coded(t, l, much()); err != nil {
		t.Fatal(err)
	}
	flood := 1
	for n := range 48 {
		visitor := fmt.Sprint("stranger ", n)
		flood += ask(t, l, func() event.VisitorMessageAccepted { return wroteAs(appOne, visitor) })
	}
	if want := tokens * 3 / 4 / question; flood != want {
		t.Errorf("got %d questions of a flood answered, want %d, without the reserve", flood, want)
	}
	if err := coded(t, l, much()); err == nil || err.Reason != "LLM_TOKENS_SPENT" {
		t.Errorf("a visitor that has used much: got %v, want no answer", err)
	}
	fresh := ask(t, l, func() event.VisitorMessageAccepted { return wroteTo(appOne) })
	if want := tokens / 4 / question; fresh != want {
		t.Errorf("got %d questions of further visitors answered, want the %d of the reserve", fresh, want)
	}
}

// The visitors of one network spend half of an application's tokens, and little of its reserve.
func TestOneNetworkCannotSpendTheTokensOfAnApplication(t *testing.T) {
	t.Parallel()
	const tokens, question = 64 * 40 * minTokens, 4 * minTokens
	l, _ := openBudget(t, &model{usage: `{"prompt_tokens":3000,"completion_tokens":1000}`}, tokens)
	from := func(site string) func() event.VisitorMessageAccepted {
		return func() event.VisitorMessageAccepted {
			e := wroteTo(appOne)
			e.Site = site
			return e
		}
	}
	if got, want := ask(t, l, from("aaaa")), tokens/2/question; got != want {
		t.Errorf("got %d questions of one network answered, want %d", got, want)
	}
	if got, want := ask(t, l, from("bbbb")), tokens/4/question; got != want {
		t.Errorf("got %d questions of another network answered, want the %d that are neither spent nor reserved", got, want)
	}
	if err := coded(t, l, from("cccc")()); err != nil {
		t.Errorf("a visitor of a third network: got %v, want an answer from the reserve", err)
	}
}

// openBudget returns a model with a budget for a day, and its clock, which stands still.
func openBudget(t *testing.T, m *model, tokens int) (*LLM, *time.Time) {
	t.Helper()
	now := time.Now()
	return openLLM(t, m, func(c *LLMConfig) {
		c.Tokens = config.Rate{Count: tokens, Per: 24 * time.Hour}
		c.Now = func() time.Time { return now }
	}), &now
}

// ask asks questions until one is refused for good, and returns how many were answered.
func ask(t *testing.T, l *LLM, question func() event.VisitorMessageAccepted) (answered int) {
	t.Helper()
	for range 10_000 {
		var s stage
		err := s.bot(l).VisitorMessage(t.Context(), question())
		if err == nil {
			answered++
			continue
		}
		if apperr.ReasonOf(err) != "LLM_TOKENS_SPENT" || !bus.IsPermanent(err) {
			t.Fatalf("question %d: got %v, want it refused for good", answered+1, err)
		}
		return answered
	}
	t.Fatalf("got %d questions answered and no refusal", answered)
	return 0
}
