package panel_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
)

// shownBot is what the tests read of a bot.
type shownBot struct {
	Revision int64
	Draft    bots.Settings
	Versions []struct {
		Number      int
		PublishedBy string
	}
}

// A developer drafts a bot, publishes it, goes back to an earlier version, and rotates its secret, which is shown once.
func TestBots(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	developer := w.as(w.acme.users[account.Developer])
	path := "/api/applications/" + w.acme.app + "/bot"
	var bot shownBot
	developer.done(http.StatusOK, http.MethodGet, path, "").Into(t, &bot)
	if bot.Draft.Kind != bots.Default || len(bot.Versions) != 0 || bot.Revision != 0 {
		t.Errorf("got %+v, want the operator's default", bot)
	}
	draft := `{"kind":"webhook","webhook":{"url":"https://bot.example/a"}}`
	developer.done(http.StatusOK, http.MethodPut, path, draft).Into(t, &bot)
	developer.done(http.StatusPreconditionFailed, http.MethodPut, path, draft, "If-Match", `"0"`)
	refused := developer.done(http.StatusBadRequest, http.MethodPut, path, `{"kind":"webhook","webhook":{"url":"x"}}`).Body
	if !strings.Contains(refused, `"webhook.url"`) {
		t.Errorf("got %s, want the field", refused)
	}

	var published struct {
		Bot    shownBot
		Secret string
	}
	developer.done(http.StatusCreated, http.MethodPost, path+"/publish", `{}`).Into(t, &published)
	first := published.Secret
	if !strings.HasPrefix(first, "whsec_") || len(published.Bot.Versions) != 1 || published.Bot.Versions[0].PublishedBy == "" {
		t.Errorf("got %+v, want the first version with a secret", published)
	}
	developer.done(http.StatusOK, http.MethodPut, path, `{"kind":"none"}`)
	published.Secret = ""
	developer.done(http.StatusCreated, http.MethodPost, path+"/publish", `{}`).Into(t, &published)
	developer.done(http.StatusCreated, http.MethodPost, path+"/publish", `{"version":1}`).Into(t, &published)
	if b := published.Bot; len(b.Versions) != 3 || b.Versions[0].Number != 3 || b.Draft.Webhook.URL != "https://bot.example/a" || published.Secret != "" {
		t.Errorf("got %+v, want the first version again, without another secret", published)
	}
	developer.done(http.StatusNotFound, http.MethodPost, path+"/publish", `{"version":9}`)
	developer.done(http.StatusPreconditionFailed, http.MethodPost, path+"/publish", `{}`, "If-Match", `"1"`)
	developer.done(http.StatusCreated, http.MethodPost, path+"/secrets", `{"overlapSeconds":60}`).Into(t, &published)
	if b, err := w.store.Bot(t.Context(), w.acme.app); err != nil || len(b.Secrets) != 2 || b.Secrets[0].Value != published.Secret || b.Secrets[1].Value != first {
		t.Errorf("got %+v and %v, want both secrets", b, err)
	}
	if shown := developer.done(http.StatusOK, http.MethodGet, path, "").Body; strings.Contains(shown, first) {
		t.Errorf("got %s, want no secret", shown)
	}
}

// What is published is asked first: a fault is told at the field. The draft of another test stays.
func TestABotIsTestedBeforeItIsPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	developer := w.as(w.acme.users[account.Developer])
	path := "/api/applications/" + w.acme.app + "/bot"
	model := `{"kind":"model","model":{"connectionId":"` + w.acme.connection + `","model":"%s"}}`
	for draft, field := range map[string]string{
		`{"kind":"webhook","webhook":{"url":"https://away.example/"}}`: "webhook.url",
		fmt.Sprintf(model, "unknown"):                                  "model.model",
		fmt.Sprintf(model, "locked"):                                   "model.connectionId",
	} {
		developer.done(http.StatusOK, http.MethodPut, path, draft)
		refused := developer.done(http.StatusBadRequest, http.MethodPost, path+"/publish", `{}`).Body
		if !strings.Contains(refused, `"`+field+`"`) {
			t.Errorf("%s: got %s, want the field %s", draft, refused, field)
		}
	}
	var published struct{ Bot shownBot }
	developer.done(http.StatusCreated, http.MethodPost, path+"/publish", `{"unchecked":true}`).Into(t, &published)
	if len(published.Bot.Versions) != 1 {
		t.Errorf("got %+v, want what was not checked", published)
	}
}

// A user talks to settings that are not stored, and asks them a visitor's question again: one of the application only.
func TestSettingsAreTested(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	developer := w.as(w.acme.users[account.Developer])
	path := "/api/applications/" + w.acme.app + "/bot/test"
	settings := `"settings":{"kind":"webhook","webhook":{"url":"https://bot.example/"}}`
	turns := `"conversation":[{"role":"user","text":"hello"},{"role":"assistant","text":"Hi"},{"role":"user","text":"x"}]`
	var call bots.Call
	developer.done(http.StatusOK, http.MethodPost, path, `{`+settings+`,`+turns+`}`).Into(t, &call)
	if call.Answer != "answered after 2 turns" || call.Kind != bots.Webhook {
		t.Errorf("got %+v, want the answer to a conversation", call)
	}
	asked := w.visitorWrites(w.acme, "hello").ID
	w.must(w.store.AppendMessage(t.Context(), w.acme.chat, chat.Message{
		ID: asked, CreatedAt: time.Now(), Type: chat.Text, Data: []byte(`{"text":"hello"}`),
	}))
	again := `{` + settings + `,"messageId":"` + asked + `"}`
	developer.done(http.StatusOK, http.MethodPost, path, again).Into(t, &call)
	if call.MessageID != asked || call.ChatID != w.acme.chat {
		t.Errorf("got %+v, want the visitor's question", call)
	}
	for _, wrong := range []string{
		`{` + settings + `}`, `{` + settings + `,` + turns + `,"messageId":"` + asked + `"}`,
		`{` + settings + `,"conversation":[{"role":"assistant","text":"Hi"}]}`,
		`{` + settings + `,"conversation":[{"role":"system","text":"Hi"},{"role":"user","text":"x"}]}`,
		`{` + settings + `,"conversation":[{"role":"user","text":""}]}`, `{"settings":{"kind":"x"},` + turns + `}`,
	} {
		developer.done(http.StatusBadRequest, http.MethodPost, path, wrong)
	}
	stranger := w.as(w.other.users[account.Developer])
	elsewhere := "/api/applications/" + w.other.app + "/bot/test"
	stranger.done(http.StatusNotFound, http.MethodPost, elsewhere, again)
}

// The usage of a bot has the bounds in force, and the log its calls.
func TestUsageAndCallsOfABot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	ctx := t.Context()
	b := bots.Bot{AppID: w.acme.app, CompanyID: w.acme.id}
	bound := bots.Amount{Questions: 10}
	b.Publish(bots.Settings{Kind: bots.Demo, Bounds: bots.Bounds{Application: bound}}, "ada", time.Now())
	w.must(w.store.PutBot(ctx, b))
	today := bots.Day(time.Now())
	for i, day := range []time.Time{today.AddDate(0, 0, -40), today.AddDate(0, 0, -1), today} {
		of := bots.UsageOf{AppID: w.acme.app, Day: day}
		_, _, err := w.store.SpendBot(ctx, of, bots.Amount{Questions: i + 1, Tokens: 7}, bots.Amount{})
		w.must(err)
	}
	call := bots.Call{ID: chat.NewID(), CompanyID: w.acme.id, AppID: w.acme.app, At: time.Now(), Answer: "Hi"}
	call.Kind = bots.Webhook
	w.must(w.store.AppendBotCall(ctx, call))

	developer := w.as(w.acme.users[account.Developer])
	path := "/api/applications/" + w.acme.app + "/bot"
	var usage view.BotUsage
	developer.done(http.StatusOK, http.MethodGet, path+"/usage", "").Into(t, &usage)
	if usage.Bounds != bound || usage.Today != (bots.Amount{Questions: 3, Tokens: 7}) || len(usage.Days) != 2 {
		t.Errorf("got %+v, want today and yesterday", usage)
	}
	var list struct{ Calls []bots.Call }
	developer.done(http.StatusOK, http.MethodGet, path+"/calls", "").Into(t, &list)
	if len(list.Calls) != 1 || list.Calls[0].ID != call.ID || list.Calls[0].Answer != "Hi" {
		t.Errorf("got %+v, want the call", list.Calls)
	}
}

// A connection's key is never shown, nor sent to another server; a bot in force keeps its connection.
func TestModelConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	developer := w.as(w.acme.users[account.Developer])
	var made struct{ ID string }
	developer.done(http.StatusCreated, http.MethodPost, "/api/connections",
		`{"name":"Models","baseUrl":"https://models.example/v1","apiKey":"sk-hidden"}`).Into(t, &made)
	if list := developer.done(http.StatusOK, http.MethodGet, "/api/connections", "").Body; strings.Contains(list, "sk-hidden") || !strings.Contains(list, `"hasApiKey":true`) {
		t.Errorf("got %s, want the connection without its key", list)
	}
	path := "/api/connections/" + made.ID
	moved := developer.done(http.StatusBadRequest, http.MethodPatch, path, `{"baseUrl":"https://thief.example/v1"}`).Body
	if !strings.Contains(moved, `"apiKey"`) {
		t.Errorf("got %s, want the key to be required", moved)
	}
	developer.done(http.StatusOK, http.MethodPatch, path, `{"baseUrl":"https://models.example/v2"}`)
	bot := "/api/applications/" + w.acme.app + "/bot"
	model := `{"kind":"model","model":{"connectionId":"` + made.ID + `","model":"small"}}`
	developer.done(http.StatusOK, http.MethodPut, bot, model)
	developer.done(http.StatusConflict, http.MethodDelete, path, "")
	developer.done(http.StatusOK, http.MethodPut, bot, `{"kind":"demo"}`)
	developer.done(http.StatusNoContent, http.MethodDelete, path, "")
	for i := range bots.MaxConnections {
		full := http.StatusCreated
		if i == bots.MaxConnections-1 { // the company had one before
			full = http.StatusConflict
		}
		developer.done(full, http.MethodPost, "/api/connections", `{"name":"Models","baseUrl":"https://models.example/v1"}`)
	}
	if got := developer.done(http.StatusBadRequest, http.MethodPut, bot, model).Body; !strings.Contains(got, "model.connectionId") {
		t.Errorf("got %s, want the field of the connection", got)
	}
	if stored, err := w.store.Bot(t.Context(), w.acme.app); err != nil || stored.Draft.Kind != bots.Demo {
		t.Errorf("got %+v and %v, want the draft before the wrong one", stored, err)
	}
}
