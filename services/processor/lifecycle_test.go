package processor_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/chattest"
	"github.com/parley-chat/parley/testkit/storetest"
	"github.com/parley-chat/parley/testkit/timetest"
)

const lifecycle = "../../docs/lifecycle.md"

// Every cell of the table: accepted events are processed whatever the state of the chat.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.config()
	cfg.Storage.ChatIdleClose = chattest.IdleClose
	w.run(cfg)
	w.store = storetest.OpenAt(t, w.storePath, storetest.Options{IdleClose: chattest.IdleClose})
	replies, outbound, dead := w.collect(subject.AllReplies), w.collect(subject.AllOutbound), w.collect(subject.AllDead)
	bot, dispatcher, push, recorder := w.row("bot"), w.row("dispatcher, message"), w.row("dispatcher, push"), w.row("recorder")
	for _, state := range chattest.States() {
		visitor := w.newVisitor(chat.Visitor{FirstName: "Sara", AppID: w.application.ID})
		chatID := chattest.OpenIn(t, w.store, visitor, chat.ChannelWidget, state, now())

		asked := event.VisitorMessageAccepted{
			CompanyID: w.company.ID, AppID: w.application.ID, ChatUserID: visitor.ID, ChatID: chatID, Message: message(chat.Text, `{"text":"menu"}`, "Sara"),
		}
		w.publish(asked)
		if answer := decode[event.Reply](t, replies.Next()); answer.ChatID != chatID || bot[state] != "answers" {
			t.Errorf("bot, %s: got an answer in %s, the table has %q", state, answer.ChatID, bot[state])
		}
		sent := event.CompanyMessageAccepted{CompanyID: w.company.ID, ChatID: chatID, Message: message(chat.Text, `{"text":"hi"}`, "Acme")}
		w.publish(sent)
		if there := state != chattest.NoChat; there {
			if reply := decode[event.Reply](t, replies.Next()); reply.Message.ID != sent.Message.ID || dispatcher[state] != "sends" {
				t.Errorf("dispatcher, %s: got %s, the table has %q", state, reply.Message.ID, dispatcher[state])
			}
			w.awaitKept(chatID, asked.Message.ID, sent.Message.ID)
		}
		if want := map[bool]string{true: "stores", false: "retries, then DEAD"}[state != chattest.NoChat]; recorder[state] != want {
			t.Errorf("recorder, %s: got it as %q, the table has %q", state, want, recorder[state])
		}
		if got := w.pushInto(state, outbound.Next); got != push[state] {
			t.Errorf("dispatcher, push, %s: got %q, the table has %q", state, got, push[state])
		}
	}
	// Without a chat, the recorder gives up the question and the answer, and the dispatcher the company's message.
	given := map[string]int{}
	for range 3 {
		given[dead.Next().Subject]++
	}
	if given["chat.dead.INBOUND.recorder"] != 1 || given["chat.dead.REPLIES.recorder"] != 1 || given["chat.dead.SENDS.dispatcher"] != 1 {
		t.Errorf("no chat: got the dead letters %v, want one of each consumer that needs the chat", given)
	}
	if dispatcher[chattest.NoChat] != "retries, then DEAD" || bot[chattest.NoChat] != "answers" {
		t.Errorf("no chat: the table has %q and %q", dispatcher[chattest.NoChat], bot[chattest.NoChat])
	}
}

func (w *world) row(subject string) map[string]string {
	w.t.Helper()
	return chattest.Answers(w.t, lifecycle, subject)
}

// newVisitor creates a visitor without a chat.
func (w *world) newVisitor(v chat.Visitor) chat.Visitor {
	w.t.Helper()
	if v.ID == "" {
		v.ID = uuid.NewString()
	}
	v.CompanyID = w.company.ID
	registered, err := w.store.Register(w.t.Context(), store.Registration{Visitor: v})
	visitor := registered.Visitor
	w.must(err)
	return visitor
}

// awaitKept returns when the chat's history has all of these messages.
func (w *world) awaitKept(chatID string, ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		timetest.Until(w.t, "message "+id+" is in the history of "+chatID, func() bool {
			return slices.ContainsFunc(w.history(chatID), func(m chat.Message) bool { return m.ID == id })
		})
	}
}

// pushInto pushes to a number whose chat is in a state, and returns the result in the table's words.
func (w *world) pushInto(state string, next func() *nats.Msg) string {
	w.t.Helper()
	number := fmt.Sprintf("4915112345%03d", slices.Index(chattest.States(), state))
	registered, err := w.store.Register(w.t.Context(), store.Registration{
		Identities: []store.Identity{{Scope: w.company.ID, Kind: store.KindPhone, Value: number}},
		Visitor:    chat.Visitor{CompanyID: w.company.ID, Phone: number},
	})
	w.must(err)
	recipient := registered.Visitor
	e := w.push(number, "Sara")
	before := chattest.OpenIn(w.t, w.store, recipient, chat.ChannelPhone, state, e.CreatedAt)
	w.publish(e)
	if sent := decode[event.OutboundMessage](w.t, next()); sent.ChatID != before {
		return "sends, opens a chat"
	}
	return "sends"
}
