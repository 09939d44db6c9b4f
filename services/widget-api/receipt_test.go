package widgetapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// fromCompany records a company's message that waits for receipts in the visitor's chat, as the recorder does.
func (w *world) fromCompany(token string, ago time.Duration) (chatID string, m chat.Message) {
	w.t.Helper()
	v, err := w.store.Visitor(w.t.Context(), w.claims(token).ChatUserID)
	w.must(err)
	c, err := store.CurrentChat(w.t.Context(), w.store, v, time.Now())
	w.must(err)
	m = chat.Message{
		ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: time.Now().Add(-ago).UTC().Truncate(time.Millisecond), Type: chat.Text,
		Data: json.RawMessage(`{"text":"hi"}`), IsFromSupport: true,
	}
	w.must(w.store.AppendMessage(w.t.Context(), c.ID, m))
	_, err = w.store.AwaitReceipts(w.t.Context(), c.ID, m, false)
	w.must(err)
	return c.ID, m
}

// reports returns the reports in the next n events, sorted.
func reports(t *testing.T, published *bustest.Collector, chatID string, n int) (all []string) {
	t.Helper()
	for _, m := range published.Await(n) {
		e, err := event.Decode[event.MessageStatusChanged](m.Subject, m.Data)
		if err != nil || e.CompanyID != companyID || e.ChatID != chatID || time.Since(e.At) > timetest.Limit {
			t.Fatalf("got %s %s and %v, want a report in the visitor's chat", m.Subject, m.Data, err)
		}
		all = append(all, e.MessageID+" "+e.Status)
	}
	slices.Sort(all)
	return all
}

// An offline visitor receives a message with the history, and marks everything up to it as read with one call.
func TestReceipts(t *testing.T) {
	t.Parallel()
	w := start(t)
	published := bustest.Collect(t, w.engines.NATSURL, subject.AllStatuses)
	token := w.register(appID, `"email":"a@example.com"`)
	_, first := w.fromCompany(token, 2*time.Minute)
	chatID, second := w.fromCompany(token, time.Minute)
	w.history(token)
	if got := reports(t, published, chatID, 2); !slices.Equal(got, sorted(first.ID+" delivered", second.ID+" delivered")) {
		t.Errorf("got %v, want both delivered", got)
	}
	if got := w.post("/message/"+strings.ToUpper(first.ID)+"/read", token, ""); got.Status != http.StatusNoContent || got.Body != "" {
		t.Errorf("got %d %s, want 204", got.Status, got.Body)
	}
	if got := reports(t, published, chatID, 1); !slices.Equal(got, []string{first.ID + " read"}) {
		t.Errorf("got %v, want the first read", got)
	}
	w.must(w.store.NoteReceipt(t.Context(), chatID, first.ID, true)) // the recorder has processed the report
	w.post("/message/"+second.ID+"/read", token, "")
	if got := reports(t, published, chatID, 1); !slices.Equal(got, []string{second.ID + " read"}) {
		t.Errorf("got %v, want the second read", got)
	}
	if n := published.Pending(); n != 0 {
		t.Errorf("got %d more reports, want none", n)
	}
}

func sorted(all ...string) []string {
	slices.Sort(all)
	return all
}

func TestReadOfUnknownMessage(t *testing.T) {
	t.Parallel()
	w := start(t)
	token, other := w.register(appID, `"email":"a@example.com"`), w.register(appID, `"email":"b@example.com"`)
	_, m := w.fromCompany(other, 0)
	published := bustest.Collect(t, w.engines.NATSURL, subject.AllStatuses)
	for _, id := range []string{m.ID, uuid.NewString(), "x", strings.Repeat("x", 300)} {
		if got := w.post("/message/"+id+"/read", token, ""); got.Status != http.StatusNotFound || got.Problem(t).Code != "MESSAGE_NOT_FOUND" {
			t.Errorf("%s: got %d %s, want 404 MESSAGE_NOT_FOUND", id, got.Status, got.Body)
		}
	}
	w.closeChat(token)
	if got := w.post("/message/"+m.ID+"/read", token, ""); got.Status != http.StatusNotFound || got.Problem(t).Code != "CHAT_NOT_FOUND" {
		t.Errorf("without a chat: got %d %s, want 404 CHAT_NOT_FOUND", got.Status, got.Body)
	}
	if n := published.Pending(); n != 0 {
		t.Errorf("got %d reports, want none", n)
	}
}
