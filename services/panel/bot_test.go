package panel_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/bots"
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
