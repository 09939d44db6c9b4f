package clientapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	clientapi "github.com/parley-chat/parley/services/client-api"
	"github.com/parley-chat/parley/testkit/chattest"
	"github.com/parley-chat/parley/testkit/storetest"
	"github.com/parley-chat/parley/testkit/timetest"
)

const lifecycle = "../../docs/lifecycle.md"

// Every cell of the table for the writes of the document, at the boundary of its state.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Millisecond)
	w := start(t, func(cfg *clientapi.Config) {
		cfg.Now, cfg.Storage.ChatIdleClose = timetest.NewClock(now).Now, chattest.IdleClose
		cfg.Storage.SharedStore = nil // the shared store closes idle chats itself
	})
	s := storetest.OpenAt(t, w.engines.StorePath, storetest.Options{IdleClose: chattest.IdleClose})
	for i, o := range w.operations(":id", ":id", templateID) {
		if o.body == "" {
			continue
		}
		for state, want := range chattest.Answers(t, lifecycle, o.method+" "+o.path) {
			registered, err := s.Register(t.Context(), store.Registration{Visitor: chat.Visitor{ID: uuid.NewString(), CompanyID: companyID, AppID: appID}})
			w.must(err)
			chatID := chattest.OpenIn(t, s, registered.Visitor, chat.ChannelWidget, state, now)
			got := w.request(w.operations(chatID, unknownID, templateID)[i], w.token).Outcome(t)
			if got != want {
				t.Errorf("%s %s, %s: got %q, want %q", o.method, o.path, state, got, want)
			}
		}
	}
}

// A closed chat takes effect when it is announced, regardless of the cache's TTL.
func TestClosingIsAnnounced(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *clientapi.Config) { cfg.CacheTTL = time.Hour })
	succeeded(t, w.send(`{"text":"hi"}`))
	_, err := w.store.ChangeChat(t.Context(), w.chatID, store.ChatChange{ClosedAt: time.Now()})
	w.must(err)
	succeeded(t, w.send(`{"text":"hi"}`)) // still cached

	w.must(w.openBus().RPC().Invalidate(t.Context(), store.CachedChat, w.chatID))
	timetest.Until(t, "CHAT_CLOSED after the closing", func() bool {
		got := w.send(`{"text":"hi"}`)
		return got.Status == http.StatusBadRequest && got.Problem(t).Code == "CHAT_CLOSED"
	})
}
