package processor_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/processor"
)

const webhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// signed verifies a Standard Webhook as its receiver would.
func signed(r *http.Request, body []byte) bool {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(webhookSecret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	io.WriteString(mac, r.Header.Get("webhook-id")+"."+r.Header.Get("webhook-timestamp")+"."+string(body))
	return r.Header.Get("webhook-signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// A server that is away for a moment is asked again with the same webhook-id; what it answers reaches the visitor and the
// history. One that refuses is not asked again, and the message is kept in DEAD with the reason.
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
	if string(one.Message.Data) != `{"text":"one"}` || two.Message.Type != chat.MultipleChoice || one.Message.NameOfSender != "Nora" {
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
