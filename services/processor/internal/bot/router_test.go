package bot

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
)

// published has the bots of applications, and one connection.
type publishedBots struct {
	byApp      map[string]bots.Bot
	connection bots.Connection
}

func (p *publishedBots) Bot(_ context.Context, appID string) (bots.Bot, error) {
	return p.byApp[appID], nil
}

func (p *publishedBots) ModelConnection(_ context.Context, id string) (bots.Connection, error) {
	if id != p.connection.ID {
		return bots.Connection{}, apperr.ConnectionNotFound.New()
	}
	return p.connection, nil
}

// publish puts settings in force for an application of the company.
func (p *publishedBots) publish(appID string, s bots.Settings) {
	b := p.byApp[appID]
	b.AppID, b.CompanyID = appID, p.connection.CompanyID
	b.Publish(s, "ada", time.Now())
	p.byApp[appID] = b
}

// openRouter returns a router with the default demo bot, that may call the servers of tests.
func openRouter(t *testing.T, p *publishedBots, allow ...netip.Prefix) *Router {
	t.Helper()
	return openRouterWith(t, p, CallConfig{Now: time.Now}, allow...)
}

func openRouterWith(t *testing.T, p *publishedBots, calls CallConfig, allow ...netip.Prefix) *Router {
	t.Helper()
	w, err := NewWebhook(WebhookConfig{CallConfig: calls})
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLLM(LLMConfig{Histories: recent(nil), CallConfig: calls})
	if err != nil {
		t.Fatal(err)
	}
	standard := bots.Settings{Kind: bots.Demo, FailureText: "Sorry."}
	r := NewRouter(RouterConfig{Bots: p, Default: standard, Allow: allow, Demo: NewDemo(""), Webhook: w, LLM: l})
	t.Cleanup(r.Close)
	return r
}

var localhost = netip.MustParsePrefix("127.0.0.0/8")

func TestEachApplicationHasItsOwnBot(t *testing.T) {
	t.Parallel()
	m := &model{words: []string{"Hi"}}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("webhook-signature") == "" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		io.WriteString(w, `{"messages":[{"type":"TEXT","data":{"text":"from the company"}}]}`)
	}))
	t.Cleanup(hook.Close)
	p := &publishedBots{byApp: map[string]bots.Bot{}, connection: bots.Connection{
		ID: "c1", CompanyID: "company", BaseURL: server.URL + "/v1", APIKey: "sk-own",
	}}
	const none, webhook, language = "none", "webhook", "model"
	temperature := 0.0
	p.publish(none, bots.Settings{Kind: bots.None})
	p.publish(webhook, bots.Settings{Kind: bots.Webhook, Webhook: bots.WebhookSettings{URL: hook.URL, DeadlineSeconds: 7}})
	p.publish(language, bots.Settings{
		Kind: bots.Model, FailureText: bots.NoFailureText,
		Model: bots.ModelSettings{ConnectionID: "c1", Model: "large", Prompt: "Be short.", Temperature: &temperature},
	})
	r := openRouter(t, p, localhost)
	for appID, want := range map[string]string{webhook: "from the company", language: "Hi", "unchanged": "Hello "} {
		asked := newMessage("hello")
		asked.AppID = appID
		var s stage
		if err := s.bot(r).VisitorMessage(t.Context(), asked); err != nil {
			t.Errorf("%s: %v", appID, err)
			continue
		}
		var data struct{ Text string }
		_ = json.Unmarshal(s.replies[0].Message.Data, &data)
		if len(data.Text) < len(want) || data.Text[:len(want)] != want {
			t.Errorf("%s: got %q, want %q", appID, data.Text, want)
		}
	}
	if got := m.asked[0]; got.Model != "large" || got.Messages[0].Content != "Be short." || *got.Temperature != 0 || m.auth[0] != "Bearer sk-own" {
		t.Errorf("got %+v with %s, want the application's prompt and the company's key", got, m.auth[0])
	}
	asked := wroteTo(none)
	if result, err := r.Answer(t.Context(), asked, nil); err != nil || result.Handover == nil || result.Handover.By != chat.ByNoBot {
		t.Errorf("no bot: got %+v and %v, want the agents", result, err)
	}
	for appID, want := range map[string]bots.Settings{
		"unchanged": {Kind: bots.Demo, FailureText: "Sorry."}, none: {Kind: bots.None, FailureText: "Sorry."},
	} {
		if got, err := r.Settings(t.Context(), appID); err != nil || got.Kind != want.Kind || got.FailureText != want.FailureText {
			t.Errorf("%s: got %+v and %v, want %+v", appID, got, err, want)
		}
	}
	if got, _ := r.Settings(t.Context(), language); got.FailureText != "" {
		t.Errorf("got the failure text %q, want none", got.FailureText)
	}
}

// A message ends with the server that it was begun with, whatever was published meanwhile.
func TestAMessageKeepsItsVersion(t *testing.T) {
	t.Parallel()
	var first, second int
	serve := func(calls *int, status int) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			*calls++
			w.WriteHeader(status)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	p := &publishedBots{byApp: map[string]bots.Bot{}}
	p.publish(appOne, bots.Settings{Kind: bots.Webhook, Webhook: bots.WebhookSettings{URL: serve(&first, http.StatusBadGateway)}})
	r := openRouter(t, p, localhost)
	asked := wroteTo(appOne)
	if _, err := r.Answer(t.Context(), asked, nil); apperr.CodeOf(err) != apperr.Unavailable {
		t.Fatalf("got %v, want the server unavailable", err)
	}
	p.publish(appOne, bots.Settings{Kind: bots.Webhook, Webhook: bots.WebhookSettings{URL: serve(&second, http.StatusOK)}})
	_, _ = r.Answer(t.Context(), asked, nil)
	if _, err := r.Answer(t.Context(), wroteTo(appOne), nil); err != nil {
		t.Error(err)
	}
	if first != 2 || second != 1 {
		t.Errorf("got %d calls of the first server and %d of the second, want 2 and 1", first, second)
	}
}

// The server of a company is public, and the connection its own: nothing else is called.
func TestServersOfCompaniesAreGuarded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("got a call") }))
	t.Cleanup(server.Close)
	p := &publishedBots{byApp: map[string]bots.Bot{}, connection: bots.Connection{ID: "c1", CompanyID: "one", BaseURL: server.URL}}
	p.publish(appOne, bots.Settings{Kind: bots.Webhook, Webhook: bots.WebhookSettings{URL: server.URL}})
	foreign := bots.Settings{Kind: bots.Model, Model: bots.ModelSettings{ConnectionID: "c1", Model: "m"}}
	p.publish(appTwo, foreign)
	other := p.byApp[appTwo]
	other.CompanyID = "two"
	p.byApp[appTwo] = other
	r := openRouter(t, p)
	if _, err := r.Answer(t.Context(), wroteTo(appOne), nil); apperr.CodeOf(err) != apperr.Unavailable {
		t.Errorf("a private address: got %v, want it unavailable", err)
	}
	if _, err := r.Answer(t.Context(), wroteTo(appTwo), nil); !bus.IsPermanent(err) || apperr.ReasonOf(err) != "CONNECTION_NOT_FOUND" {
		t.Errorf("a connection of another company: got %v, want it not found", err)
	}
}

// The agents get the chat when a visitor asks for them, and when the bot gives up, if the settings say so.
func TestHandoverBySettings(t *testing.T) {
	t.Parallel()
	settings := bots.Settings{Kind: bots.Demo, Handover: bots.Handover{OnFailure: true, Phrases: []string{"real Person"}}}
	asked := newMessage("May I talk to a REAL person?")
	q := &queue{chat: chat.Chat{ID: asked.ChatID, CompanyID: asked.CompanyID, ChatUserID: asked.ChatUserID, WindowStartedAt: time.Now()}}
	b := New(Config{
		Answerer: panics{}, Settings: always(settings), Applications: application{}, Chats: q, Controls: q, Publisher: q, Now: time.Now,
	})
	if err := b.VisitorMessage(t.Context(), asked); err != nil || len(q.done) != 1 || q.done[0] != "handover-"+asked.Message.ID {
		t.Errorf("a request: got %v and %v, want a handover", q.done, err)
	}
	q.done, q.chat.Control = nil, chat.Control{}
	if err := b.GaveUp(t.Context(), asked, false); err != nil || len(q.done) != 1 {
		t.Errorf("a failure: got %v and %v, want a handover", q.done, err)
	}
}
