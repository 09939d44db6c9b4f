// Package control changes which side answers a chat: the bot or an agent.
//
// A change is published first; after a crash the recorder stores it. The store is written as well, so that the next read of the chat
// shows it.
package control

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
)

// Store keeps which side answers a chat; see [store.Chats].
type Store interface {
	SetControl(ctx context.Context, id string, c chat.Control) (chat.Chat, error)
}

// Publisher publishes an event; nil means that the stream has it.
type Publisher interface {
	Publish(ctx context.Context, e event.Event) error
}

// Service changes controls. It is safe for concurrent use.
type Service struct {
	store     Store
	publisher Publisher
	now       func() time.Time
}

// New returns a service. now is the clock.
func New(s Store, p Publisher, now func() time.Time) *Service {
	return &Service{store: s, publisher: p, now: now}
}

// Change is a new control of a chat.
type Change struct {
	EventID  string // a repeat with the same one is the same change
	To       chat.Control
	ByUserID string    // empty: not a user of the panel
	ClosedAt time.Time // zero: the chat is as open as before
}

// Apply publishes the change, stores it, and returns the resulting chat. It sets the time of the change, which is always after that of
// the last one, also with clocks that differ.
func (s *Service) Apply(ctx context.Context, c chat.Chat, change Change) (chat.Chat, error) {
	to := change.To
	to.ChangedAt = store.UTC(s.now())
	if earliest := c.Control.ChangedAt.Add(time.Millisecond); to.ChangedAt.Before(earliest) {
		to.ChangedAt = earliest
	}
	if to.Handover.By != "" && to.Handover.At.IsZero() {
		to.Handover.At = to.ChangedAt
	}
	e := event.ChatControlChanged{
		ID: change.EventID, CompanyID: c.CompanyID, ChatID: c.ID, AppID: c.AppID, ChatUserID: c.ChatUserID, Control: Word(to),
		AssigneeID: to.Assignee, ByUserID: change.ByUserID, ChangedAt: to.ChangedAt, ClosedAt: store.UTC(change.ClosedAt),
		Handover: event.Handover(to.Handover),
	}
	if err := s.publisher.Publish(ctx, e); err != nil {
		return c, err
	}
	return s.store.SetControl(ctx, c.ID, to)
}

// HandOver gives a chat that the bot answers to the agents' queue, for the reason h. A chat that the agents have already stays as it is.
func (s *Service) HandOver(ctx context.Context, c chat.Chat, h chat.Handover, eventID string) (chat.Chat, error) {
	if c.Control.Agent {
		return c, nil
	}
	return s.Apply(ctx, c, Change{EventID: eventID, To: chat.Control{Agent: true, Handover: h}})
}

// Requeue is HandOver for a chat that the agents may have already: one that no agent has taken waits for the new reason.
func (s *Service) Requeue(ctx context.Context, c chat.Chat, h chat.Handover, eventID string) (chat.Chat, error) {
	if c.Control.Agent && !c.Control.Waiting() {
		return c, nil
	}
	return s.Apply(ctx, c, Change{EventID: eventID, To: chat.Control{Agent: true, Handover: h}})
}

// Word is the control in an event.
func Word(c chat.Control) string {
	if c.Agent {
		return event.ControlAgent
	}
	return event.ControlBot
}
