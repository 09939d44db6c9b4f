package clientapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
	clientapi "github.com/parley-chat/parley/services/client-api"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/timetest"
)

func (w *world) expire(secret string) {
	w.t.Helper()
	hash, _ := credential.HashAccessToken(secret)
	w.must(w.store.ChangeAccessToken(w.t.Context(), hash, store.TokenChange{ExpiresAt: time.Now().Add(-time.Second)}))
}

func (w *world) revoke(secret string) {
	w.t.Helper()
	hash, _ := credential.HashAccessToken(secret)
	w.must(w.store.ChangeAccessToken(w.t.Context(), hash, store.TokenChange{RevokedAt: time.Now()}))
}

type success struct {
	Message         string    `json:"message"`
	MessageID       string    `json:"messageId"`
	WindowExpiresAt time.Time `json:"windowExpiresAt"`
}

// succeeded checks the status and returns the body.
func succeeded(t *testing.T, a httpapitest.Response) (s success) {
	t.Helper()
	if a.Status != http.StatusOK {
		t.Fatalf("got %d %s, want 200", a.Status, a.Body)
	}
	a.Into(t, &s)
	return s
}

func TestSendPublishesTheMessageAsItWasSent(t *testing.T) {
	t.Parallel()
	w := start(t)
	heard := bustest.Collect(t, w.engines.NATSURL, "chat.in.>")
	const data = `{ "text":"h\u00e9 \"you\"", "n":1.50, "big":12345678901234567890, "later":{"b":1,"a":[null]} }`
	got := succeeded(t, w.post("/message/send", sendBody("TEXT", data, strings.ToUpper(w.chatID))))
	if got.Message != "Message sent successfully" {
		t.Errorf("got the message %q, want the specification's", got.Message)
	}
	if id, err := uuid.Parse(got.MessageID); err != nil || id.Version() != 7 {
		t.Errorf("got the id %q, want a UUIDv7", got.MessageID)
	}

	m := heard.Next()
	if want := "chat.in.message." + companyID + "." + w.chatID; m.Subject != want {
		t.Errorf("got the subject %s, want %s", m.Subject, want)
	}
	if id := m.Header.Get("Nats-Msg-Id"); id != got.MessageID || m.Header.Get("ce-id") != got.MessageID {
		t.Errorf("got the event id %s, want %s", id, got.MessageID)
	}
	if kind := m.Header.Get("ce-type"); kind != "parley.events.v1.CompanyMessageAccepted" {
		t.Errorf("got the type %s, want CompanyMessageAccepted", kind)
	}
	if !strings.Contains(string(m.Data), `"data":`+data) {
		t.Errorf("got %s, want it to hold the data byte for byte", m.Data)
	}
	var e struct {
		CompanyID, ChatID string
		Message           struct {
			ID, Type, NameOfSender string
			IsFromSupport          bool
			CreatedAt              time.Time
		}
	}
	w.must(json.Unmarshal(m.Data, &e))
	if e.CompanyID != companyID || e.ChatID != w.chatID || e.Message.ID != got.MessageID || e.Message.Type != "TEXT" ||
		e.Message.NameOfSender != "Bo" || !e.Message.IsFromSupport || time.Since(e.Message.CreatedAt) > timetest.Limit {
		t.Errorf("got the event %+v, want that of the request", e)
	}
}

func TestPushPublishesTheOrder(t *testing.T) {
	t.Parallel()
	w := start(t)
	heard := bustest.Collect(t, w.engines.NATSURL, "chat.in.>")
	for _, test := range []struct{ body, want string }{
		{`{"templateId":"` + templateID + `","source":"+98 (912) 123-45-67","username":"Zoë"}`, `"source":"+98 (912) 123-45-67","username":"Zoë"}`},
		{`{"templateId":"` + strings.ToUpper(templateID) + `","source":"98912123456","username":null}`, `"source":"98912123456"}`},
	} {
		got := succeeded(t, w.post("/push-message", test.body))
		m := heard.Next()
		if want := "chat.in.push." + companyID + "." + templateID; m.Subject != want {
			t.Errorf("got the subject %s, want %s", m.Subject, want)
		}
		if got.Message != "Message sent successfully" || m.Header.Get("Nats-Msg-Id") != got.MessageID {
			t.Errorf("got %+v and the event %s", got, m.Header.Get("Nats-Msg-Id"))
		}
		if !strings.HasSuffix(string(m.Data), test.want) {
			t.Errorf("got %s, want it to end with %s", m.Data, test.want)
		}
	}
}

func TestPushPublishesItsParameters(t *testing.T) {
	t.Parallel()
	w := start(t)
	heard := bustest.Collect(t, w.engines.NATSURL, "chat.in.>")
	succeeded(t, w.post("/push-message", `{"templateId":"`+orderTemplate+`","source":"989121234567","parameters":{"order":"<4711> \"å\"","day":null}}`))
	var e struct{ Parameters map[string]string }
	w.must(json.Unmarshal(heard.Next().Data, &e))
	if len(e.Parameters) != 1 || e.Parameters["order"] != `<4711> "å"` {
		t.Errorf("got the parameters %q, want only the one that was set", e.Parameters)
	}
}

// A dry run gets the response of a real request and publishes nothing.
func TestDryRunPublishesNothing(t *testing.T) {
	t.Parallel()
	w := start(t)
	heard := bustest.Collect(t, w.engines.NATSURL, "chat.in.>")
	sendText, pushIt := sendBody("TEXT", `{"text":"hi"}`, w.chatID), `{"templateId":"`+templateID+`","source":"989121234567","parameters":{"order":"1"}}`
	sent := succeeded(t, w.post("/message/send?dryRun=false", sendText))
	heard.Next()
	c, err := w.store.Chat(t.Context(), w.chatID)
	w.must(err)
	window := string(chat.AppendTime(nil, c.WindowExpiresAt()))
	for _, test := range []struct{ path, body, want string }{
		{"/message/send?dryRun=true", sendText, `{"message":"Message would be sent","dryRun":true,"windowExpiresAt":"` + window + `"}`},
		{"/push-message?dryRun=true", pushIt, `{"message":"Message would be sent","dryRun":true}`},
	} {
		if got := w.post(test.path, test.body); got.Status != http.StatusOK || got.Body != test.want {
			t.Errorf("%s: got %d %s, want 200 %s", test.path, got.Status, got.Body, test.want)
		}
	}
	// The next event is that of the next real request.
	if id := succeeded(t, w.post("/push-message", pushIt)).MessageID; heard.Next().Header.Get("ce-id") != id || sent.MessageID == id {
		t.Error("got an event of a dry run")
	}
}

// Without a connector a message to a phone number would wait until it expires, so it is refused. The company whose
// messages the process shows itself has one.
func TestPhonesNeedAConnector(t *testing.T) {
	t.Parallel()
	w := start(t, func(c *clientapi.Config) { c.PhoneConnector = false; c.DemoPhone = otherCompanyID })
	heard := bustest.Collect(t, w.engines.NATSURL, "chat.in.>")
	r, err := w.store.Register(t.Context(), store.PushRecipient(companyID, "+989121234567", "", time.Now()))
	w.must(err)
	push := `{"templateId":"` + templateID + `","source":"989121234567"}`
	for path, body := range map[string]string{
		"/push-message": push, "/push-message?dryRun=true": push,
		"/message/send": sendBody("TEXT", `{"text":"hi"}`, r.Chat.ID),
	} {
		if got := w.post(path, body); got.Status != http.StatusConflict || !strings.Contains(got.Body, "CHANNEL_NOT_CONNECTED") {
			t.Errorf("%s: got %d %s, want 409", path, got.Status, got.Body)
		}
	}
	if n := heard.Pending(); n > 0 {
		t.Errorf("got %d events", n)
	}
	foreign := uuid.NewString()
	w.must(w.store.PutTemplate(t.Context(), chat.MessageTemplate{
		ID: foreign, CompanyID: otherCompanyID, Status: chat.TemplateApproved, Text: "Hello",
	}))
	succeeded(t, w.postAs(w.other, "/push-message", `{"templateId":"`+foreign+`","source":"989121234567"}`))
}

func TestWindowAtItsEdge(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := timetest.NewClock(began)
	w := start(t, func(cfg *clientapi.Config) { cfg.Now = c.Now })
	_, chatID := w.openChat("edge@example.com", began)
	send := func() httpapitest.Response { return w.post("/message/send", sendBody("TEXT", `{"text":"hi"}`, chatID)) }

	c.Set(began.Add(24 * time.Hour))
	if got := succeeded(t, send()); !got.WindowExpiresAt.Equal(began.Add(24 * time.Hour)) {
		t.Errorf("got windowExpiresAt %s, want %s", got.WindowExpiresAt, began.Add(24*time.Hour))
	}
	c.Set(began.Add(24*time.Hour + time.Millisecond))
	if got := send(); got.Status != http.StatusBadRequest || got.Problem(t).Code != "CHAT_TOO_OLD" {
		t.Errorf("got %d %s a millisecond after the window, want CHAT_TOO_OLD", got.Status, got.Body)
	}
}

// A cached chat may accept a message but never refuse it: the visitor may have written a moment ago.
func TestStaleCacheDoesNotRefuse(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := timetest.NewClock(began)
	w := start(t, func(cfg *clientapi.Config) { cfg.Now, cfg.CacheTTL = c.Now, time.Hour })
	_, chatID := w.openChat("edge@example.com", began)
	send := func() httpapitest.Response { return w.post("/message/send", sendBody("TEXT", `{"text":"hi"}`, chatID)) }
	succeeded(t, send()) // cached from here on

	c.Set(began.Add(30 * time.Hour))
	wrote := began.Add(29 * time.Hour)
	w.must(w.store.AppendMessage(t.Context(), chatID, chat.Message{
		ID: uuid.NewString(), CreatedAt: wrote, Type: chat.Text, Data: []byte(`{"text":"still there?"}`),
	}))
	if got := succeeded(t, send()); !got.WindowExpiresAt.Equal(wrote.Add(24 * time.Hour)) {
		t.Errorf("got windowExpiresAt %s, want 24 hours after the visitor wrote", got.WindowExpiresAt)
	}
}

// A revocation takes effect when it is announced, regardless of the cache's TTL.
func TestRevocationIsAnnounced(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *clientapi.Config) { cfg.CacheTTL = time.Hour })
	succeeded(t, w.send(`{"text":"hi"}`))
	w.revoke(w.token)
	succeeded(t, w.send(`{"text":"hi"}`)) // still cached: the hour has not passed

	hash, _ := credential.HashAccessToken(w.token)
	w.must(w.openBus().RPC().Invalidate(t.Context(), store.CachedAccessToken, hash))
	timetest.Until(t, "401 after the revocation", func() bool { return w.send(`{"text":"hi"}`).Status == http.StatusUnauthorized })
}
