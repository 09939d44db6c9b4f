package bot

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/notice"
	"github.com/parley-chat/parley/testkit/timetest"
)

// ledger is a store of usage and calls, and an audit log.
type ledger struct {
	mu      sync.Mutex
	used    map[bots.UsageOf]bots.Amount
	calls   []bots.Call
	actions []string
	away    bool
}

func (l *ledger) SpendBot(_ context.Context, of bots.UsageOf, add, bound bots.Amount) (bots.Amount, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away {
		return bots.Amount{}, false, apperr.Unreachable("store", context.DeadlineExceeded)
	}
	after := l.used[of].Add(add)
	if !after.Within(bound) {
		return l.used[of], false, nil
	}
	if l.used == nil {
		l.used = map[bots.UsageOf]bots.Amount{}
	}
	l.used[of] = after
	return after, true, nil
}

func (l *ledger) AppendBotCall(_ context.Context, c bots.Call) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c)
	return nil
}

func (l *ledger) AppendAuditEntry(_ context.Context, e account.AuditEntry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.actions = append(l.actions, e.Action)
	return nil
}

// ofApp returns the usage of an application today.
func (l *ledger) ofApp(appID string) bots.Amount {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used[bots.UsageOf{AppID: appID, Day: bots.Day(time.Now())}]
}

func (l *ledger) logged() []bots.Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]bots.Call(nil), l.calls...)
}

// process returns the calls' settings of one of several processes that share a ledger.
func (l *ledger) process(t *testing.T, replicas int) CallConfig {
	t.Helper()
	calls := CallConfig{Now: time.Now}
	calls.Log = NewCallLog(l, time.Now, nil)
	t.Cleanup(calls.Log.Close)
	calls.Bounds = NewBounds(BoundsConfig{
		Usage:    l,
		Notices:  notice.NewBoard(l, time.Now, slog.New(slog.DiscardHandler)),
		Replicas: func() int { return replicas },
		Now:      time.Now,
	})
	return calls
}

// routers returns the routers of processes that share bots and a ledger.
func routers(t *testing.T, p *publishedBots, l *ledger, n int) []*Router {
	t.Helper()
	var all []*Router
	for range n {
		all = append(all, openRouterWith(t, p, l.process(t, n), localhost))
	}
	return all
}

// modelBot publishes a model for an application of the company.
func modelBot(t *testing.T, m http.Handler, bounds bots.Bounds) *publishedBots {
	t.Helper()
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	p := &publishedBots{byApp: map[string]bots.Bot{}, connection: bots.Connection{
		ID: "c1", CompanyID: "company", BaseURL: server.URL + "/v1", APIKey: "sk-own",
	}}
	p.publish(appOne, bots.Settings{
		Kind: bots.Model, Bounds: bounds, Handover: bots.Handover{OnFailure: true},
		Model: bots.ModelSettings{
			ConnectionID: "c1", Model: "small", Prompt: "Be short.",
			Prices: bots.Prices{Input: 1, Output: 2, Currency: "EUR"},
		},
	})
	return p
}

// Three processes, of which each has asked a question before, and many visitors at once: what is spent stays within 5% of
// the bound.
func TestABoundOfTokensIsExact(t *testing.T) {
	t.Parallel()
	const bound = 100_000
	m := &model{words: []string{"Hi"}, usage: `{"prompt_tokens":900,"completion_tokens":100}`}
	p := modelBot(t, m, bots.Bounds{Application: bots.Amount{Tokens: bound}})
	l := &ledger{}
	var answered atomic.Int64
	var asking sync.WaitGroup
	all := routers(t, p, l, 3)
	ask := func(r *Router) {
		result, err := r.Answer(t.Context(), wroteTo(appOne), unseen)
		if err != nil {
			t.Error(err)
		}
		if textOf(result) == "Hi" {
			answered.Add(1)
		}
	}
	for _, r := range all {
		ask(r)
	}
	for _, r := range all {
		for range 10 {
			asking.Go(func() {
				for range 10 {
					ask(r)
				}
			})
		}
	}
	asking.Wait()
	spent := answered.Load() * 1000
	if spent < bound*95/100 || spent > bound*105/100 {
		t.Errorf("got %d tokens spent, want %d", spent, bound)
	}
	if got := l.ofApp(appOne).Tokens; int64(got) != spent {
		t.Errorf("got %d tokens counted, want the %d that were spent", got, spent)
	}
}

func textOf(r Result) string {
	if len(r.Messages) == 0 {
		return ""
	}
	var data struct{ Text string }
	_ = json.Unmarshal(r.Messages[0].Data, &data)
	return data.Text
}

// The company is warned before the bound and told when it is reached; the visitor reads a plain sentence and gets the
// agents. A visitor's own bound stops nobody else.
func TestWhatABoundDoes(t *testing.T) {
	t.Parallel()
	m := &model{words: []string{"Hi"}}
	p := modelBot(t, m, bots.Bounds{
		Application: bots.Amount{Questions: 5}, Visitor: bots.Amount{Questions: 2}, ExhaustedText: "Enough.",
	})
	l := &ledger{}
	r := routers(t, p, l, 1)[0]
	ask := func(visitor, want string) {
		t.Helper()
		result, err := r.Answer(t.Context(), wroteAs(appOne, visitor), unseen)
		if got := textOf(result); err != nil || got != want || (result.Handover != nil) != (want == "Enough.") {
			t.Errorf("got %q, %+v and %v, want %q", got, result.Handover, err, want)
		}
	}
	for _, want := range []string{"Hi", "Hi", "Enough."} {
		ask("greedy", want)
	}
	if got := l.ofApp(appOne).Questions; got != 2 {
		t.Errorf("got %d questions of the application, want none that its visitor may not ask", got)
	}
	for _, want := range []string{"Hi", "Hi"} {
		ask("second", want)
	}
	if got := strings.Join(l.actions, " "); got != ActionNearBound {
		t.Errorf("after 4 of 5 questions: got the entries %q, want %q", got, ActionNearBound)
	}
	ask("third", "Hi")
	ask("fourth", "Enough.")
	if got := strings.Join(l.actions, " "); got != ActionNearBound+" "+ActionBoundReached {
		t.Errorf("got the entries %q, want a warning and the end", got)
	}
	fourth := bots.UsageOf{AppID: appOne, ChatUserID: "fourth", Day: bots.Day(time.Now())}
	if got := l.used[fourth]; got.Questions != 0 {
		t.Errorf("got %d questions of a visitor that was refused, want none", got.Questions)
	}
}

// A question that the operator's budget refuses uses nothing of the company's bound.
func TestARefusedQuestionUsesNoBound(t *testing.T) {
	t.Parallel()
	day := bots.Amount{Questions: 9}
	p := modelBot(t, &model{words: []string{"Hi"}}, bots.Bounds{Application: day, Visitor: day})
	l := &ledger{}
	r := routers(t, p, l, 1)[0]
	r.cfg.LLM.admit = func(context.Context, *exchange, event.VisitorMessageAccepted) error {
		return apperr.New(apperr.TooMany, "LLM_TOKENS_SPENT", "The application has spent its tokens")
	}
	if _, err := r.Answer(t.Context(), wroteAs(appOne, "v"), unseen); apperr.ReasonOf(err) != "LLM_TOKENS_SPENT" {
		t.Fatalf("got %v, want the operator's refusal", err)
	}
	for of, used := range l.used {
		if used != (bots.Amount{}) {
			t.Errorf("%+v: got %+v used, want nothing", of, used)
		}
	}
}

// A store that is away refuses nothing for good: the question is asked again.
func TestABoundThatCannotBeCounted(t *testing.T) {
	t.Parallel()
	p := modelBot(t, &model{words: []string{"Hi"}}, bots.Bounds{Application: bots.Amount{Questions: 1}})
	l := &ledger{away: true}
	r := routers(t, p, l, 1)[0]
	asked := wroteTo(appOne)
	if _, err := r.Answer(t.Context(), asked, unseen); apperr.CodeOf(err) != apperr.Unavailable {
		t.Errorf("got %v, want it unavailable", err)
	}
	l.away = false
	if result, err := r.Answer(t.Context(), asked, unseen); err != nil || textOf(result) != "Hi" {
		t.Errorf("got %+v and %v, want an answer", result, err)
	}
}

// Each process makes its part of the calls at once, and the others wait.
func TestCallsAtOnce(t *testing.T) {
	t.Parallel()
	arrived, leave := make(chan struct{}, 10), make(chan struct{})
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-leave
	}))
	t.Cleanup(hook.Close)
	p := &publishedBots{byApp: map[string]bots.Bot{}}
	p.publish(appOne, bots.Settings{
		Kind: bots.Webhook, Webhook: bots.WebhookSettings{URL: hook.URL}, Bounds: bots.Bounds{CallsAtOnce: 4},
	})
	r := routers(t, p, &ledger{}, 2)[0]
	var calling sync.WaitGroup
	for range 2 {
		calling.Go(func() {
			if _, err := r.Answer(t.Context(), wroteTo(appOne), nil); err != nil {
				t.Error(err)
			}
		})
		<-arrived
	}
	waiting := wroteTo(appOne)
	_, err := r.Answer(t.Context(), waiting, nil)
	if apperr.ReasonOf(err) != "WEBHOOK_CALLS_AT_ONCE" || apperr.CodeOf(err) != apperr.TooMany {
		t.Errorf("a third call of two: got %v, want it to wait", err)
	}
	close(leave)
	calling.Wait()
	if _, err := r.Answer(t.Context(), waiting, nil); err != nil {
		t.Errorf("after the others: got %v, want an answer", err)
	}
}

// The log has what a company needs to understand an answer, and none of its secrets; the operator's server stays
// unknown, and the log of a day has an end.
func TestCallsAreLogged(t *testing.T) {
	t.Parallel()
	m := &model{words: []string{"Hi ", "there"}, usage: `{"prompt_tokens":1000000,"completion_tokens":500000}`}
	p := modelBot(t, m, bots.Bounds{})
	l := &ledger{}
	r := routers(t, p, l, 1)[0]
	asked := wroteTo(appOne)
	if _, err := r.Answer(t.Context(), asked, unseen); err != nil {
		t.Fatal(err)
	}
	timetest.Until(t, "the call is logged", func() bool { return len(l.logged()) == 1 })
	got := l.logged()[0]
	if got.MessageID != asked.Message.ID || got.Answer != "Hi there" || got.Version != 1 || got.Model != "small" ||
		got.Cost != 2 || got.Currency != "EUR" || got.InputTokens != 1_000_000 || got.Failure != nil ||
		len(got.Sent) != 2 || got.Sent[0].Text != "Be short." || !strings.HasSuffix(got.Server, "/v1/chat/completions") {
		t.Errorf("got %+v, want the call", got)
	}
	if used := l.ofApp(appOne); used != (bots.Amount{Questions: 1, Tokens: 1_500_000}) {
		t.Errorf("got the usage %+v, want that of one question", used)
	}
	m.status = http.StatusUnauthorized
	_, _ = r.Answer(t.Context(), wroteTo(appOne), unseen)
	timetest.Until(t, "the failure is logged", func() bool { return len(l.logged()) == 2 })
	if f := l.logged()[1].Failure; f == nil || f.Reason != "LLM_UNAUTHORIZED" || strings.Contains(f.Message, "sk-own") {
		t.Errorf("got the failure %+v, want a wrong key", f)
	}
	m.status = 0
	today := bots.UsageOf{AppID: appOne, Day: bots.Day(time.Now())}
	l.mu.Lock()
	l.used[today] = bots.Amount{Questions: bots.MaxCallsOfDay}
	l.mu.Unlock()
	_, _ = r.Answer(t.Context(), wroteTo(appOne), unseen)
	timetest.Until(t, "the question counts", func() bool { return l.ofApp(appOne).Questions > bots.MaxCallsOfDay })
	if n := len(l.logged()); n != 2 {
		t.Errorf("got %d calls, want no more than a day's", n)
	}
}

// The company learns why its server was not reached, and no address of the operator's network.
func TestAFailureNamesNoAddress(t *testing.T) {
	t.Parallel()
	p := &publishedBots{byApp: map[string]bots.Bot{}}
	r := openRouterWith(t, p, (&ledger{}).process(t, 1))
	call, err := r.Test(t.Context(), bots.Test{
		CompanyID: "company", AppID: appOne, Probe: true,
		Settings: bots.Settings{Kind: bots.Webhook, Webhook: bots.WebhookSettings{URL: "http://localhost/"}},
	})
	if err != nil || call.Failure == nil || call.Failure.Message != "No answer: the address is not allowed" {
		t.Errorf("got %+v and %v, want a refusal without the address", call.Failure, err)
	}
}

// A test asks settings that are not published, and a probe only whether the server answers.
func TestSettingsAreTested(t *testing.T) {
	t.Parallel()
	m := &model{words: []string{"Hi"}}
	p := modelBot(t, m, bots.Bounds{})
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if r.Header.Get("parley-test") != "true" {
			t.Error("got a test without its header")
		}
		_, _ = w.Write([]byte(`{"messages":[{"type":"TEXT","data":{"text":"from the hook"}}],"handover":true}`))
	}))
	t.Cleanup(hook.Close)
	l := &ledger{}
	r := routers(t, p, l, 1)[0]
	draft := p.byApp[appOne].Draft
	draft.Model.Prompt = "Be kind."
	asked := newMessage("and now?")
	ofTest := func(s bots.Settings) bots.Test {
		return bots.Test{
			CompanyID: "company", AppID: appOne, Settings: s, ChatID: asked.ChatID, ChatUserID: asked.ChatUserID,
			Message: asked.Message, Made: true, Before: []bots.Turn{{Role: bots.RoleUser, Text: "hello"}},
		}
	}
	call, err := r.Test(t.Context(), ofTest(draft))
	if err != nil || call.Answer != "Hi" || call.Version != 0 || call.MessageID != "" || len(call.Sent) != 3 || call.Sent[0].Text != "Be kind." {
		t.Errorf("a model: got %+v and %v, want the draft's answer", call, err)
	}
	ofHook := bots.Settings{Kind: bots.Webhook, Webhook: bots.WebhookSettings{URL: hook.URL}}
	if call, err := r.Test(t.Context(), ofTest(ofHook)); err != nil || call.Failure.Reason != errNoSecret.Reason {
		t.Errorf("a webhook without a secret: got %+v and %v, want that", call, err)
	}
	withSecret := p.byApp[appOne]
	withSecret.Rotate(time.Now(), 0)
	p.byApp[appOne] = withSecret
	if call, err := r.Test(t.Context(), ofTest(ofHook)); err != nil || call.Answer != "from the hook" || !call.Handover {
		t.Errorf("a webhook: got %+v and %v, want its answer", call, err)
	}
	if call, err := r.Test(t.Context(), ofTest(bots.Settings{Kind: bots.Demo})); err != nil || call.Answer == "" {
		t.Errorf("the demo bot: got %+v and %v, want its answer", call, err)
	}

	probe := ofTest(draft)
	probe.Probe = true
	if call, err := r.Test(t.Context(), probe); err != nil || call.Failure != nil {
		t.Errorf("a probe: got %+v and %v, want no failure", call, err)
	}
	if last := m.asked[len(m.asked)-1]; last.MaxTokens != probeTokens || len(last.Messages) != 2 {
		t.Errorf("got the probe %+v, want a short one", last)
	}
	m.status = http.StatusNotFound
	if call, _ := r.Test(t.Context(), probe); call.Failure == nil || call.Failure.Reason != "LLM_NOT_FOUND" {
		t.Errorf("an unknown model: got %+v, want that", call.Failure)
	}
	probe.Settings = ofHook
	if call, err := r.Test(t.Context(), probe); err != nil || call.Failure != nil {
		t.Errorf("a webhook that knows no HEAD: got %+v and %v, want no failure", call.Failure, err)
	}
	probe.Settings.Webhook.URL = "http://127.0.0.1:1/"
	if call, _ := r.Test(t.Context(), probe); call.Failure == nil || call.Failure.Message != "No answer: connection refused" {
		t.Errorf("no server: got %+v, want why", call.Failure)
	}
}
