package clientapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
)

func (w *world) status(id string) map[string]string {
	w.t.Helper()
	got := w.getAs(w.token, "/message/"+id)
	var s map[string]string
	if err := json.Unmarshal([]byte(got.Body), &s); err != nil || got.Status != http.StatusOK || got.Header.Get("Cache-Control") != "no-store" {
		w.t.Fatalf("GET /message/%s: got %d %s, want 200 and a status", id, got.Status, got.Body)
	}
	return s
}

// The status of a message is available as soon as it is accepted, before it is stored.
func TestStatusRightAfterTheAnswer(t *testing.T) {
	t.Parallel()
	w := start(t)
	for range 20 {
		id := succeeded(t, w.send(`{"text":"hi"}`)).MessageID
		s := w.status(strings.ToUpper(id))
		if s["messageId"] != id || s["status"] != "accepted" || s["chatId"] != w.chatID || s["acceptedAt"] == "" || len(s) != 4 {
			t.Fatalf("got %v, want %s accepted", s, id)
		}
	}
	id := succeeded(t, w.post("/push-message", `{"templateId":"`+templateID+`","source":"989121234567"}`)).MessageID
	if s := w.status(id); s["status"] != "accepted" || len(s) != 3 {
		t.Errorf("got %v, want the push accepted, in no chat yet", s)
	}
}

func TestStatusWithItsTimes(t *testing.T) {
	t.Parallel()
	w := start(t)
	id, at := uuid.Must(uuid.NewV7()).String(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		more   chat.MessageStatus
		status string
		added  map[string]string
	}{
		{chat.MessageStatus{ChatID: w.chatID, AcceptedAt: at, StoredAt: at.Add(time.Millisecond)}, "stored",
			map[string]string{"messageId": id, "chatId": w.chatID, "acceptedAt": "2026-03-01T12:00:00.000Z", "storedAt": "2026-03-01T12:00:00.001Z"}},
		{chat.MessageStatus{Failure: chat.Failure{At: at.Add(2 * time.Millisecond), Reason: `"no" å`}}, "failed",
			map[string]string{"failedAt": "2026-03-01T12:00:00.002Z", "reason": `"no" å`}},
		{chat.MessageStatus{ReadAt: at.Add(4 * time.Millisecond)}, "read",
			map[string]string{"deliveredAt": "2026-03-01T12:00:00.004Z", "readAt": "2026-03-01T12:00:00.004Z"}},
		{chat.MessageStatus{DeliveredAt: at.Add(3 * time.Millisecond)}, "read", map[string]string{"deliveredAt": "2026-03-01T12:00:00.003Z"}},
	} {
		_, err := w.store.JoinMessageStatus(t.Context(), companyID, id, step.more)
		w.must(err)
		got := w.status(id)
		if got["status"] != step.status {
			t.Errorf("got %v, want %s", got, step.status)
		}
		for name, want := range step.added {
			if got[name] != want {
				t.Errorf("%s: got %s %q, want %q", step.status, name, got[name], want)
			}
		}
	}
}

func TestStatusOfUnknownMessage(t *testing.T) {
	t.Parallel()
	w := start(t)
	accepted := succeeded(t, w.send(`{"text":"hi"}`)).MessageID
	stored, reported := uuid.Must(uuid.NewV7()).String(), uuid.Must(uuid.NewV7()).String()
	_, err := w.store.JoinMessageStatus(t.Context(), companyID, stored, chat.MessageStatus{AcceptedAt: time.Now()})
	w.must(err)
	_, err = w.store.JoinMessageStatus(t.Context(), companyID, reported, chat.MessageStatus{ReadAt: time.Now()})
	w.must(err)
	for why, ask := range map[string]struct{ token, id string }{
		"another company's, accepted":  {w.other, accepted},
		"another company's, stored":    {w.other, stored},
		"reported, but never accepted": {w.token, reported},
		"unknown":                      {w.token, uuid.Must(uuid.NewV7()).String()},
		"no UUIDv7":                    {w.token, uuid.NewString()},
		"no UUID":                      {w.token, "send"},
	} {
		got := w.getAs(ask.token, "/message/"+ask.id)
		if ask.id == "send" {
			if got.Status != http.StatusMethodNotAllowed {
				t.Errorf("%s: got %d %s, want 405", why, got.Status, got.Body)
			}
			continue
		}
		if got.Status != http.StatusNotFound || got.Problem(t).Code != "MESSAGE_NOT_FOUND" || got.Problem(t).Message != "Message not found" {
			t.Errorf("%s: got %d %s, want 404 MESSAGE_NOT_FOUND", why, got.Status, got.Body)
		}
	}
	if got := w.getAs(w.token, "/message/x"); got.Status != http.StatusNotFound {
		t.Errorf("no UUID: got %d %s, want 404", got.Status, got.Body)
	}
}
