package widgetapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/httpapitest"
)

// keyed writes as a visitor with an Idempotency-Key.
func (w *world) keyed(key, token, body string) httpapitest.Response {
	w.t.Helper()
	return w.keyedTo("/message", key, token, body)
}

func (w *world) keyedTo(path, key, token, body string) httpapitest.Response {
	w.t.Helper()
	a, err := w.do(http.MethodPost, path, body, headers{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Idempotency-Key": key, "Origin": "https://shop.example.com",
	})
	w.must(err)
	return a
}

// claimed leaves the claim of a process that is still handling the request or has died.
func (w *world) claimed(operation, key, token, fingerprint string, at time.Time) (messageID string) {
	w.t.Helper()
	id, err := uuid.NewV7()
	w.must(err)
	_, _, err = w.store.InsertIdempotencyRecord(w.t.Context(), idempotency.Record{
		ID:          idempotency.Fingerprint(operation+"|"+w.claims(token).ChatUserID, key),
		Fingerprint: fingerprint, MessageID: id.String(),
		At: at, LeasedUntil: at.Add(idempotency.Lease), ExpiresAt: at.Add(idempotency.KeyTTL),
	})
	w.must(err)
	return id.String()
}

func TestARetryGetsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	w := start(t)
	token, other := w.register(bareApp, `"email":"a@example.com"`), w.register(bareApp, `"email":"b@example.com"`)
	published := bustest.Collect(t, w.engines.NATSURL, "chat.in.visitor.message.>")
	first := w.keyed(`"k"`, token, hello)
	var m record
	if err := json.Unmarshal([]byte(first.Body), &m); err != nil || first.Status != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", first.Status, first.Body)
	}
	if id := published.Next().Header.Get("Nats-Msg-Id"); id != m.ID {
		t.Errorf("got the event %s, want %s", id, m.ID)
	}
	for _, again := range []httpapitest.Response{w.keyed(`"k"`, token, hello), w.keyed("k", token, ` { "data" : {"text":"h\u0069"}, "type":"TEXT","more":1}`)} {
		if again.Status != http.StatusCreated || again.Body != first.Body || again.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("got %d %s, want %s, replayed", again.Status, again.Body, first.Body)
		}
		if exposed := again.Header.Get("Access-Control-Expose-Headers"); !strings.Contains(exposed, "Idempotency-Replayed") {
			t.Errorf("got %q exposed to pages, want Idempotency-Replayed among it", exposed)
		}
	}
	if a := w.keyed("k", token, strings.Replace(hello, "hi", "ho", 1)); a.Status != http.StatusUnprocessableEntity || a.Problem(t).Code != "IDEMPOTENCY_KEY_REUSED" {
		t.Errorf("got %d %s for another body, want 422", a.Status, a.Body)
	}
	if a := w.keyed("a,b", token, hello); a.Status != http.StatusBadRequest || a.Problem(t).Code != "IDEMPOTENCY_KEY_INVALID" {
		t.Errorf("got %d %s for a malformed key, want 400", a.Status, a.Body)
	}
	if a := w.keyed("k", other, hello); a.Status != http.StatusCreated || a.Header.Get("Idempotency-Replayed") != "" {
		t.Errorf("got %d %s for another visitor's key, want a message of their own", a.Status, a.Body)
	}
	if id := published.Next().Header.Get("Nats-Msg-Id"); id == m.ID {
		t.Error("got the first message again")
	}
	if n := len(w.history(token)); n != 1 {
		t.Errorf("got %d messages in the history, want 1", n)
	}
}

func TestFiftyAtOnceAreOneMessage(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(bareApp, `"email":"a@example.com"`)
	other := *w
	other.run()
	replicas := []*world{w, &other}
	answers := make([]string, 50)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() {
			for range 1000 {
				a, err := replicas[i%2].do(http.MethodPost, "/message", hello, headers{
					"Authorization": "Bearer " + token, "Content-Type": "application/json", "Idempotency-Key": "k"})
				if err == nil && a.Status == http.StatusConflict {
					continue
				}
				if err != nil || a.Status != http.StatusCreated {
					t.Errorf("got %d %s %v, want 201 or 409", a.Status, a.Body, err)
				}
				answers[i] = a.Body
				return
			}
		})
	}
	group.Wait()
	for _, a := range answers {
		if a != answers[0] || a == "" {
			t.Errorf("got %q and %q, want one answer", a, answers[0])
		}
	}
	if n := len(w.history(token)); n != 1 {
		t.Errorf("got %d messages in the history, want 1", n)
	}
}

// A process died after publishing the message, and the chat was closed since: the message stays in its chat. Its event
// may have been lost, so it is published again.
func TestARetryStaysInTheChatOfTheFirstAttempt(t *testing.T) {
	t.Parallel()
	const email = "sara@example.com"
	const offline = `{"message":"hi","email":"` + email + `"}`
	for _, c := range []struct{ path, body, fingerprint string }{
		{"/message", hello, idempotency.Fingerprint("TEXT", `{"text":"hi"}`)},
		{"/chat/offline-message", offline, idempotency.Fingerprint("hi", email)},
	} {
		w := start(t)
		w.served(bareApp, chat.Support{HandoverButton: true})
		token := w.register(bareApp, `"email":"a@example.com"`)
		began := time.Now().Add(-time.Hour).UTC().Truncate(time.Millisecond)
		id := w.claimed("POST "+c.path, "k", token, c.fingerprint, began)
		v, err := w.store.Visitor(t.Context(), w.claims(token).ChatUserID)
		w.must(err)
		current, err := store.CurrentChat(t.Context(), w.store, v, time.Now())
		w.must(err)
		first := chat.Message{ID: id, CreatedAt: began, Type: chat.Text, Data: json.RawMessage(`{"text":"hi"}`)}
		w.must(w.store.AppendMessage(t.Context(), current.ID, first))
		w.closeChat(token)
		published := bustest.Collect(t, w.engines.NATSURL, "chat.in.>")
		var m record
		got := w.keyedTo(c.path, "k", token, c.body)
		if err := json.Unmarshal([]byte(got.Body), &m); err != nil || got.Status != http.StatusCreated || m.ID != id || !m.CreatedAt.Equal(began) {
			t.Errorf("%s: got %d %s, want 201 and the message %s of %s", c.path, got.Status, got.Body, id, began)
		}
		if a := w.get("/message", token); a.Status != http.StatusNotFound {
			t.Errorf("%s: got %d %s from GET /message, want 404: the retry opens no chat", c.path, a.Status, a.Body)
		}
		var again struct{ ChatID string }
		next := published.Next()
		if err := json.Unmarshal(next.Data, &again); err != nil || next.Header.Get("Nats-Msg-Id") != id || again.ChatID != current.ID {
			t.Errorf("%s: got the event %s in chat %s, want the message again in its chat", c.path, next.Subject, again.ChatID)
		}
	}
}
