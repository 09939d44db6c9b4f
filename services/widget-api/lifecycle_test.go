package widgetapi_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
	"github.com/parley-chat/parley/testkit/chattest"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/storetest"
	"github.com/parley-chat/parley/testkit/timetest"
)

const lifecycle = "../../docs/lifecycle.md"

// Every cell of the table, at the boundary of its state: the answer, and whether a chat was opened.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Millisecond)
	w := start(t, func(cfg *widgetapi.Config) {
		cfg.Now, cfg.Storage.ChatIdleClose = timetest.NewClock(now).Now, chattest.IdleClose
		cfg.Storage.SharedStore = nil // the shared store closes idle chats itself
	})
	s := storetest.OpenAt(t, w.engines.StorePath, storetest.Options{IdleClose: chattest.IdleClose})
	endpoints := map[string]func(email, token string) httpapitest.Response{
		"POST /register": func(email, _ string) httpapitest.Response {
			return w.post("/register", "", `{"appId":"`+appID+`","email":"`+email+`"}`)
		},
		"GET /message":  func(_, token string) httpapitest.Response { return w.get("/message", token) },
		"GET /chats":    func(_, token string) httpapitest.Response { return w.get("/chats", token) },
		"POST /message": func(_, token string) httpapitest.Response { return w.post("/message", token, hello) },
	}
	for endpoint, ask := range endpoints {
		for state, want := range chattest.Answers(t, lifecycle, endpoint) {
			email := uuid.NewString() + "@example.com"
			registered, err := s.Register(t.Context(), store.Registration{Identities: []store.Identity{{Scope: appID, Kind: store.KindEmail, Value: email}}, Visitor: chat.Visitor{CompanyID: companyID, AppID: appID, Email: email}})
			v := registered.Visitor
			w.must(err)
			before := chattest.OpenIn(t, s, v, chat.ChannelWidget, state, now)
			a := ask(email, w.sign(credential.VisitorClaims{ChatUserID: v.ID, AppID: appID, CompanyID: companyID}))
			got := a.Outcome(t)
			v, err = s.Visitor(t.Context(), v.ID)
			w.must(err)
			if c, err := store.CurrentChat(t.Context(), s, v, now); err == nil && c.ID != before {
				got += ", opens a chat"
			}
			if got != want {
				t.Errorf("%s, %s: got %q, want %q", endpoint, state, got, want)
			}
		}
	}
}

// Concurrent registrations on two replicas: one visitor with one chat and its greetings.
func TestConcurrentRegistrationsOnTwoReplicas(t *testing.T) {
	t.Parallel()
	w := start(t)
	second := *w
	second.run()
	replicas := []*world{w, &second}
	tokens := make([]string, 8)
	var wait sync.WaitGroup
	for i := range tokens {
		members := `"email":"twin@example.com"`
		if i%4 > 1 {
			members += `,"userId":"twin"`
		}
		wait.Go(func() { tokens[i] = replicas[i%2].register(appID, members) })
	}
	wait.Wait()
	for i, token := range tokens {
		if got, want := w.claims(token).ChatUserID, w.claims(tokens[0]).ChatUserID; got != want {
			t.Errorf("got the visitor %s, want %s", got, want)
		}
		if n := len(replicas[(i+1)%2].history(token)); n != 2 {
			t.Errorf("got %d messages, want two greetings", n)
		}
	}
}

// A message that one replica has answered with 201 is at once in the history of another.
func TestOwnMessageIsInTheHistoryOfEveryReplica(t *testing.T) {
	t.Parallel()
	w := start(t)
	second := *w
	second.run()
	token := w.register(appID, `"email":"sara@example.com"`)
	for n, pair := range [][2]*world{{w, &second}, {&second, w}, {w, &second}} {
		sent := pair[0].writeText(token, fmt.Sprint(n))
		if page, _ := pair[1].page("/message?limit=1", token); len(page) != 1 || page[0].ID != sent.ID {
			t.Errorf("message %d: got %+v as the last of the history, want it", n, page)
		}
	}
}

// A form with identities of several visitors: the strongest decides, and no other chat is readable.
func TestIdentitiesOfSeveralVisitors(t *testing.T) {
	t.Parallel()
	w := start(t)
	ada, bob := w.register(appID, `"email":"ada@example.com"`), w.register(appID, `"userId":"bob"`)
	w.writeText(ada, "ada's")
	w.writeText(bob, "bob's")
	both := w.register(appID, `"email":"ada@example.com","userId":"bob"`)
	if got, want := w.claims(both).ChatUserID, w.claims(bob).ChatUserID; got != want {
		t.Errorf("got the visitor %s, want %s, whose userId it is", got, want)
	}
	if history := w.history(both); len(history) != 3 || string(history[2].Data) != `{"text":"bob's"}` {
		t.Errorf("got %+v, want bob's chat alone", history)
	}
	again := w.register(appID, `"email":"ada@example.com"`)
	if history := w.history(again); len(history) != 3 || string(history[2].Data) != `{"text":"ada's"}` {
		t.Errorf("got %+v, want ada's chat alone", history)
	}
	if got := w.get("/message", again); got.Status != http.StatusOK || w.claims(again).ChatUserID != w.claims(ada).ChatUserID {
		t.Errorf("got %d for %s, want ada", got.Status, w.claims(again).ChatUserID)
	}
}
