// Package control changes which side answers a chat: the bot or an agent.
//
// A change is published first; after a crash the recorder stores it. The change is also written to the store directly,
// so that the next read of the chat returns it. If that write fails, the store lacks the change until the recorder has
// stored it: each change starts from the newer of both.
package control

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
)

// Store stores the control of a chat; see [store.Chats].
type Store interface {
	ChangeChat(ctx context.Context, id string, change store.ChatChange) (chat.Chat, error)
}

// Stream has the published changes.
type Stream interface {
	event.Publisher
	// LastControl returns the last published change of a chat, or NotFound.
	LastControl(ctx context.Context, companyID, chatID string) (event.ChatControlChanged, error)
}

// Service changes the control of chats. It is safe for concurrent use.
type Service struct {
	store  Store
	stream Stream
	now    func() time.Time
}

// New returns a service. now is the clock.
func New(s Store, stream Stream, now func() time.Time) *Service {
	return &Service{store: s, stream: stream, now: now}
}

// Change is a new control of a chat.
type Change struct {
	EventID  string // repeating an id repeats the same change
	To       chat.Control
	ByUserID string    // empty: not a panel user
	ClosedAt time.Time // zero: does not change whether the chat is open
}

// alters reports whether a chat differs after the change. The times of the control and the handover do not count.
func (change Change) alters(c chat.Chat) bool {
	to, is := change.To, c.Control
	closes := !change.ClosedAt.IsZero() && c.ClosedAt.IsZero()
	return closes || to.Agent != is.Agent || to.Assignee != is.Assignee ||
		to.Handover.By != is.Handover.By || to.Handover.Note != is.Handover.Note
}

// Apply publishes the change, which the account pays for, stores it, and returns the resulting chat. It sets
// the time of the change, which is always later than the previous one, even if clocks differ. A change that alters
// nothing is not published, so that repeating it fills no stream.
func (s *Service) Apply(ctx context.Context, a event.Account, c chat.Chat, change Change) (chat.Chat, error) {
	c, err := s.current(ctx, c)
	if err != nil {
		return c, err
	}
	return s.apply(ctx, a, c, change)
}

// current returns a chat with a change that the recorder has yet to store.
func (s *Service) current(ctx context.Context, c chat.Chat) (chat.Chat, error) {
	last, err := s.stream.LastControl(ctx, c.CompanyID, c.ID)
	if apperr.Is(err, apperr.NotFound) {
		return c, nil
	}
	if err != nil || !last.ChangedAt.After(c.Control.ChangedAt) {
		return c, err
	}
	c.Control = last.ControlOf()
	if c.ClosedAt.IsZero() {
		c.ClosedAt = last.ClosedAt
	}
	return c, nil
}

// apply is Apply for a chat of [Service.current].
func (s *Service) apply(ctx context.Context, a event.Account, c chat.Chat, change Change) (chat.Chat, error) {
	if !change.alters(c) {
		return c, nil
	}
	to := change.To
	to.ChangedAt = store.UTC(s.now())
	if earliest := c.Control.ChangedAt.Add(time.Millisecond); to.ChangedAt.Before(earliest) {
		to.ChangedAt = earliest
	}
	if to.Handover.By != "" && to.Handover.At.IsZero() {
		to.Handover.At = to.ChangedAt
	}
	e := event.ChatControlChanged{
		ID:         change.EventID,
		CompanyID:  c.CompanyID,
		ChatID:     c.ID,
		AppID:      c.AppID,
		ChatUserID: c.ChatUserID,
		Control:    EventValue(to),
		AssigneeID: to.Assignee,
		ByUserID:   change.ByUserID,
		ChangedAt:  to.ChangedAt,
		ClosedAt:   store.UTC(change.ClosedAt),
		Handover:   event.Handover(to.Handover),
	}
	if err := s.stream.Publish(ctx, a, e); err != nil {
		return c, err
	}
	return s.store.ChangeChat(ctx, c.ID, store.ChatChange{Control: to, ClosedAt: change.ClosedAt})
}

// HandOver moves a chat from the bot to the agents' queue for the reason h. A chat that agents already have is
// unchanged.
func (s *Service) HandOver(
	ctx context.Context,
	a event.Account,
	c chat.Chat,
	h chat.Handover,
	eventID string,
) (chat.Chat, error) {
	c, err := s.current(ctx, c)
	if err != nil || c.Control.Agent {
		return c, err
	}
	return s.apply(ctx, a, c, Change{EventID: eventID, To: chat.Control{Agent: true, Handover: h}})
}

// Requeue is HandOver, but also accepts a chat of the agents: if it is unassigned, it waits with the new reason. A
// chat that waits for the same reason already is unchanged, whatever the note.
func (s *Service) Requeue(
	ctx context.Context,
	a event.Account,
	c chat.Chat,
	h chat.Handover,
	eventID string,
) (chat.Chat, error) {
	c, err := s.current(ctx, c)
	if err != nil {
		return c, err
	}
	waits := c.Control.Waiting() && c.Control.Handover.By == h.By
	if waits || c.Control.Agent && !c.Control.Waiting() {
		return c, nil
	}
	return s.apply(ctx, a, c, Change{EventID: eventID, To: chat.Control{Agent: true, Handover: h}})
}

// EventValue returns the event's value for a control.
func EventValue(c chat.Control) string {
	if c.Agent {
		return event.ControlAgent
	}
	return event.ControlBot
}
