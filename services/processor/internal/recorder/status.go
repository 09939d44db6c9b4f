package recorder

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

// Statuses stores the status of companies' messages and which of them wait for receipts. Updates may arrive
// in any order and twice, see [store.Store].
type Statuses interface {
	JoinMessageStatus(
		ctx context.Context,
		companyID, messageID string,
		more chat.MessageStatus,
	) (chat.MessageStatus, error)
	AwaitReceipts(ctx context.Context, chatID string, m chat.Message, delivered bool) (readAt time.Time, err error)
	NoteReceipt(ctx context.Context, chatID, messageID string, read bool) error
}

// stored records that a company's message is in the history.
func (r *Recorder) stored(
	ctx context.Context, companyID, chatID, messageID string, accepted time.Time,
) (chat.MessageStatus, error) {
	return r.cfg.Statuses.JoinMessageStatus(ctx, companyID, messageID, chat.MessageStatus{
		ChatID: chatID, AcceptedAt: accepted, StoredAt: r.cfg.Now(),
	})
}

// storedForWidget also registers the message for delivery and read receipts of the visitor's widget. The
// visitor may have received it over the socket, and read beyond it, already: then it publishes that, because nobody has
// reported it, also not to the company's webhooks.
func (r *Recorder) storedForWidget(ctx context.Context, e event.Reply) error {
	known, err := r.stored(ctx, e.CompanyID, e.ChatID, e.Message.ID, e.WrittenAt)
	if err != nil || !known.ReadAt.IsZero() {
		return err
	}
	readAt, err := r.cfg.Statuses.AwaitReceipts(ctx, e.ChatID, e.Message, !known.DeliveredAt.IsZero())
	if err != nil || readAt.IsZero() {
		return err
	}
	return r.cfg.Publisher.Publish(ctx, event.Derived(), event.MessageStatusChanged{
		CompanyID: e.CompanyID, MessageID: e.Message.ID, Status: chat.StatusRead, At: readAt, ChatID: e.ChatID,
	})
}

// StoredBefore records the status of a company's message that the history has and whose event comes again: a recorder
// may have died between the two, and what it read may be lost.
func (r *Recorder) StoredBefore(ctx context.Context, chatID string, m chat.Message, accepted time.Time) error {
	c, err := r.cfg.Chats.Chat(ctx, chatID)
	if err != nil {
		return err
	}
	if c.Channel == chat.ChannelWidget {
		return r.storedForWidget(ctx, event.Reply{CompanyID: c.CompanyID, ChatID: c.ID, Message: m, WrittenAt: accepted})
	}
	_, err = r.stored(ctx, c.CompanyID, c.ID, m.ID, accepted)
	return err
}

// StatusChanged stores a reported status of a message.
func (r *Recorder) StatusChanged(ctx context.Context, e event.MessageStatusChanged) error {
	if _, err := r.cfg.Statuses.JoinMessageStatus(ctx, e.CompanyID, e.MessageID, e.Reported()); err != nil {
		return err
	}
	if e.ChatID == "" || e.Status == chat.StatusFailed {
		return nil
	}
	return r.cfg.Statuses.NoteReceipt(ctx, e.ChatID, e.MessageID, e.Status == chat.StatusRead)
}

// Abandoned is a company's message that a consumer has given up.
type Abandoned struct {
	CompanyID  string
	MessageID  string
	AcceptedAt time.Time // zero if the dead letter does not have it
	At         time.Time
	Reason     string // for the company to read
}

// Abandon stores that a message is a dead letter, and publishes it for the company's webhooks. If it is delivered after
// all, because of a replay, or because only one of its consumers gave it up, the delivery takes precedence.
func (r *Recorder) Abandon(ctx context.Context, a Abandoned) error {
	known, err := r.cfg.Statuses.JoinMessageStatus(ctx, a.CompanyID, a.MessageID, chat.MessageStatus{
		AcceptedAt: a.AcceptedAt, Failure: chat.Failure{At: a.At, Reason: a.Reason},
	})
	if err != nil || known.Status() != chat.StatusFailed {
		return err
	}
	return r.cfg.Publisher.Publish(ctx, event.Derived(), event.MessageStatusChanged{
		CompanyID: a.CompanyID,
		MessageID: a.MessageID,
		Status:    chat.StatusFailed,
		At:        known.Failure.At,
		Reason:    known.Failure.Reason,
		ChatID:    known.ChatID,
	})
}
