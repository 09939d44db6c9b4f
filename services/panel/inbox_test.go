package panel_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/panel"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/httpapitest"
)

// visitorWrites publishes and stores a visitor's message as the Widget API does.
func (w *world) visitorWrites(c company, text string) chat.Message {
	w.t.Helper()
	m := w.publishes(c, text)
	w.must(w.store.AppendMessage(w.t.Context(), c.chat, m))
	return m
}

// publishes is visitorWrites without the history.
func (w *world) publishes(c company, text string) chat.Message {
	w.t.Helper()
	m := chat.Message{
		ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: store.UTC(time.Now()), Type: chat.Text, Data: []byte(`{"text":"` + text + `"}`), NameOfSender: "Ada",
	}
	w.must(w.bus.Publish(w.t.Context(), event.Derived(), event.VisitorMessageAccepted{CompanyID: c.id, AppID: c.app, ChatUserID: c.visitor, ChatID: c.chat, Message: m}))
	return m
}

// replies returns the texts in the stream of replies for a company's visitor.
func (w *world) replies(c company) (texts []string) {
	w.t.Helper()
	for d, err := range w.bus.Read(w.t.Context(), bus.Range{Stream: subject.Replies, Filters: []string{subject.Reply(c.app, c.visitor)}}) {
		w.must(err)
		texts = append(texts, string(d.Data))
	}
	return texts
}

type chatRow struct {
	ID, Status, Control string
	Unread, InWindow    bool
	Assignee            *struct{ ID, Name string }
	Visitor             struct{ Name, Email string }
	LastMessage         *chat.Message
}

func TestConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	agent := w.as(w.acme.users[account.Agent])
	w.visitorWrites(w.acme, "hello")
	var list struct {
		Chats []chatRow
		Next  *string
	}
	agent.done(http.StatusOK, http.MethodGet, "/api/chats?unread=true&q=ADA@acme&status=open", "").Into(t, &list)
	if len(list.Chats) != 1 || !list.Chats[0].Unread || list.Chats[0].Control != "bot" || list.Chats[0].Visitor.Email != "ada@acme.example" ||
		!strings.Contains(string(list.Chats[0].LastMessage.Data), "hello") || list.Next != nil {
		t.Fatalf("got %+v, want the unread chat", list)
	}
	path := "/api/chats/" + w.acme.chat
	agent.done(http.StatusNoContent, http.MethodPost, path+"/read", `{}`)
	agent.done(http.StatusBadRequest, http.MethodPost, path+"/messages", `{"type":"TEXT","data":{"text":"without a key"}}`)
	agent.done(http.StatusBadRequest, http.MethodPost, path+"/messages", `{"type":"TEXT","data":{}}`, "Idempotency-Key", "k0")
	agent.done(http.StatusBadRequest, http.MethodPost, path+"/messages", `{"type":"MULTIPLE_CHOICE_REPLY","data":{}}`, "Idempotency-Key", "k0")

	first := agent.done(http.StatusCreated, http.MethodPost, path+"/messages", `{"type":"TEXT","data":{"text":"I am Grace"}}`, "Idempotency-Key", "k1")
	again := agent.done(http.StatusCreated, http.MethodPost, path+"/messages", `{"type":"TEXT","data":{"text":"I am Grace"}}`, "Idempotency-Key", "k1")
	if first.Body != again.Body || len(w.replies(w.acme)) != 1 {
		t.Errorf("got %s and %s and %d replies, want one message", first.Body, again.Body, len(w.replies(w.acme)))
	}
	agent.done(http.StatusUnprocessableEntity, http.MethodPost, path+"/messages", `{"type":"TEXT","data":{"text":"another"}}`, "Idempotency-Key", "k1")
	var sent chat.Message
	first.Into(t, &sent)
	if sent.NameOfSender != "Agent" || !sent.IsFromSupport {
		t.Errorf("got %+v, want it from the agent", sent)
	}
	var row chatRow
	agent.done(http.StatusOK, http.MethodGet, path, "").Into(t, &row)
	if row.Control != "agent" || row.Assignee == nil || row.Assignee.ID != w.acme.users[account.Agent].ID || row.Unread {
		t.Errorf("after a reply: got %+v, want it taken over by the agent", row)
	}
	agent.done(http.StatusCreated, http.MethodPost, path+"/messages", `{"type":"TEMPLATE","templateId":"`+w.acme.template+`"}`, "Idempotency-Key", "k2")
	agent.done(http.StatusNotFound, http.MethodPost, path+"/messages", `{"type":"TEMPLATE","templateId":"`+w.other.template+`"}`, "Idempotency-Key", "k3")
	var history struct{ Messages []chat.Message }
	agent.done(http.StatusOK, http.MethodGet, path+"/messages", "").Into(t, &history)
	if len(history.Messages) != 3 || !strings.Contains(string(history.Messages[2].Data), "Hello Ada") {
		t.Errorf("got %+v, want the question, the answer and the filled template", history.Messages)
	}

	owner := w.acme.users[account.Owner]
	agent.done(http.StatusBadRequest, http.MethodPut, path+"/assignee", `{"userId":"`+w.acme.users[account.Developer].ID+`"}`)
	agent.done(http.StatusBadRequest, http.MethodPut, path+"/assignee", `{"userId":"`+w.other.users[account.Owner].ID+`"}`)
	agent.done(http.StatusOK, http.MethodPut, path+"/assignee", `{"userId":"`+owner.ID+`"}`).Into(t, &row)
	if row.Control != "agent" || row.Assignee.ID != owner.ID {
		t.Errorf("got %+v, want it assigned to the owner", row)
	}
	row.Assignee = nil
	agent.done(http.StatusOK, http.MethodPut, path+"/control", `{"control":"bot"}`).Into(t, &row)
	if c, err := w.store.Chat(t.Context(), w.acme.chat); err != nil || c.Control.Agent || row.Control != "bot" || row.Assignee != nil {
		t.Errorf("handed back: got %+v and %+v, %v", row, c.Control, err)
	}
	agent.done(http.StatusOK, http.MethodPost, path+"/close", `{}`).Into(t, &row)
	if row.Status != "closed" {
		t.Errorf("got %+v, want it closed", row)
	}
	agent.done(http.StatusConflict, http.MethodPost, path+"/messages", `{"type":"TEXT","data":{"text":"x"}}`, "Idempotency-Key", "k4")
	agent.done(http.StatusConflict, http.MethodPut, path+"/control", `{"control":"agent"}`)
	entries := w.as(owner).done(http.StatusOK, http.MethodGet, "/api/audit?target="+w.acme.chat, "").Body
	for _, action := range []string{"chat.take-over", "chat.assign", "chat.hand-back", "chat.close"} {
		if !strings.Contains(entries, action) {
			t.Errorf("the audit log has no %s: %s", action, entries)
		}
	}
}

// The window is a rule of phone channels: in the widget, an agent answers Friday's message on Monday.
func TestWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	day := 24 * time.Hour
	opened := func(channel chat.Channel) chat.Chat {
		registered, err := w.store.Register(t.Context(), store.Registration{Visitor: chat.Visitor{ID: uuid.NewString(), CompanyID: w.acme.id, AppID: w.acme.app, FirstName: "Old", Phone: "+4917012345678"}})
		v := registered.Visitor
		w.must(err)
		c, _, err := w.store.OpenChat(t.Context(), v, store.NewChat{Channel: channel, Now: time.Now().Add(-3 * day)})
		w.must(err)
		return c
	}
	site := opened(chat.ChannelWidget)
	var row struct {
		InWindow        bool
		WindowExpiresAt *time.Time
	}
	w.as(w.acme.users[account.Agent]).done(http.StatusOK, http.MethodGet, "/api/chats/"+site.ID, "").Into(t, &row)
	if !row.InWindow || row.WindowExpiresAt != nil {
		t.Errorf("a chat of the widget: got %+v, want no window", row)
	}
	w.as(w.acme.users[account.Agent]).done(http.StatusCreated, http.MethodPost, "/api/chats/"+site.ID+"/messages", `{"type":"TEXT","data":{"text":"x"}}`, "Idempotency-Key", "0")
	old := opened(chat.ChannelPhone)
	agent, path := w.as(w.acme.users[account.Agent]), "/api/chats/"+old.ID+"/messages"
	a := agent.done(http.StatusBadRequest, http.MethodPost, path, `{"type":"TEXT","data":{"text":"x"}}`, "Idempotency-Key", "1")
	if !strings.Contains(a.Body, "CHAT_TOO_OLD") {
		t.Errorf("got %s, want CHAT_TOO_OLD", a.Body)
	}
	agent.done(http.StatusCreated, http.MethodPost, path, `{"type":"TEMPLATE","templateId":"`+w.acme.template+`"}`, "Idempotency-Key", "2")
}

// Two replicas send the same events, and a browser that reconnects to the other one gets exactly what it missed, once.
func TestTwoReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	second := w.panel(unlimited)
	one := w.as(w.acme.users[account.Agent])
	two := w.browser(second)
	two.cookie, two.csrf = one.cookie, one.csrf // the session is valid on both
	here, leave := one.events("/api/events", "")
	there, _ := two.events("/api/events", "")
	w.next(here, "ready")
	w.next(there, "ready")

	w.visitorWrites(w.other, "not for acme")
	question := w.visitorWrites(w.acme, "hello")
	for _, events := range []<-chan sse{here, there} {
		if e := w.next(events, "message"); !strings.Contains(e.data, question.ID) || strings.Contains(e.data, "not for acme") {
			t.Errorf("got %s, want the visitor's message", e.data)
		}
	}
	two.done(http.StatusOK, http.MethodPost, "/api/chats/"+w.acme.chat+"/presence", `{}`)
	if e := w.next(here, "presence"); !strings.Contains(e.data, w.acme.users[account.Agent].ID) || e.id != "" {
		t.Errorf("got %+v, want the other replica's agent", e)
	}
	two.done(http.StatusOK, http.MethodPut, "/api/chats/"+w.acme.chat+"/control", `{"control":"agent"}`)
	last := w.next(here, "chat")
	if !strings.Contains(last.data, `"control":"agent"`) || last.id == "" {
		t.Errorf("got %+v, want the take-over", last)
	}
	leave()
	var missed []string
	for i := range 5 {
		missed = append(missed, w.visitorWrites(w.acme, fmt.Sprint("missed ", i)).ID)
	}
	two.done(http.StatusCreated, http.MethodPost, "/api/chats/"+w.acme.chat+"/messages", `{"type":"TEXT","data":{"text":"answer"}}`, "Idempotency-Key", "1")
	back, _ := two.events("/api/events", last.id)
	var got []sse
	for e := range back {
		if e.name == "ready" {
			break
		}
		got = append(got, e)
	}
	if len(got) != len(missed)+1 {
		t.Fatalf("got %v, want %d events", got, len(missed)+1)
	}
	for i, id := range missed {
		if !strings.Contains(got[i].data, id) {
			t.Errorf("event %d: got %s, want message %s", i, got[i].data, id)
		}
	}
	if !strings.Contains(got[len(missed)].data, "answer") {
		t.Errorf("got %s, want the agent's answer", got[len(missed)].data)
	}
	future, _ := one.events("/api/events", "9999999-1-1-1")
	w.next(future, "reset")
	w.next(future, "ready")

	// Ending the session also ends the other replica's requests.
	one.done(http.StatusNoContent, http.MethodDelete, "/api/session", "")
	two.cookie = strings.Split(two.cookie, ";")[0]
	if a := two.do(http.MethodGet, "/api/session", ""); a.Status != http.StatusUnauthorized {
		t.Errorf("after signing out at the other replica: got %d, want 401", a.Status)
	}
}

// A panel is killed while it sends a reply: at once, and after the publish. The app repeats the request, and
// the reply is sent once.
func TestKillDuringAReply(t *testing.T) {
	t.Parallel()
	for name, await := range map[string]bool{"at once": false, "published": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killDuringAReply(t, await)
		})
	}
}

func killDuringAReply(t *testing.T, await bool) {
	w := newWorld(t, unlimited)
	agent := w.as(w.acme.users[account.Agent])
	base, _, kill := w.child()
	victim := w.browser(base)
	victim.cookie, victim.csrf = agent.cookie, agent.csrf
	victim.done(http.StatusOK, http.MethodGet, "/api/session", "") // it is running
	const body = `{"type":"TEXT","data":{"text":"once"}}`
	path, published, answered := "/api/chats/"+w.acme.chat+"/messages", make(chan struct{}), make(chan struct{})
	go func() {
		defer close(published)
		for await {
			for range w.bus.Read(t.Context(), bus.Range{Stream: subject.Replies, Follow: true}) {
				return
			}
		}
	}()
	go func() {
		defer close(answered)
		if response, err := victim.client.Do(victim.request(http.MethodPost, path, body, "Idempotency-Key", "k")); err == nil {
			response.Body.Close()
		}
	}()
	<-published
	kill()
	<-answered
	// as the app does, until the lease of the dead process expires
	for deadline := time.Now().Add(limit); ; time.Sleep(200 * time.Millisecond) {
		a := agent.do(http.MethodPost, path, body, "Idempotency-Key", "k")
		if a.Status == http.StatusCreated {
			break
		}
		if a.Status != http.StatusConflict || time.Now().After(deadline) {
			t.Fatalf("sending again: got %d %s", a.Status, a.Body)
		}
	}
	history, _, err := w.store.History(t.Context(), w.acme.chat, store.HistoryQuery{})
	w.must(err)
	if all := w.replies(w.acme); len(all) != 1 || len(history) != 1 {
		t.Errorf("got %v in the stream and %d in the history, want 1 of each", all, len(history))
	}
}

// A reply that was published and not yet stored is gone when its stream has lost it: a retry with its key sends it.
func TestLostReplyIsSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	agent := w.as(w.acme.users[account.Agent])
	path := "/api/chats/" + w.acme.chat + "/messages"
	reply := func() (id string) {
		t.Helper()
		const body = `{"type":"TEXT","data":{"text":"I am Grace"}}`
		sent := agent.done(http.StatusCreated, http.MethodPost, path, body, "Idempotency-Key", "k").Body
		var m chat.Message
		w.must(json.Unmarshal([]byte(sent), &m))
		return m.ID
	}
	w.store.full.Store(true)
	first := reply()
	w.must(w.bus.DeleteStream(t.Context(), subject.Replies))
	bustest.Declare(t, w.natsURL, streams)
	w.store.full.Store(false)
	if again := reply(); again != first {
		t.Errorf("got %s, want the same message, %s", again, first)
	}
	history, _, err := w.store.History(t.Context(), w.acme.chat, store.HistoryQuery{})
	w.must(err)
	if all := w.replies(w.acme); len(all) != 1 || len(history) != 1 {
		t.Errorf("got %v in the stream and %d in the history, want the reply that was sent again", all, len(history))
	}
}

// What an agent sends counts: an agent who floods is refused, and the company's others go on.
func TestAgentsAreCharged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited, func(cfg *panel.Config) { cfg.BytesAddress = config.Rate{Count: 20 << 10, Per: 168 * time.Hour} })
	agent, owner := w.as(w.acme.users[account.Agent]), w.as(w.acme.users[account.Owner])
	send := func(b *browser, n int) httpapitest.Response {
		return b.do(http.MethodPost, "/api/chats/"+w.acme.chat+"/messages",
			`{"type":"TEXT","data":{"text":"`+strings.Repeat("x", 2000)+`"}}`, "Idempotency-Key", fmt.Sprintf("k%d", n))
	}
	for n := range 20 {
		a := send(agent, n)
		if a.Status == http.StatusCreated {
			continue
		}
		if a.Status != http.StatusTooManyRequests || a.Problem(t).Code != "BYTE_BUDGET_EXCEEDED" || n < 4 {
			t.Fatalf("message %d: got %d %s, want 429 after 20 KiB", n, a.Status, a.Body)
		}
		if a := send(owner, n); a.Status != http.StatusCreated {
			t.Errorf("a colleague: got %d %s, want 201", a.Status, a.Body)
		}
		return
	}
	t.Error("got 20 messages of 2 KB accepted, want an agent's budget of 20 KiB")
}
