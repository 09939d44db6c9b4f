// Package recorder writes the history: all messages of a chat. status.go writes the status of companies'
// messages. notice.go sends the visitor notices about the chat.
//
// Deliveries may arrive late, in any order and twice: a history is sorted when it is read, and appending a
// message again changes nothing.
package recorder

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
)

// History stores messages. Appending a stored message again is no error and changes nothing.
type History interface {
	AppendMessage(ctx context.Context, chatID string, m chat.Message) error
}

// Chats finds a chat by its id; apperr.NotFound if it does not exist yet or at all.
type Chats interface {
	Chat(ctx context.Context, id string) (chat.Chat, error)
}

// Controls stores which side answers a chat, and its rating; see [store.Chats].
type Controls interface {
	ChangeChat(ctx context.Context, id string, change store.ChatChange) (chat.Chat, error)
}

// Config holds the dependencies of a [Recorder].
type Config struct {
	History  History
	Chats    Chats
	Statuses Statuses
	Controls Controls
	Now      func() time.Time

	// These are for the notices to visitors.
	Applications Applications
	Publisher    event.Publisher
}

// Recorder writes events into the history. It is safe for concurrent use.
type Recorder struct{ cfg Config }

// New returns a recorder.
func New(cfg Config) *Recorder { return &Recorder{cfg: cfg} }

// VisitorMessage stores a visitor's message. The Widget API does the same after the publish, so the message
// is usually stored already; this one counts if that process crashed in between.
func (r *Recorder) VisitorMessage(ctx context.Context, e event.VisitorMessageAccepted) error {
	e.Message.IsFromSupport = false
	return r.keep(ctx, e.ChatID, e.ChatUserID, e.CompanyID, e.Message)
}

// ControlChanged stores which side answers a chat. The publisher does the same after the publish; this one
// counts if it crashed in between. Then it sends the visitor a notice, if the change concerns them, with an
// id derived from that of the event.
func (r *Recorder) ControlChanged(ctx context.Context, e event.ChatControlChanged, eventID string) error {
	c, err := r.cfg.Chats.Chat(ctx, e.ChatID)
	if err != nil {
		return err
	}
	if c.CompanyID != e.CompanyID {
		return apperr.New(apperr.Invalid, "FOREIGN_CHAT", "The chat belongs to another company")
	}
	changed := store.ChatChange{Control: e.ControlOf(), ClosedAt: e.ClosedAt}
	if _, err := r.cfg.Controls.ChangeChat(ctx, e.ChatID, changed); err != nil {
		return err
	}
	return r.notify(ctx, c, e, eventID)
}

// ChatRated stores a visitor's rating. The Widget API does the same after the publish.
func (r *Recorder) ChatRated(ctx context.Context, e event.ChatRated) error {
	c, err := r.cfg.Chats.Chat(ctx, e.ChatID)
	if err != nil {
		return err
	}
	if c.ChatUserID != e.ChatUserID || c.CompanyID != e.CompanyID {
		return apperr.New(apperr.Invalid, "FOREIGN_CHAT", "The chat belongs to another visitor")
	}
	_, err = r.cfg.Controls.ChangeChat(ctx, e.ChatID, store.ChatChange{Rating: e.Rating()})
	return err
}

// Reply stores a reply.
func (r *Recorder) Reply(ctx context.Context, e event.Reply) error {
	e.Message.IsFromSupport = true // by definition, even if a processing layer has not set it
	err := r.keep(ctx, e.ChatID, e.ChatUserID, e.CompanyID, e.Message)
	if err != nil || !e.Receipt {
		return err
	}
	return r.storedForWidget(ctx, e)
}

// Outbound stores a message for a channel connector.
func (r *Recorder) Outbound(ctx context.Context, e event.OutboundMessage) error {
	e.Message.IsFromSupport = true
	if err := r.keep(ctx, e.ChatID, e.ChatUserID, e.CompanyID, e.Message); err != nil {
		return err
	}
	_, err := r.stored(ctx, e.CompanyID, e.ChatID, e.Message.ID, e.WrittenAt)
	return err
}

// keep appends m unless the event names a chat of another visitor: any program with the permission may
// publish replies, and the id of a chat must not suffice to write into it.
func (r *Recorder) keep(ctx context.Context, chatID, chatUserID, companyID string, m chat.Message) error {
	c, err := r.cfg.Chats.Chat(ctx, chatID)
	if err != nil {
		return err
	}
	if c.ChatUserID != chatUserID || c.CompanyID != companyID {
		return apperr.New(apperr.Invalid, "FOREIGN_CHAT", "The chat belongs to another visitor")
	}
	return r.cfg.History.AppendMessage(ctx, chatID, m)
}
