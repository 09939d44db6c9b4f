package panel_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/presence"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/panel"
	"github.com/parley-chat/parley/testkit/bustest"
)

// A browser gets the typing signals of the conversation that it shows only; the visitor and the other agents
// get those of the agent, at most once in two seconds.
func TestTyping(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	agent, owner := w.as(w.acme.users[account.Agent]), w.as(w.acme.users[account.Owner])
	heard := bustest.Collect(t, w.natsURL, subject.AllSupportTyping)
	here, _ := agent.events("/api/events", "")
	there, _ := owner.events("/api/events", "")
	w.next(here, "ready")
	w.next(there, "ready")
	path := "/api/chats/" + w.acme.chat
	agent.done(http.StatusOK, http.MethodPost, path+"/presence", `{}`)
	w.next(here, "presence") // from now on it gets this visitor's signals
	w.next(there, "presence")

	visitorTypes := func(c company, at time.Time) {
		t.Helper()
		w.must(w.bus.RPC().Signal(event.Typing{CompanyID: c.id, AppID: c.app, ChatUserID: c.visitor, Side: subject.SideVisitor, At: at}))
	}
	now := time.Now()
	visitorTypes(w.other, now)
	visitorTypes(w.acme, now.Add(-time.Minute)) // a delayed signal
	visitorTypes(w.acme, now)
	if e := w.next(here, "typing"); e.id != "" || !strings.Contains(e.data, `"visitorId":"`+w.acme.visitor+`"`) || !strings.Contains(e.data, `"side":"visitor"`) ||
		!strings.Contains(e.data, now.UTC().Format(chat.TimeFormat)) {
		t.Errorf("got %+v, want the visitor typing now", e)
	}
	for range 5 {
		owner.done(http.StatusNoContent, http.MethodPost, path+"/typing", `{}`)
	}
	if e := w.next(here, "typing"); !strings.Contains(e.data, `"name":"Owner"`) || !strings.Contains(e.data, w.acme.users[account.Owner].ID) {
		t.Errorf("got %+v, want the other agent typing", e)
	}
	agent.done(http.StatusNoContent, http.MethodPost, path+"/typing", `{}`)
	for _, want := range []account.Role{account.Owner, account.Agent} {
		m := heard.Next()
		e, err := event.Decode[event.Typing](m.Subject, m.Data)
		if err != nil || e.ChatUserID != w.acme.visitor || e.UserID != w.acme.users[want].ID || e.Name == "" {
			t.Errorf("got %s %s and %v, want one signal to the visitor that %s types", m.Subject, m.Data, err, want)
		}
	}
	owner.done(http.StatusNoContent, http.MethodPost, path+"/read", `{}`)
	w.next(there, "read") // and no typing before: this browser shows no conversation
}

// The company's cursor is the time of the newest message that an agent was shown: later messages stay unread.
// Presence is sent, and the visitor's read position is in the messages and in live events.
func TestReading(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	agent := w.as(w.acme.users[account.Agent])
	moved := bustest.Collect(t, w.natsURL, subject.AllReadCursors)
	path := "/api/chats/" + w.acme.chat
	first := w.visitorWrites(w.acme, "one")
	time.Sleep(2 * time.Millisecond) // times are in milliseconds
	w.visitorWrites(w.acme, "two")
	unread := func() (row struct {
		Unread      bool
		UnreadCount int
	}) {
		t.Helper()
		agent.done(http.StatusOK, http.MethodGet, path, "").Into(t, &row)
		return row
	}
	if row := unread(); !row.Unread || row.UnreadCount != 2 {
		t.Errorf("got %+v, want two unread", row)
	}
	agent.done(http.StatusNoContent, http.MethodPost, path+"/read", fmt.Sprintf(`{"upTo":%q}`, first.CreatedAt.Format(chat.TimeFormat)))
	if row := unread(); !row.Unread || row.UnreadCount != 1 {
		t.Errorf("read up to the first: got %+v, want one unread", row)
	}
	m := moved.Next()
	e, err := event.Decode[event.ReadCursorMoved](m.Subject, m.Data)
	if err != nil || e.Side != subject.SideSupport || e.ChatUserID != w.acme.visitor || !e.UpTo.Equal(first.CreatedAt) {
		t.Errorf("got %s %s and %v, want the read position signalled to the visitor", m.Subject, m.Data, err)
	}
	agent.done(http.StatusNoContent, http.MethodPost, path+"/read", `{"upTo":"2000-01-01T00:00:00Z"}`)
	if row := unread(); row.UnreadCount != 1 {
		t.Errorf("read up to long ago: got %+v, want the cursor where it was", row)
	}
	agent.done(http.StatusNoContent, http.MethodPost, path+"/read", `{"upTo":"2999-01-01T00:00:00Z"}`) // a browser's clock may be wrong
	if row := unread(); row.Unread || row.UnreadCount != 0 {
		t.Errorf("read: got %+v, want nothing unread", row)
	}
	w.visitorWrites(w.acme, "three")
	if row := unread(); !row.Unread || row.UnreadCount != 1 {
		t.Errorf("a clock in the future: got %+v, want the next message unread", row)
	}

	here, _ := agent.events("/api/events", "")
	w.next(here, "ready")
	agent.done(http.StatusOK, http.MethodPost, path+"/presence", `{}`)
	w.next(here, "presence")
	w.must(w.bus.RPC().Signal(event.ReadCursorMoved{
		CompanyID: w.acme.id, AppID: w.acme.app, ChatUserID: w.acme.visitor, ChatID: w.acme.chat, Side: subject.SideVisitor, MessageID: first.ID, UpTo: first.CreatedAt,
	}))
	if e := w.next(here, "seen"); !strings.Contains(e.data, first.ID) {
		t.Errorf("got %+v, want how far the visitor has read", e)
	}
	_, err = w.store.ReadUpTo(t.Context(), w.acme.chat, first, time.Now())
	w.must(err)
	if a := agent.done(http.StatusOK, http.MethodGet, path+"/messages", ""); !strings.Contains(a.Body, `"seenUpTo":"`+first.CreatedAt.Format(chat.TimeFormat)+`"`) {
		t.Errorf("got %s, want how far the visitor has read", a.Body)
	}
}

// Agents with the panel open are online; visitors are shown as the gateways report.
func TestPresence(t *testing.T) {
	t.Parallel()
	kept := presence.NewMemory(time.Now)
	w := newWorld(t, unlimited, func(cfg *panel.Config) { cfg.Presence = kept })
	agent := w.as(w.acme.users[account.Agent])
	path := "/api/chats/" + w.acme.chat + "/presence"
	if a := agent.done(http.StatusOK, http.MethodPost, path, `{}`); !strings.Contains(a.Body, `{"visitor":{"online":false}}`) {
		t.Errorf("got %s, want the visitor offline", a.Body)
	}
	key := presence.Visitor(w.acme.app, w.acme.visitor)
	w.must(kept.SetOnline(t.Context(), "gateway", key))
	if a := agent.done(http.StatusOK, http.MethodPost, path, `{}`); !strings.Contains(a.Body, `{"visitor":{"online":true}}`) {
		t.Errorf("got %s, want the visitor online", a.Body)
	}
	w.must(kept.SetOffline(t.Context(), "gateway", time.Now(), key))
	if a := agent.done(http.StatusOK, http.MethodPost, path, `{}`); !strings.Contains(a.Body, `"online":false,"lastSeenAt":"`) {
		t.Errorf("got %s, want when the visitor left", a.Body)
	}
	var list struct {
		Agents []struct {
			ID     string
			Online *bool
		}
	}
	online := func() (n int) {
		agent.done(http.StatusOK, http.MethodGet, "/api/agents", "").Into(t, &list)
		for _, a := range list.Agents {
			if a.Online != nil && *a.Online {
				n++
			}
		}
		return n
	}
	if n := online(); n != 0 {
		t.Errorf("got %d agents online, want none", n)
	}
	here, _ := agent.events("/api/events", "")
	w.next(here, "ready")
	if n := online(); n != 1 {
		t.Errorf("got %d agents online, want the one with the panel open", n)
	}
	states, err := kept.States(t.Context(), presence.Agents(w.acme.id), presence.Agents(w.other.id))
	if err != nil || !states[0].Online || states[1].Online {
		t.Errorf("got %+v and %v, want the agents of one company online", states, err)
	}
}

// A user who loses the inbox, the sessions or the account hears no more events.
func TestEventsEndWithTheAccess(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]struct {
		status             int
		method, path, body string
	}{
		"another role":   {http.StatusOK, http.MethodPatch, "", `{"role":"developer"}`},
		"ended sessions": {http.StatusNoContent, http.MethodDelete, "/sessions", ""},
		"deleted":        {http.StatusNoContent, http.MethodDelete, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, unlimited)
			agent, owner := w.as(w.acme.users[account.Agent]), w.as(w.acme.users[account.Owner])
			here, _ := agent.events("/api/events", "")
			w.next(here, "ready")
			owner.done(change.status, change.method, "/api/users/"+w.acme.users[account.Agent].ID+change.path, change.body)
			timeout := time.After(12 * time.Second) // before the heartbeat, which would end it too
			for open := true; open; {
				select {
				case _, open = <-here:
				case <-timeout:
					t.Fatal("the stream goes on, want it ended")
				}
			}
		})
	}
}

// consumers counts those of the streams that browsers read.
func (w *world) consumers() (n int) {
	w.t.Helper()
	for _, stream := range []string{subject.Inbound, subject.Replies, subject.Outbound, subject.Status} {
		info, err := bustest.JetStream(w.t, w.natsURL).Stream(w.t.Context(), stream)
		w.must(err)
		n += info.CachedInfo().State.Consumers
	}
	return n
}

// The streams of one user are bounded, and those of one company share the readers of the streams.
func TestEventStreamsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	agent, owner := w.as(w.acme.users[account.Agent]), w.as(w.acme.users[account.Owner])
	var open []<-chan sse
	for range 10 {
		events, _ := agent.events("/api/events", "")
		w.next(events, "ready")
		open = append(open, events)
	}
	if a := agent.do(http.MethodGet, "/api/events", ""); a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
		t.Errorf("stream 11 of one user: got %d %s, want 429", a.Status, a.Body)
	}
	colleague, _ := owner.events("/api/events", "")
	w.next(colleague, "ready")
	if consumers := w.consumers(); consumers > 4 {
		t.Errorf("got %d consumers for 11 browsers of a company, want one for each stream", consumers)
	}
	m := w.visitorWrites(w.acme, "hello")
	for i, events := range append(open, colleague) {
		if e := w.next(events, "message"); !strings.Contains(e.data, m.ID) || e.id == "" {
			t.Errorf("browser %d: got %+v, want the message with its position", i, e)
		}
	}
}

// readings counts what a panel reads of applications.
type readings struct {
	store.Store
	whole, ids atomic.Int32
}

func (r *readings) Applications(ctx context.Context, companyID string, p store.Page) ([]chat.Application, error) {
	r.whole.Add(1)
	return r.Store.Applications(ctx, companyID, p)
}

func (r *readings) IDs(ctx context.Context, of store.IDFilter, p store.Page) ([]string, error) {
	r.ids.Add(1)
	return r.Store.IDs(ctx, of, p)
}

// An event stream reads no settings, which may have a megabyte in each application, and one that is refused reads nothing.
func TestEventStreamsReadNoSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	counted := &readings{Store: w.store}
	agent := w.as(w.acme.users[account.Agent])
	agent.base = w.panel(unlimited, func(cfg *panel.Config) { cfg.Storage.SharedStore = counted })
	for range 10 {
		events, _ := agent.events("/api/events", "")
		w.next(events, "ready")
	}
	before := counted.ids.Load()
	for range 20 {
		if a := agent.do(http.MethodGet, "/api/events", ""); a.Status != http.StatusTooManyRequests {
			t.Fatalf("got %d %s, want 429", a.Status, a.Body)
		}
	}
	if after := counted.ids.Load(); before != 10 || after > before+10 { // each heartbeat of a stream reads them again
		t.Errorf("got %d readings of ids by ten streams and %d after twenty refused ones, want 10", before, after)
	}
	if n := counted.whole.Load(); n != 0 {
		t.Errorf("got %d readings of whole applications, want none", n)
	}
}
