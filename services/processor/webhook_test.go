package processor_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/processor"
	"github.com/parley-chat/parley/testkit/timetest"
)

const webhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// signed verifies a Standard Webhook as its receiver would.
func signed(r *http.Request, body []byte) bool {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(webhookSecret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	io.WriteString(mac, r.Header.Get("webhook-id")+"."+r.Header.Get("webhook-timestamp")+"."+string(body))
	return r.Header.Get("webhook-signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// A failed call is repeated with the same webhook-id; the answer reaches the visitor and the history. A
// permanent error is not retried, and the message is a dead letter with the reason.
func TestWebhookBot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var calls atomic.Int32
	ids := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case !signed(r, body):
			rw.WriteHeader(http.StatusUnauthorized)
			return
		case strings.Contains(string(body), "refuse"):
			rw.WriteHeader(http.StatusForbidden)
			return
		}
		ids <- r.Header.Get("webhook-id")
		if calls.Add(1) == 1 {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		io.WriteString(rw, `{"messages":[{"type":"TEXT","data":{"text":"one"}},{"type":"MULTIPLE_CHOICE","data":{"text":"two","choices":[{"title":"a","payload":"b"}]}}]}`)
	}))
	t.Cleanup(server.Close)
	cfg := w.config()
	cfg.Bot, cfg.BotWebhookURL, cfg.BotWebhookSecret = processor.BotWebhook, server.URL, webhookSecret
	w.run(cfg)
	replies, kept, asked := w.collect(subject.AllReplies), w.acked(subject.Replies, "recorder"), w.acked(subject.Inbound, "recorder")
	dead := w.collect(subject.AllDead)

	question := w.wrote(chat.Text, `{"text":"hello"}`)
	w.publish(question)
	one, two := decode[event.Reply](t, replies.Next()), decode[event.Reply](t, replies.Next())
	for range 2 {
		if id := <-ids; id != question.Message.ID {
			t.Errorf("got webhook-id %s, want the message's, %s", id, question.Message.ID)
		}
	}
	if string(one.Message.Data) != inMarkdown("one") || two.Message.Type != chat.MultipleChoice || one.Message.NameOfSender != "Nora" {
		t.Errorf("got %s and %s, want the webhook's messages from Nora", one.Message.Data, two.Message.Data)
	}
	asked.Next()
	kept.Await(2)
	sameMessages(t, w.history(w.chat.ID), question.Message, one.Message, two.Message)

	refused := w.wrote(chat.Text, `{"text":"refuse this"}`)
	w.publish(refused)
	m := dead.Next()
	if m.Subject != "chat.dead.INBOUND.bot" || string(m.Data) != string(refused.AppendJSON(nil)) || !strings.Contains(m.Header.Get("Parley-Dead-Reason"), "403") {
		t.Errorf("got %s because of %q, want it in the bot's dead letters because of 403", m.Subject, m.Header.Get("Parley-Dead-Reason"))
	}
}

// hangingBot echoes a text, but hangs on texts that request it until the test ends; calls counts the calls
// for each text.
func hangingBot(t *testing.T) (url string, calls func(text string) int) {
	t.Helper()
	var mu sync.Mutex
	counts, ended := make(map[string]int), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var e event.VisitorMessageAccepted
		var data struct{ Text string }
		body, _ := io.ReadAll(r.Body)
		if json.Unmarshal(body, &e) != nil || json.Unmarshal(e.Message.Data, &data) != nil {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		mu.Lock()
		counts[data.Text]++
		mu.Unlock()
		switch data.Text {
		case "hang":
			<-ended
		case "fail":
			rw.WriteHeader(http.StatusInternalServerError)
		}
		answer, _ := json.Marshal(map[string]any{"messages": []any{map[string]any{"type": "TEXT", "data": map[string]any{"text": data.Text}}}})
		rw.Write(answer)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	return server.URL, func(text string) int {
		mu.Lock()
		defer mu.Unlock()
		return counts[text]
	}
}

// A message whose call hangs, or fails too often, is a dead letter with the reason. Its visitor reads the
// failure text once, and then the answers to later messages, in order.
func TestAnUnansweredMessageIsAbandoned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, calls := hangingBot(t)
	cfg := w.config()
	cfg.BotConfig = processor.BotConfig{
		Bot: processor.BotWebhook, BotWebhookURL: url, BotWebhookSecret: webhookSecret,
		BotWebhookDeadline: 2 * time.Second, BotWebhookAttempts: 2, BotFailureText: "Sorry.",
	}
	w.run(cfg)
	replies, dead := w.collect(subject.AllReplies), w.collect(subject.AllDead)
	for _, text := range []string{"hang", "one", "fail", "two"} {
		w.publish(w.wrote(chat.Text, `{"text":"`+text+`"}`))
	}
	for _, want := range []string{"Sorry.", "one", "Sorry.", "two"} {
		reply := decode[event.Reply](t, replies.Next())
		if chat.TextOf(reply.Message.Data) != want || reply.Message.NameOfSender != "Nora" {
			t.Errorf("got %s from %s, want %s from Nora", reply.Message.Data, reply.Message.NameOfSender, want)
		}
	}
	for _, want := range []string{"has not answered within 2s", "The webhook answered 500"} {
		if got := dead.Next().Header.Get(bus.HeaderDeadReason); !strings.Contains(got, want) {
			t.Errorf("got the reason %q, want %q in it", got, want)
		}
	}
	if calls("hang") != 1 || calls("fail") != 2 {
		t.Errorf("got %d calls that hang and %d that fail, want 1 and 2", calls("hang"), calls("fail"))
	}
}

// Chats whose calls hang take no more than the share of their application: another application is answered at
// once, and the calls at once stay within their bound.
func TestHangingChatsDelayNoOtherApplication(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, calls := hangingBot(t)
	cfg := w.config()
	cfg.BotConfig = processor.BotConfig{
		Bot: processor.BotWebhook, BotWebhookURL: url, BotWebhookSecret: webhookSecret,
		BotWebhookDeadline: time.Hour, BotConcurrency: 8,
	}
	w.run(cfg)
	replies := w.collect(subject.AllReplies)
	w.hang(40)
	timetest.Until(t, "two calls hang", func() bool { return calls("hang") == 2 })
	other := w.application
	other.ID = uuid.NewString()
	w.must(w.store.PutApplication(t.Context(), other))
	visitor, c := w.open(chat.Visitor{AppID: other.ID}, chat.ChannelWidget)
	for _, text := range []string{"one", "two", "three"} {
		e := w.wrote(chat.Text, `{"text":"`+text+`"}`)
		e.AppID, e.ChatUserID, e.ChatID = other.ID, visitor.ID, c.ID
		w.publish(e)
		if reply := decode[event.Reply](t, replies.Next()); string(reply.Message.Data) != inMarkdown(text) {
			t.Errorf("got %s, want %s", reply.Message.Data, text)
		}
	}
	if calls("hang") != 2 {
		t.Errorf("got %d calls that hang, want a quarter of BOT_CONCURRENCY", calls("hang"))
	}
}

// Within an application a call that hangs ends after the timeout, and other chats are answered.
func TestHangingChatsDelayOthersUntilTheTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, _ := hangingBot(t)
	cfg := w.config()
	cfg.BotConfig = processor.BotConfig{
		Bot: processor.BotWebhook, BotWebhookURL: url, BotWebhookSecret: webhookSecret,
		BotWebhookTimeout: time.Second, BotWebhookDeadline: time.Hour, BotWebhookAttempts: 3, BotConcurrency: 2,
	}
	w.run(cfg)
	replies := w.collect(subject.AllReplies)
	w.hang(2) // their failures do not open the breaker
	for _, text := range []string{"one", "two", "three"} {
		w.publish(w.wrote(chat.Text, `{"text":"`+text+`"}`))
		if reply := decode[event.Reply](t, replies.Next()); string(reply.Message.Data) != inMarkdown(text) {
			t.Errorf("got %s, want %s", reply.Message.Data, text)
		}
	}
}

// hang publishes messages of n visitors whose calls hang.
func (w *world) hang(n int) {
	w.t.Helper()
	for range n {
		visitor, c := w.open(chat.Visitor{AppID: w.application.ID}, chat.ChannelWidget)
		e := w.wrote(chat.Text, `{"text":"hang"}`)
		e.ChatUserID, e.ChatID = visitor.ID, c.ID
		w.publish(e)
	}
}

// An operator skips a message that is being retried: it becomes a dead letter, and the visitor's later
// messages are answered.
func TestAnOperatorSkipsAMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, calls := hangingBot(t)
	cfg := w.config()
	cfg.BotConfig = processor.BotConfig{
		Bot: processor.BotWebhook, BotWebhookURL: url, BotWebhookSecret: webhookSecret,
		BotWebhookTimeout: time.Second, BotWebhookDeadline: time.Hour,
	}
	w.run(cfg)
	replies, dead := w.collect(subject.AllReplies), w.collect(subject.AllDead)
	w.publish(w.wrote(chat.Text, `{"text":"hang"}`))
	w.publish(w.wrote(chat.Text, `{"text":"next"}`))
	timetest.Until(t, "a call of the bot", func() bool { return calls("hang") > 0 })
	if _, err := w.bus.Skip(t.Context(), subject.Inbound, "bot", 1); err != nil {
		t.Fatal(err)
	}
	if reply := decode[event.Reply](t, replies.Next()); string(reply.Message.Data) != inMarkdown("next") {
		t.Errorf("got %s, want the answer to the next message", reply.Message.Data)
	}
	if got := dead.Next().Header.Get(bus.HeaderDeadReason); !strings.Contains(got, "Skipped by an operator") {
		t.Errorf("got the reason %q, want that it was skipped", got)
	}
	if _, err := w.bus.Skip(t.Context(), subject.Inbound, "bot", 3); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("skipping an unknown message: got %v, want not found", err)
	}
}

// inMarkdown is the data of a reply with a text of a webhook, which is Markdown by default.
func inMarkdown(text string) string { return `{"text":"` + text + `","format":"markdown"}` }
