package processor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

func (w *world) status(messageID string) chat.MessageStatus {
	w.t.Helper()
	s, err := w.store.MessageStatus(w.t.Context(), w.company.ID, messageID)
	w.must(err)
	return s
}

func (w *world) report(messageID, status string, at time.Time) {
	w.t.Helper()
	w.publish(event.MessageStatusChanged{CompanyID: w.company.ID, MessageID: messageID, Status: status, At: at, Reason: strings.Repeat("why", len(status)/6)})
}

// A company's message to a widget, from its acceptance until the visitor has read it; reports arrive in the
// wrong order.
func TestStatusOfACompanysMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.config())
	replies, kept, reported := w.collect(subject.AllReplies), w.acked(subject.Replies, "recorder"), w.acked(subject.Status, "recorder")

	sent := event.CompanyMessageAccepted{CompanyID: w.company.ID, ChatID: w.chat.ID, Message: message(chat.Text, `{"text":"hi"}`, "Acme")}
	w.publish(sent)
	if reply := decode[event.Reply](t, replies.Next()); !reply.Receipt {
		t.Errorf("got %+v, want a receipt asked for", reply)
	}
	kept.Next()
	s := w.status(sent.Message.ID)
	if s.Status() != chat.StatusStored || s.ChatID != w.chat.ID || !s.AcceptedAt.Equal(sent.Message.CreatedAt) || s.StoredAt.Before(s.AcceptedAt) {
		t.Errorf("got %+v, want it stored in its chat after it was accepted", s)
	}
	read, delivered := now().Add(2*time.Second), now().Add(time.Second)
	w.report(sent.Message.ID, chat.StatusRead, read)
	w.report(sent.Message.ID, chat.StatusDelivered, delivered)
	reported.Await(2)
	if s := w.status(sent.Message.ID); s.Status() != chat.StatusRead || !s.ReadAt.Equal(read) || !s.DeliveredAt.Equal(delivered) {
		t.Errorf("got %+v, want it read and delivered", s)
	}
}

// A push goes to a channel, whose connector reports its status; a bot's reply has none.
func TestStatusOfAPush(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.config())
	kept, reported, replies := w.acked(subject.Outbound, "recorder"), w.acked(subject.Status, "recorder"), w.collect(subject.AllReplies)
	push := w.push("+4915112345678", "Sara")
	w.publish(push)
	kept.Next()
	if s := w.status(push.MessageID); s.Status() != chat.StatusStored || s.ChatID == "" || !s.AcceptedAt.Equal(push.CreatedAt) {
		t.Errorf("got %+v, want it stored", s)
	}
	w.report(push.MessageID, chat.StatusFailed, now())
	reported.Next()
	if s := w.status(push.MessageID); s.Status() != chat.StatusFailed || s.Failure.Reason != "why" {
		t.Errorf("got %+v, want it failed because of why", s)
	}
	w.report(push.MessageID, chat.StatusDelivered, now())
	reported.Next()
	if s := w.status(push.MessageID); s.Status() != chat.StatusDelivered {
		t.Errorf("got %+v, want it delivered after all", s)
	}
	w.publish(w.wrote(chat.Text, `{"text":"menu"}`))
	if m := replies.Next(); strings.Contains(string(m.Data), "receipt") {
		t.Errorf("got %s, want the bot to ask for no receipt", m.Data)
	}
}

// A message that is given up has failed, with a reason without internal causes, and is reported as failed, as webhooks
// tell it. Dead letters of other events are ignored.
func TestStatusOfDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.config())
	letters, reports := w.acked(subject.Dead, "recorder"), w.collect(subject.AllStatuses)

	withdrawn := w.template
	withdrawn.ID, withdrawn.Status = "withdrawn", "draft"
	w.must(w.store.PutTemplate(t.Context(), withdrawn))
	push := w.push("+4915112345678", "")
	push.TemplateID = withdrawn.ID
	lost := event.Reply{
		CompanyID: w.company.ID, AppID: w.application.ID, ChatUserID: "another", ChatID: w.chat.ID, Receipt: true,
		Message: message(chat.Text, `{"text":"x"}`, ""),
	}
	bots := lost
	bots.Receipt, bots.Message = false, message(chat.Text, `{"text":"y"}`, "")
	for _, e := range []event.Event{push, lost, bots} {
		w.publish(e)
		letters.Next()
	}
	s := w.status(push.MessageID)
	if s.Status() != chat.StatusFailed || s.Failure.Reason != "The template is not approved" || !s.AcceptedAt.Equal(push.CreatedAt) || s.Failure.At.IsZero() {
		t.Errorf("got %+v, want it failed because the template is not approved", s)
	}
	if s := w.status(lost.Message.ID); s.Failure.Reason != "The chat belongs to another visitor" {
		t.Errorf("got %+v, want the recorder's reason", s)
	}
	for _, id := range []string{push.MessageID, lost.Message.ID} {
		m := reports.Next()
		if want := id + "-" + chat.StatusFailed; m.Header.Get("Nats-Msg-Id") != want {
			t.Errorf("got the report %s, want %s", m.Header.Get("Nats-Msg-Id"), want)
		}
	}
	if s, err := w.store.MessageStatus(t.Context(), w.company.ID, bots.Message.ID); err == nil {
		t.Errorf("got %+v of a bot's reply, want nothing", s)
	}
}
