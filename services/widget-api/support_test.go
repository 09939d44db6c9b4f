package widgetapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/proto-events/subject"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// chatState is the response of GET /chat.
type chatState struct {
	ChatID          string
	Status          string
	Control         string
	Waiting         bool
	HandoverBy      string
	HandoverOffered bool
	RateableUntil   string
	Rating          struct {
		Score   int
		Comment string
	}
	Agents struct {
		Available bool
		OpensAt   string
	}
}

func (w *world) chatOf(a httpapitest.Response) (s chatState) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(a.Body), &s); err != nil || a.Status != http.StatusOK {
		w.t.Fatalf("got %d %s, want a chat", a.Status, a.Body)
	}
	return s
}

// served configures an application with agents. The service must not cache.
func (w *world) served(app string, s chat.Support) {
	w.t.Helper()
	w.must(w.store.ChangeApplication(w.t.Context(), app, store.ApplicationChange{Support: new(s)}))
	time.Sleep(2 * time.Millisecond) // the cache's TTL
}

func uncached(cfg *widgetapi.Config) { cfg.CacheTTL = time.Millisecond }

// away returns business hours that are never open.
func away() *chat.BusinessHours { return &chat.BusinessHours{TimeZone: "Europe/Berlin"} }

// The visitor's button hands the chat to the agents once, with one event, however often it is pressed.
func TestHandover(t *testing.T) {
	t.Parallel()
	w := start(t, uncached)
	published := bustest.Collect(t, w.engines.NATSURL, subject.AllControls)
	token := w.register(appID, `"email":"a@example.com"`)
	if got := w.post("/chat/handover", token, ""); got.Status != http.StatusConflict || got.Problem(t).Code != "HANDOVER_NOT_OFFERED" {
		t.Errorf("not offered: got %d %s, want 409", got.Status, got.Body)
	}
	w.served(appID, chat.Support{HandoverButton: true, Hours: away()})
	if s := w.chatOf(w.get("/chat", token)); !s.HandoverOffered || s.Control != "bot" || s.Status != "pending" || s.Agents.Available {
		t.Errorf("before: got %+v, want a bot's chat with an offer, and no agents", s)
	}
	done := make(chan httpapitest.Response, 4)
	for range cap(done) {
		go func() { done <- w.post("/chat/handover", token, "") }()
	}
	for range cap(done) {
		if s := w.chatOf(<-done); s.Control != "agent" || !s.Waiting || s.HandoverBy != chat.ByVisitor || s.HandoverOffered {
			t.Errorf("got %+v, want a chat that waits for the agents", s)
		}
	}
	w.chatOf(w.post("/chat/handover", token, `{"any":"body"}`))
	first := published.Await(1)[0]
	e, err := event.Decode[event.ChatControlChanged](first.Subject, first.Data)
	w.must(err)
	if e.Control != event.ControlAgent || !e.HandsOver() || e.Handover.By != chat.ByVisitor || e.CompanyID != companyID || e.AppID != appID {
		t.Errorf("got %+v, want the visitor's handover", e)
	}
	if n := w.stored(subject.Inbound, subject.AllControls); n != 1 {
		t.Errorf("got %d events in the stream, want 1", n)
	}
	w.closeChat(token)
	if got := w.post("/chat/handover", token, ""); got.Status != http.StatusNotFound {
		t.Errorf("in a closed chat: got %d %s, want 404", got.Status, got.Body)
	}
	// If only agents answer, a new chat is theirs.
	w.served(appID, chat.Support{AgentsOnly: true})
	if s := w.chatOf(w.get("/chat", w.register(appID, `"email":"b@example.com"`))); s.Control != "agent" || !s.Waiting || s.HandoverBy != "" || !s.Agents.Available {
		t.Errorf("agents only: got %+v, want a chat that waits for the agents", s)
	}
}

// An offline message is an ordinary message in a chat that waits for the agents; a repeat is the same message.
func TestOfflineMessage(t *testing.T) {
	t.Parallel()
	w := start(t, uncached)
	const left = `{"message":"My parcel is damaged.","email":"sara@example.com"}`
	published := bustest.Collect(t, w.engines.NATSURL, "chat.in.>")
	token := w.register(appID, `"userId":"1042"`)
	published.Await(1)
	if got := w.post("/chat/offline-message", token, left); got.Status != http.StatusConflict || got.Problem(t).Code != "HANDOVER_NOT_OFFERED" {
		t.Errorf("a bot's chat: got %d %s, want 409", got.Status, got.Body)
	}
	w.served(appID, chat.Support{HandoverButton: true, Hours: away()})
	header := headers{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Idempotency-Key": "k"}
	got, err := w.do(http.MethodPost, "/chat/offline-message", left, header)
	w.must(err)
	var m record
	if err := json.Unmarshal([]byte(got.Body), &m); err != nil || got.Status != http.StatusCreated || string(m.Data) != `{"text":"My parcel is damaged.","email":"sara@example.com"}` {
		t.Fatalf("got %d %s, want the message", got.Status, got.Body)
	}
	again, err := w.do(http.MethodPost, "/chat/offline-message", left, header)
	w.must(err)
	if again.Body != got.Body || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: got %s, want %s", again.Body, got.Body)
	}
	events := published.Await(2) // the handover precedes the message, so that no bot answers in between
	control, err := event.Decode[event.ChatControlChanged](events[0].Subject, events[0].Data)
	if err != nil || control.Handover.By != chat.ByOfflineForm || control.Handover.Note != "sara@example.com" || !control.HandsOver() {
		t.Errorf("got %s and %v, want an offline message's handover", events[0].Data, err)
	}
	if e, err := event.Decode[event.VisitorMessageAccepted](events[1].Subject, events[1].Data); err != nil || e.Message.ID != m.ID || len(e.Site) != 4 {
		t.Errorf("got %s and %v, want the message and the visitor's site", events[1].Data, err)
	}
	if s := w.chatOf(w.get("/chat", token)); !s.Waiting || s.HandoverBy != chat.ByOfflineForm {
		t.Errorf("got %+v, want a chat that waits for the agents", s)
	}
	if all := w.history(token); all[len(all)-1].ID != m.ID {
		t.Errorf("got %+v, want the message in the history", all)
	}
	v, err := w.store.Visitor(t.Context(), w.claims(token).ChatUserID)
	w.must(err)
	if v.Email != "sara@example.com" {
		t.Errorf("got the address %q, want that of the form", v.Email)
	}
	// A known address stays, and an agent keeps the chat.
	v, err = w.store.Visitor(t.Context(), v.ID)
	w.must(err)
	c, err := store.CurrentChat(t.Context(), w.store, v, time.Now())
	w.must(err)
	_, err = w.store.ChangeChat(t.Context(), c.ID, store.ChatChange{Control: chat.Control{Agent: true, Assignee: "ada", ChangedAt: time.Now().Add(time.Second)}})
	w.must(err)
	if got := w.post("/chat/offline-message", token, strings.Replace(left, "sara", "other", 1)); got.Status != http.StatusCreated {
		t.Errorf("another one: got %d %s, want 201", got.Status, got.Body)
	}
	if v, err = w.store.Visitor(t.Context(), v.ID); err != nil || v.Email != "sara@example.com" {
		t.Errorf("got the address %q and %v, want the first", v.Email, err)
	}
	if n := w.stored(subject.Inbound, subject.AllControls); n != 1 {
		t.Errorf("got %d handovers in the stream, want 1", n)
	}
}

// A chat that an agent has closed is rated once, and the rating can be changed for a day.
func TestRating(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := start(t, uncached, func(cfg *widgetapi.Config) { cfg.Now = func() time.Time { return now } })
	token, other := w.register(appID, `"email":"a@example.com"`), w.register(appID, `"email":"b@example.com"`)
	ratings := bustest.Collect(t, w.engines.NATSURL, subject.AllRatings)
	chatID := w.chatOf(w.get("/chat", token)).ChatID
	path := "/chat/" + chatID + "/rating"
	refused := func(what, code string, got httpapitest.Response) {
		t.Helper()
		if got.Status < 400 || got.Problem(t).Code != code {
			t.Errorf("%s: got %d %s, want %s", what, got.Status, got.Body, code)
		}
	}
	refused("not offered", "RATING_NOT_OFFERED", w.post(path, token, `{"score":5}`))
	w.served(appID, chat.Support{Rating: true})
	refused("open", "CHAT_OPEN", w.post(path, token, `{"score":5}`))
	w.closeChat(token)
	if s := w.chatOf(w.get("/chat", token)); s.Status != "closed" || s.RateableUntil == "" {
		t.Errorf("got %+v, want a chat to rate", s)
	}
	refused("another visitor's chat", "CHAT_NOT_FOUND", w.post(path, other, `{"score":5}`))
	refused("no chat", "CHAT_NOT_FOUND", w.post("/chat/"+unknownID+"/rating", token, `{"score":5}`))
	refused("no id", "CHAT_NOT_FOUND", w.post("/chat/x/rating", token, `{"score":5}`))
	for _, body := range []string{`{}`, `{"score":0}`, `{"score":6}`, `{"score":"5"}`, `{"score":1.5}`, `{"score":5,"comment":"` + strings.Repeat("é", 1001) + `"}`} {
		refused(body[:min(len(body), 20)], "VALIDATION_ERROR", w.post(path, token, body))
	}
	w.chatOf(w.post(path, token, `{"score":2,"comment":"`+strings.Repeat("é", 1000)+`"}`))
	now = now.Add(24 * time.Hour)
	if s := w.chatOf(w.post(path, token, `{"score":4,"comment":"Better."}`)); s.Rating.Score != 4 || s.Rating.Comment != "Better." {
		t.Errorf("changed: got %+v, want the second rating", s)
	}
	now = now.Add(time.Millisecond)
	refused("too late", "RATING_ENDED", w.post(path, token, `{"score":1}`))
	if s := w.chatOf(w.get("/chat", token)); s.Rating.Score != 4 || s.RateableUntil != "" {
		t.Errorf("at the end: got %+v, want the second rating", s)
	}
	for i, m := range ratings.Await(2) {
		e, err := event.Decode[event.ChatRated](m.Subject, m.Data)
		if err != nil || e.Score != []int{2, 4}[i] || e.ChatID != chatID || e.CompanyID != companyID || e.AppID != appID {
			t.Errorf("got %s %s and %v, want rating %d published", m.Subject, m.Data, err, i)
		}
	}
	if n := w.stored(subject.Inbound, subject.AllRatings); n != 2 {
		t.Errorf("got %d events of ratings, want one of each that was accepted", n)
	}
}

// stored counts the events of a kind in a stream.
func (w *world) stored(stream, filter string) (n uint64) {
	w.t.Helper()
	nc, err := nats.Connect(w.engines.NATSURL)
	w.must(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	w.must(err)
	s, err := js.Stream(w.t.Context(), stream)
	w.must(err)
	info, err := s.Info(w.t.Context(), jetstream.WithSubjectFilter("*."+filter)) // the partition is the first token
	w.must(err)
	for _, count := range info.State.Subjects {
		n += count
	}
	return n
}

const offline = `{"message":"My parcel is damaged.","email":"sara@example.com"}`

// showAgents gets the documented answers about agents that depend on the chat's state: for a visitor with an open
// chat and one with a closed chat.
func (w *world) showAgents(token, closed string) {
	w.t.Helper()
	fresh := w.register(appID, `"email":"fresh@example.com"`)
	v := w.claims(fresh).ChatUserID
	_, err := w.store.EraseVisitor(w.t.Context(), v)
	w.must(err)
	_, err = w.store.Register(w.t.Context(), store.Registration{Visitor: chat.Visitor{ID: v, CompanyID: companyID, AppID: appID}}) // without a chat
	w.must(err)
	timetest.Until(w.t, "a visitor without a chat", func() bool { return w.get("/chat", fresh).Status == http.StatusNotFound })
	w.post("/chat/handover", closed, "")
	history := "/chats/" + w.chatOf(w.get("/chat", closed)).ChatID + "/messages"
	w.get(history, closed)
	w.get(history+"?limit=0", closed)
	rating := "/chat/" + w.chatOf(w.get("/chat", closed)).ChatID + "/rating"
	w.post(rating, closed, `{"score":5}`) // not offered
	w.served(appID, chat.Support{HandoverButton: true, Rating: true})
	timetest.Until(w.t, "a rating", func() bool { return w.post(rating, closed, `{"score":5}`).Status == http.StatusOK })
	w.post("/chat/handover", token, "")
	w.post("/chat/offline-message", token, offline)
}
