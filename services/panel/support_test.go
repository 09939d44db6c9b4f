package panel_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/proto-events/subject"
)

// A chat that was handed over waits in the queue with its reason until an agent takes it; returning it to the
// bot clears the reason.
func TestQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	agent := w.as(w.acme.users[account.Agent])
	h := chat.Handover{By: chat.ByBot, Reason: "refund", Note: "paid twice", At: time.Now().Add(-time.Minute).UTC().Truncate(time.Millisecond)}
	_, err := w.store.ChangeChat(t.Context(), w.acme.chat, store.ChatChange{Control: chat.Control{Agent: true, ChangedAt: h.At, Handover: h}})
	w.must(err)
	type row struct {
		Waiting  bool
		Control  string
		Handover *struct{ By, Reason, Note string }
		Assignee *struct{ ID string }
		Rating   *struct {
			Score   int
			Comment string
		}
	}
	var list struct{ Chats []row }
	agent.done(http.StatusOK, http.MethodGet, "/api/chats?waiting=true", "").Into(t, &list)
	if len(list.Chats) != 1 || !list.Chats[0].Waiting || list.Chats[0].Handover == nil || list.Chats[0].Handover.Reason != "refund" || list.Chats[0].Handover.Note != "paid twice" {
		t.Fatalf("got %+v, want the waiting chat with its reason", list)
	}
	path := "/api/chats/" + w.acme.chat
	agent.done(http.StatusCreated, http.MethodPost, path+"/messages", `{"type":"TEXT","data":{"text":"Hello"}}`, "Idempotency-Key", "k")
	var taken, back, closed row
	agent.done(http.StatusOK, http.MethodGet, path, "").Into(t, &taken)
	if taken.Waiting || taken.Assignee == nil || taken.Handover == nil {
		t.Errorf("after the agent's answer: got %+v, want the chat with them, and the reason", taken)
	}
	var last event.ChatControlChanged
	for d, err := range w.bus.Read(t.Context(), bus.Range{Stream: subject.Inbound, Filters: []string{subject.AllControls}}) {
		w.must(err)
		last, err = event.Decode[event.ChatControlChanged](d.Subject, d.Data)
		w.must(err)
	}
	if last.Handover.Reason != "refund" || last.HandsOver() {
		t.Errorf("got the event %+v, want the reason, and no second handover", last)
	}
	agent.done(http.StatusOK, http.MethodPut, path+"/control", `{"control":"bot"}`).Into(t, &back)
	if back.Control != "bot" || back.Handover != nil || back.Waiting {
		t.Errorf("returned to the bot:  got %+v, want no reason", back)
	}
	agent.done(http.StatusOK, http.MethodPost, path+"/close", `{}`)
	_, err = w.store.ChangeChat(t.Context(), w.acme.chat, store.ChatChange{Rating: chat.Rating{Score: 4, Comment: "Good.", At: time.Now()}})
	w.must(err)
	agent.done(http.StatusOK, http.MethodGet, path, "").Into(t, &closed)
	if closed.Rating == nil || closed.Rating.Score != 4 || closed.Rating.Comment != "Good." {
		t.Errorf("got %+v, want the rating", closed)
	}
	var sums struct {
		Days    int
		Ratings []struct {
			AppID   string
			Count   int
			Average float64
			Scores  []int
		}
	}
	agent.done(http.StatusOK, http.MethodGet, "/api/ratings", "").Into(t, &sums)
	if len(sums.Ratings) != 1 || sums.Days != 30 || sums.Ratings[0].AppID != w.acme.app || sums.Ratings[0].Average != 4 || sums.Ratings[0].Scores[3] != 1 {
		t.Errorf("got %+v, want one rating of four", sums)
	}
}

// A rating reaches the company's agents at once, and those who were disconnected when they reconnect.
func TestRatingIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	agent := w.as(w.acme.users[account.Agent])
	here, leave := agent.events("/api/events", "")
	ready := w.next(here, "ready")
	rates := func(c company, score int) {
		t.Helper()
		w.must(w.bus.Publish(t.Context(), event.Derived(), event.ChatRated{
			CompanyID: c.id, AppID: c.app, ChatUserID: c.visitor, ChatID: c.chat, Score: score, Comment: "Quick.", RatedAt: time.Now(),
		}))
	}
	rates(w.other, 1)
	rates(w.acme, 4)
	rated := w.next(here, "rated")
	if !strings.Contains(rated.data, `"chatId":"`+w.acme.chat+`"`) || !strings.Contains(rated.data, `"rating":{"score":4,"comment":"Quick.","ratedAt":"`) {
		t.Errorf("got %s, want acme's rating", rated.data)
	}
	leave()
	back, _ := agent.events("/api/events", ready.id)
	if e := w.next(back, "rated"); e.data != rated.data {
		t.Errorf("after a reconnect: got %s, want %s", e.data, rated.data)
	}
}

func TestSupportSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	owner := w.as(w.acme.users[account.Owner])
	path := "/api/applications/" + w.acme.app
	var app struct {
		Version string
		Support chat.Support
	}
	owner.done(http.StatusOK, http.MethodGet, path, "").Into(t, &app)
	version := app.Version
	owner.done(http.StatusOK, http.MethodPut, path+"/support",
		`{"hours":{"timeZone":"Europe/Berlin","week":{"monday":[{"from":"09:00","to":"17:00"}]}},"rating":true}`).Into(t, &app)
	if app.Support.Hours == nil || len(app.Support.Hours.Week["monday"]) != 1 || !app.Support.Rating || app.Support.HandoverButton || app.Version != version {
		t.Errorf("got %+v, want the settings, and the same version of the rest", app)
	}
	var problem struct{ Details []struct{ Field string } }
	owner.done(http.StatusBadRequest, http.MethodPut, path+"/support", `{"hours":{"timeZone":"Berlin","week":{"monday":[{"from":"9","to":"17:00"}]}}}`).Into(t, &problem)
	if len(problem.Details) != 2 || problem.Details[0].Field != "hours.timeZone" || problem.Details[1].Field != "hours.week.monday[0].from" {
		t.Errorf("got %+v, want both faults", problem)
	}
	owner.done(http.StatusOK, http.MethodPut, path, `{"name":"Shop","botName":"Bo"}`).Into(t, &app)
	if !app.Support.Rating {
		t.Errorf("got %+v after another change, want the settings as they were", app)
	}
}

// The counts are of the chats that wait for people: an unread chat of the bot is not one of them.
func TestCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	agent := w.as(w.acme.users[account.Agent])
	type counts struct{ Waiting, Unread, Mine, Attention int }
	count := func() (n counts) {
		agent.done(http.StatusOK, http.MethodGet, "/api/chats/counts", "").Into(t, &n)
		return n
	}
	w.visitorWrites(w.acme, "Where is my parcel?")
	if got := count(); got != (counts{}) {
		t.Errorf("the bot answers: got %+v, want nothing counted", got)
	}
	set := func(assignee string, at time.Time) {
		_, err := w.store.ChangeChat(t.Context(), w.acme.chat, store.ChatChange{Control: chat.Control{Agent: true, Assignee: assignee, ChangedAt: at}})
		w.must(err)
	}
	set("", time.Now())
	if got, want := count(), (counts{Waiting: 1, Unread: 1, Attention: 1}); got != want {
		t.Errorf("waiting: got %+v, want %+v", got, want)
	}
	set(w.acme.users[account.Agent].ID, time.Now().Add(time.Second))
	if got, want := count(), (counts{Unread: 1, Mine: 1, Attention: 1}); got != want {
		t.Errorf("assigned: got %+v, want %+v", got, want)
	}
}

// The list shows what people wrote: a notice of the platform does not hide the visitor's question.
func TestPreview(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	w.visitorWrites(w.acme, "Where is my parcel?")
	at := time.Now().UTC().Truncate(time.Millisecond).Add(time.Second)
	notice := chat.Message{
		ID: chat.NewID(), CreatedAt: at, Type: chat.Text, Data: []byte(`{"text":"You are being connected to the team.","notice":"handover"}`), IsFromSupport: true,
	}
	w.must(w.store.AppendMessage(t.Context(), w.acme.chat, notice))
	var row struct{ LastMessage, Question chat.Message }
	w.as(w.acme.users[account.Agent]).done(http.StatusOK, http.MethodGet, "/api/chats/"+w.acme.chat, "").Into(t, &row)
	for name, m := range map[string]chat.Message{"the last message": row.LastMessage, "the question": row.Question} {
		if !strings.Contains(string(m.Data), "parcel") {
			t.Errorf("%s: got %s, want the visitor's", name, m.Data)
		}
	}
}
