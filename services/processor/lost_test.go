package processor_test

import (
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/timetest"
)

// A visitor's message that INBOUND has lost is in the store: the next processor publishes it again, and the bot answers
// it unless it had. What INBOUND has kept is not published again, nor is anything at the start after that.
func TestLostVisitorMessageIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inbound := w.collect(subject.AllVisitorMessages)
	replies := w.collect(subject.AllReplies)
	keep := w.wrote(chat.Text, `{"text":"kept"}`)
	w.must(w.store.AppendMessage(t.Context(), w.chat.ID, keep.Message))
	w.publish(keep)
	state, err := w.bus.State(t.Context(), subject.Inbound)
	w.must(err)
	answeredBefore := w.wrote(chat.Text, `{"text":"lost and answered"}`)
	w.must(w.store.AppendMessage(t.Context(), w.chat.ID, answeredBefore.Message))
	answer := message(chat.Text, `{"text":"answered"}`, "Nora")
	answer.ID = chat.AnswerID(answeredBefore.Message.ID, 0)
	answer.IsFromSupport = true
	w.must(w.store.AppendMessage(t.Context(), w.chat.ID, answer))
	lost := w.wrote(chat.Text, `{"text":"lost"}`)
	w.must(w.store.AppendMessage(t.Context(), w.chat.ID, lost.Message))
	w.must(w.store.PutStreamMark(t.Context(), store.StreamMark{
		Stream: subject.Inbound, Epoch: state.Epoch, Sequence: state.Last + 1, MessageID: lost.Message.ID, At: time.Now(),
	}))

	stop := w.run(w.config())
	answered := map[string]bool{}
	for range 2 {
		answered[decode[event.Reply](t, replies.Next()).Message.ID] = true
	}
	if !answered[chat.AnswerID(keep.Message.ID, 0)] || !answered[chat.AnswerID(lost.Message.ID, 0)] {
		t.Errorf("got the answers %v, want one for each message", answered)
	}
	stop()
	l, err := w.bus.LostTail(t.Context(), subject.Inbound)
	w.must(err)
	if l.From != state.Last+1 || l.Messages() != 1 {
		t.Errorf("got the record %+v, want that of one lost message", l)
	}
	for _, want := range []string{keep.Message.ID, answeredBefore.Message.ID, lost.Message.ID} {
		if got := inbound.Next().Header.Get("Nats-Msg-Id"); got != want {
			t.Errorf("got %s in INBOUND, want %s", got, want)
		}
	}
	stop = w.run(w.config())
	timetest.Until(t, "the processor has written the mark of the new epoch", func() bool {
		m, err := w.store.StreamMark(t.Context(), subject.Inbound)
		return err == nil && m.Epoch.Equal(l.Noticed)
	})
	stop()
	if got := inbound.Pending(); got != 0 {
		t.Errorf("got %d messages published again, want none", got)
	}
}

// A consumer that lost its state gets a message again that was answered long ago: the bot does not answer it again.
func TestAnsweredMessageIsNotAnsweredAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := w.wrote(chat.Text, `{"text":"menu"}`)
	old.Message.CreatedAt = now().Add(-3 * time.Minute)
	answer := message(chat.Text, `{"text":"answered"}`, "Nora")
	answer.ID = chat.AnswerID(old.Message.ID, 0)
	answer.IsFromSupport = true
	answer.CreatedAt = old.Message.CreatedAt
	w.must(w.store.AppendMessage(t.Context(), w.chat.ID, answer))
	unanswered := w.wrote(chat.Text, `{"text":"menu"}`)
	unanswered.Message.CreatedAt = old.Message.CreatedAt
	replies := w.collect(subject.AllReplies)
	w.publish(old)
	w.publish(unanswered)
	w.run(w.config())
	first := decode[event.Reply](t, replies.Next()).Message.ID
	if first != chat.AnswerID(unanswered.Message.ID, 0) {
		t.Errorf("got the answer %s, want only one for the message without an answer", first)
	}
}

// The recorder died between a company's message and its status, and the power took what it had read: the status follows
// from the event that comes again.
func TestStoredMessageGetsItsStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := message(chat.Text, `{"text":"stored"}`, "Acme")
	m.CreatedAt = now().Add(-3 * time.Minute)
	w.must(w.store.AppendMessage(t.Context(), w.chat.ID, m))
	replies := w.collect(subject.AllReplies)
	w.publish(event.CompanyMessageAccepted{CompanyID: w.company.ID, ChatID: w.chat.ID, Message: m})
	w.run(w.config())
	timetest.Until(t, "the message has its status", func() bool {
		got, err := w.store.MessageStatus(t.Context(), w.company.ID, m.ID)
		return err == nil && got.Status() == chat.StatusStored && got.ChatID == w.chat.ID && !got.AcceptedAt.IsZero()
	})
	if got := replies.Pending(); got != 0 {
		t.Errorf("got %d replies, want that it is not dispatched again", got)
	}
}
