package bot

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

// queue is a chat that can be handed over. It records, in order, the changes and the published events.
type queue struct {
	chat  chat.Chat
	done  []string
	fault error // of the next handover
}

func (q *queue) Chat(context.Context, string) (chat.Chat, error) { return q.chat, nil }

func (q *queue) Publish(_ context.Context, _ event.Account, e event.Event) error {
	q.done = append(q.done, e.EventID())
	return nil
}

func (q *queue) HandOver(_ context.Context, _ event.Account, c chat.Chat, h chat.Handover, eventID string) (chat.Chat, error) {
	if err := q.fault; err != nil {
		q.fault = nil
		return c, err
	}
	q.done = append(q.done, eventID)
	q.chat.Control = chat.Control{Agent: true, Handover: h}
	return q.chat, nil
}

// The bot publishes its messages, hands the chat over, and is silent until the agents hand it back. A
// redelivery completes what a crash has left undone, under the same ids.
func TestBotHandsOver(t *testing.T) {
	t.Parallel()
	asked := wrote(chat.Text, `{"text":"Human!"}`)
	q := &queue{chat: chat.Chat{ID: asked.ChatID, CompanyID: asked.CompanyID, ChatUserID: asked.ChatUserID}, fault: errors.New("killed")}
	b := New(Config{
		Answerer:     NewDemo(""),
		Settings:     always(bots.Settings{Kind: bots.Demo}),
		Applications: application{},
		Chats:        q,
		Controls:     q,
		Publisher:    q,
		Now:          func() time.Time { return asked.Message.CreatedAt },
	})
	if err := b.VisitorMessage(t.Context(), asked); err == nil {
		t.Fatal("a handover that failed: got no error, want a redelivery")
	}
	if err := b.VisitorMessage(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	if want := []string{chat.AnswerID(asked.Message.ID, 0), chat.AnswerID(asked.Message.ID, 0), "handover-" + asked.Message.ID}; !slices.Equal(q.done, want) {
		t.Errorf("got %v, want %v", q.done, want)
	}
	if h := q.chat.Control.Handover; h.By != chat.ByBot || h.Reason == "" || h.Note == "" {
		t.Errorf("got the handover %+v, want one of the bot's with a reason and a note", h)
	}
	q.done = nil
	if err := b.VisitorMessage(t.Context(), wrote(chat.Text, `{"text":"hello?"}`)); err != nil || len(q.done) > 0 {
		t.Errorf("after the handover: got %v and %v, want silence", q.done, err)
	}
	q.chat.Control = chat.Control{}
	if err := b.VisitorMessage(t.Context(), wrote(chat.Text, `{"text":"hello"}`)); err != nil || len(q.done) != 2 {
		t.Errorf("after the return:  got %v and %v, want an answer", q.done, err)
	}
	q.done, q.chat.ClosedAt = nil, asked.Message.CreatedAt
	if err := b.VisitorMessage(t.Context(), asked); err != nil || len(q.done) != 1 {
		t.Errorf("in a closed chat: got %v and %v, want an answer and no handover", q.done, err)
	}
}

func TestHandoverOfAWebhook(t *testing.T) {
	t.Parallel()
	const messages = `"messages":[{"type":"TEXT","data":{"text":"One moment."}}]`
	long := string(slices.Repeat([]byte("x"), chat.MaxHandoverNote+1))
	for body, want := range map[string]*chat.Handover{
		`{` + messages + `}`:                   nil,
		`{` + messages + `,"handover":false}`:  nil,
		`{` + messages + `,"handover":null}`:   nil,
		`{` + messages + `,"handover": true }`: {By: chat.ByBot},
		`{` + messages + `,"handover":{}}`:     {By: chat.ByBot},
		`{"handover":{"reason":"refund"}}`:     {By: chat.ByBot, Reason: "refund"},
		`{"handover":{"note":"é","x":[1]}}`:    {By: chat.ByBot, Note: "é"},
	} {
		answers, err := new(Webhook).parseAnswers([]byte(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		got := answers.Handover
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: got %+v, want %+v", body, got, want)
		}
		if wanted := body[2] == 'm'; (len(answers.Messages) == 1) != wanted {
			t.Errorf("%s: got %d messages", body, len(answers.Messages))
		}
	}
	for _, body := range []string{`{"handover":"yes"}`, `{"handover":1}`, `{"handover":[]}`, `{"handover":{"reason":1}}`, `{"handover":{"note":"` + long + `"}}`} {
		if _, err := new(Webhook).parseAnswers([]byte(body)); !apperr.Is(err, apperr.Invalid) {
			t.Errorf("%.60s: got %v, want it refused", body, err)
		}
	}
}

// Without a bot, a visitor's message puts the chat into the agents' queue, and writes nothing.
func TestNobodyHandsOver(t *testing.T) {
	t.Parallel()
	asked := wrote(chat.Text, `{"text":"Hello?"}`)
	q := &queue{chat: chat.Chat{ID: asked.ChatID, CompanyID: asked.CompanyID, ChatUserID: asked.ChatUserID}}
	b := New(Config{
		Answerer:     Nobody{},
		Settings:     always(bots.Settings{Kind: bots.None}),
		Applications: application{},
		Chats:        q,
		Controls:     q,
		Publisher:    q,
		Now:          func() time.Time { return asked.Message.CreatedAt },
	})
	for range 2 {
		if err := b.VisitorMessage(t.Context(), asked); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"handover-" + asked.Message.ID}; !slices.Equal(q.done, want) {
		t.Errorf("got %v, want %v", q.done, want)
	}
	if c := q.chat.Control; !c.Waiting() || c.Handover.By != chat.ByNoBot {
		t.Errorf("got the control %+v, want a waiting chat without a bot", c)
	}
}
