package widgetapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/presence"
	"github.com/parley-chat/parley/pkg/store"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
)

// visitorChat is an element of GET /chats.
type visitorChat struct {
	ChatID    string
	Status    string
	CreatedAt time.Time
	ClosedAt  time.Time
}

func (w *world) chats(path, token string) (page []visitorChat, following string) {
	w.t.Helper()
	got := w.get(path, token)
	if err := json.Unmarshal([]byte(got.Body), &page); err != nil || got.Status != http.StatusOK {
		w.t.Fatalf("GET %s: got %d %s, want 200 and an array", path, got.Status, got.Body)
	}
	return page, next(w.t, path, got)
}

// A visitor finds the chats of before, newest first, and reads each of them page by page.
func TestEarlierChats(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"sara@example.com"`)
	for _, text := range []string{"first", "second"} {
		w.writeText(token, text)
		w.closeChat(token)
	}
	w.writeText(token, "third")
	var all []visitorChat
	for path := "/chats?limit=2"; path != ""; {
		var page []visitorChat
		page, path = w.chats(path, token)
		all = append(all, page...)
	}
	if len(all) != 3 || all[0].Status != "active" || !all[0].ClosedAt.IsZero() || all[2].Status != "closed" || all[2].ClosedAt.Before(all[2].CreatedAt) {
		t.Fatalf("got %+v, want the open chat and the two closed ones", all)
	}
	for i, text := range []string{"third", "second", "first"} {
		page, earlier := w.page("/chats/"+all[i].ChatID+"/messages?limit=1", token)
		if len(page) != 1 || string(page[0].Data) != `{"text":"`+text+`"}` {
			t.Errorf("chat %d: got %+v, want %s", i, page, text)
		}
		if greeted := i == 2; (earlier != "") != greeted { // only the registration greets
			t.Errorf("chat %d: got the link %q, want one: %v", i, earlier, greeted)
		} else if greeted {
			if page, _ := w.page(earlier, token); len(page) != 1 || !page[0].IsFromSupport {
				t.Errorf("the page before: got %+v, want a greeting", page)
			}
		}
	}
	stranger := w.register(appID, `"email":"other@example.com"`)
	for path, status := range map[string]int{
		"/chats/" + all[1].ChatID + "/messages": http.StatusNotFound, "/chats/" + unknownID + "/messages": http.StatusNotFound, "/chats/x/messages": http.StatusNotFound,
		"/chats?after=" + all[1].ChatID: http.StatusBadRequest, "/chats?after=" + unknownID: http.StatusBadRequest, "/chats?limit=101": http.StatusBadRequest,
	} {
		if got := w.get(path, stranger); got.Status != status {
			t.Errorf("another visitor's GET %s: got %d %s, want %d", path, got.Status, got.Body, status)
		}
	}
}

// Where anyone can claim an identity, a claim does not open the chats of before. Where identities are
// verified, the visitor has them with every token.
func TestAClaimReadsNoEarlierChats(t *testing.T) {
	t.Parallel()
	w := start(t, uncached)
	later := w.register(appID, `"email":"sara@example.com"`)
	token := w.sign(credential.VisitorClaims{ChatUserID: w.claims(later).ChatUserID, AppID: appID, CompanyID: companyID}) // an hour old
	w.writeText(token, "my secret")
	all, _ := w.chats("/chats", token)
	history := "/chats/" + all[0].ChatID + "/messages"
	_, err := w.store.ChangeChat(t.Context(), all[0].ChatID, store.ChatChange{ClosedAt: time.Now().Add(-time.Minute)})
	w.must(err)
	w.writeText(later, "new")
	if page, _ := w.chats("/chats", later); len(page) != 1 || page[0].Status != "active" {
		t.Errorf("with a later token: got %+v, want only the open chat", page)
	}
	if got := w.get(history, later); got.Status != http.StatusNotFound {
		t.Errorf("with a later token: got %d %s, want 404", got.Status, got.Body)
	}
	if page, _ := w.page(history, token); len(page) != 3 {
		t.Errorf("with the token of that time: got %+v, want the chat", page)
	}
	err = w.store.ChangeApplication(t.Context(), appID, store.ApplicationChange{Secrets: store.RotateSecret(credential.NewIdentitySecret(), time.Now(), 0)})
	w.must(err)
	w.must(w.store.ChangeApplication(t.Context(), appID, store.ApplicationChange{Verification: chat.VerificationSession}))
	time.Sleep(2 * time.Millisecond) // the cache's TTL
	if page, _ := w.chats("/chats", later); len(page) != 2 {
		t.Errorf("with verified identities: got %+v, want both chats", page)
	}
}

// GET /chat tells whether an agent is there, not only whether it is within business hours.
func TestChatTellsWhetherAgentsAreOnline(t *testing.T) {
	t.Parallel()
	kept := presence.NewMemory(time.Now)
	w := start(t, func(cfg *widgetapi.Config) { cfg.Presence = kept })
	w.must(kept.SetOnline(t.Context(), "a panel", presence.Agents(companyID)))
	for app, want := range map[string]string{appID: `"agents":{"available":true,"online":true}`, otherApp: `"agents":{"available":true,"online":false}`} {
		got := w.get("/chat", w.register(app, `"email":"sara@example.com"`))
		if !strings.Contains(got.Body, want) {
			t.Errorf("got %s, want %s", got.Body, want)
		}
	}
}

// The greetings are in the language of the registration, as far as they are translated.
func TestGreetingsByLanguage(t *testing.T) {
	t.Parallel()
	w := start(t, uncached)
	app, err := w.store.Application(t.Context(), bareApp)
	w.must(err)
	app.WidgetConfigs = json.RawMessage(`{"greetingMessages":[{"content":"Hello","translations":{"de":"Hallo","pt-BR":"Oi"}},{"content":"How can we help?"}]}`)
	w.must(w.store.PutApplication(t.Context(), app))
	time.Sleep(2 * time.Millisecond) // the cache's TTL
	for language, want := range map[string]string{`"de"`: "Hallo", `"de-AT"`: "Hallo", `"pt_BR"`: "Oi", `"pt"`: "Hello", `"fr"`: "Hello", `""`: "Hello", `null`: "Hello"} {
		history := w.history(w.register(bareApp, `"userId":"user-`+strings.Trim(language, `"`)+`","language":`+language))
		if len(history) != 2 || string(history[0].Data) != `{"text":"`+want+`"}` || string(history[1].Data) != `{"text":"How can we help?"}` {
			t.Errorf("%s: got %+v, want %s", language, history, want)
		}
	}
}
