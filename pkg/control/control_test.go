package control_test

import (
	"context"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/control"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
)

// kept is one chat, and counts the events about it.
type kept struct {
	chat   chat.Chat
	events int
	last   event.ChatControlChanged
	away   bool // the store refuses
}

func (k *kept) ChangeChat(_ context.Context, _ string, change store.ChatChange) (chat.Chat, error) {
	if k.away {
		return k.chat, apperr.ServiceUnavailable.New()
	}
	k.chat.Control = change.Control
	if k.chat.ClosedAt.IsZero() {
		k.chat.ClosedAt = change.ClosedAt
	}
	return k.chat, nil
}

func (k *kept) Charge(_ context.Context, a event.Account, _ int) (event.Account, error) {
	return a, nil
}

func (k *kept) Publish(_ context.Context, _ event.Account, e event.Event) error {
	k.events++
	k.last = e.(event.ChatControlChanged)
	return nil
}

func (k *kept) LastControl(context.Context, string, string) (event.ChatControlChanged, error) {
	if k.events == 0 {
		return k.last, apperr.ChatNotFound.New()
	}
	return k.last, nil
}

// A change that was published but not stored counts: the recorder will store it. The opposite change is none of the
// chat that the store has, and must be published all the same.
func TestAChangeThatIsNotStoredYetCounts(t *testing.T) {
	t.Parallel()
	ctx, k := t.Context(), &kept{chat: chat.Chat{ID: "c", Control: chat.Control{Agent: true, ChangedAt: time.Now()}}}
	s := control.New(k, k, time.Now)
	payer := event.ForAgent("company", "u")
	k.away = true
	if _, err := s.Apply(ctx, payer, k.chat, control.Change{To: chat.Control{}}); err == nil {
		t.Fatal("without the store: got no error")
	}
	k.away = false
	if _, err := s.Apply(ctx, payer, k.chat, control.Change{To: chat.Control{Agent: true}}); err != nil || k.events != 2 || !k.chat.Control.Agent {
		t.Errorf("back to the agents: got %d events, %+v and %v, want it published and stored", k.events, k.chat.Control, err)
	}
	k.away = true
	_, _ = s.Apply(ctx, payer, k.chat, control.Change{To: chat.Control{}})
	k.away = false
	if c, err := s.HandOver(ctx, payer, k.chat, chat.Handover{By: chat.ByBot}, "e"); err != nil || k.events != 4 || !c.Control.Agent {
		t.Errorf("a handover: got %d events, %+v and %v, want it published", k.events, c.Control, err)
	}
}

// Repeating a change fills no stream: only one that alters the chat is published.
func TestOnlyChangesArePublished(t *testing.T) {
	t.Parallel()
	ctx, k := t.Context(), &kept{chat: chat.Chat{ID: "c"}}
	s := control.New(k, k, time.Now)
	apply := func(to chat.Control, closedAt time.Time) func() error {
		return func() error {
			_, err := s.Apply(ctx, event.ForAgent("company", "u"), k.chat, control.Change{To: to, ClosedAt: closedAt})
			return err
		}
	}
	offline := func(email string) func() error {
		return func() error {
			h := chat.Handover{By: chat.ByOfflineForm, Note: email}
			_, err := s.Requeue(ctx, event.ForVisitor("company", "app", "v", ""), k.chat, h, email)
			return err
		}
	}
	for _, step := range []struct {
		name   string
		do     func() error
		events int // in all
	}{
		{"the bot's chat to the bot", apply(chat.Control{}, time.Time{}), 0},
		{"an offline message", offline("a@example.com"), 1},
		{"another one, from another address", offline("b@example.com"), 1},
		{"a take-over", apply(chat.Control{Agent: true, Assignee: "u"}, time.Time{}), 2},
		{"a take-over again", apply(chat.Control{Agent: true, Assignee: "u"}, time.Time{}), 2},
		{"another assignee", apply(chat.Control{Agent: true, Assignee: "w"}, time.Time{}), 3},
		{"a close", apply(chat.Control{Agent: true, Assignee: "w"}, time.Now()), 4},
		{"a close again", apply(chat.Control{Agent: true, Assignee: "w"}, time.Now()), 4},
	} {
		if err := step.do(); err != nil || k.events != step.events {
			t.Errorf("%s: got %d events and %v, want %d", step.name, k.events, err, step.events)
		}
	}
}
