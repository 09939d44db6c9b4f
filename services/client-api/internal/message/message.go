// Package message sends a company's messages into chats. draft.go validates the message, message.go finds the
// chat and publishes.
package message

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/idempotency"
)

// Directory finds chats and applications. Its results may be cached, except those of FreshChat.
type Directory interface {
	Chat(ctx context.Context, id string) (chat.Chat, error)
	FreshChat(ctx context.Context, id string) (chat.Chat, error)
	Application(ctx context.Context, id string) (chat.Application, error)
}

// Sender sends messages into chats.
type Sender struct {
	directory Directory
	messages  idempotency.Messages
	publisher event.Publisher
	// reachesPhones reports whether something takes the messages of a company to phone numbers.
	reachesPhones func(companyID string) bool
	now           func() time.Time
}

// NewSender returns a sender.
func NewSender(
	directory Directory,
	messages idempotency.Messages,
	publisher event.Publisher,
	reachesPhones func(companyID string) bool,
	now func() time.Time,
) *Sender {
	return &Sender{
		directory: directory, messages: messages, publisher: publisher, reachesPhones: reachesPhones, now: now,
	}
}

// Sent is an accepted message.
type Sent struct {
	MessageID       string
	WindowExpiresAt time.Time
}

// Send accepts a valid draft of a company. Errors: NotFound for an unknown chat or another company's; Invalid
// with CHAT_TOO_OLD for a chat outside its window, and with CHAT_CLOSED for one in it that is closed;
// [apperr.ChannelNotConnected].
// The message gets the identity's id and time, or new ones if the identity is zero. permit allows the message; it is
// not asked for one that an earlier attempt has sent.
func (s *Sender) Send(
	ctx context.Context,
	companyID string,
	d Draft,
	identity chat.MessageIdentity,
	permit idempotency.Permit,
) (Sent, error) {
	_, sent, err := idempotency.SentBefore(ctx, s.messages, identity)
	if err != nil {
		return Sent{}, err
	}
	if sent {
		return s.sentBefore(ctx, d, identity)
	}
	if identity.ID == "" {
		identity = chat.NewMessageIdentity(s.now())
	}
	c, err := s.openChat(ctx, companyID, d.ChatID, identity.At)
	if err != nil {
		return Sent{}, err
	}
	sender, err := s.nameOfSender(ctx, c, d)
	if err != nil {
		return Sent{}, err
	}
	m := chat.Message{
		ID:            identity.ID,
		CreatedAt:     identity.At,
		Type:          d.Type,
		Data:          d.Data,
		NameOfSender:  sender,
		IsFromSupport: true,
	}
	accepted := event.CompanyMessageAccepted{CompanyID: companyID, ChatID: c.ID, Message: m}
	giveBack, err := permit()
	if err != nil {
		return Sent{}, err
	}
	if err := s.publisher.Publish(ctx, event.ForCompany(companyID), accepted); err != nil {
		giveBack()
		return Sent{}, err
	}
	return Sent{MessageID: m.ID, WindowExpiresAt: c.WindowExpiresAt()}, nil
}

// Check validates like Send and sends nothing.
func (s *Sender) Check(ctx context.Context, companyID string, d Draft) (windowExpiresAt time.Time, err error) {
	c, err := s.openChat(ctx, companyID, d.ChatID, s.now().UTC().Truncate(time.Millisecond))
	if err != nil {
		return time.Time{}, err
	}
	return c.WindowExpiresAt(), nil
}

// sentBefore returns the message that an earlier attempt has sent. The chat's age does not matter: its window may
// have ended since.
func (s *Sender) sentBefore(ctx context.Context, d Draft, identity chat.MessageIdentity) (Sent, error) {
	id, _ := chat.ParseID(d.ChatID) // Validate has checked it
	c, err := s.directory.Chat(ctx, id)
	return Sent{MessageID: identity.ID, WindowExpiresAt: c.WindowExpiresAt()}, err
}

// What a company can do about a chat that accepts no messages. The sentences of the specification advise to
// start a new chat, which only a visitor can do.
const (
	adviceTooOld = "is older than 24 hours: send a template with POST /push-message, or wait until the visitor writes"
	adviceClosed = "is closed: the visitor's next message opens a chat with another id, which GET /chats finds; " +
		"a template with POST /push-message reaches a phone number at any time"
)

// openChat returns the company's chat if it accepts messages. A cached chat may accept, but only a fresh one
// refuses: the visitor may have written a moment ago.
func (s *Sender) openChat(ctx context.Context, companyID, chatID string, now time.Time) (chat.Chat, error) {
	id, ok := chat.ParseID(chatID)
	if !ok {
		return chat.Chat{}, apperr.ChatNotFound.New()
	}
	c, err := s.directory.Chat(ctx, id)
	if err == nil && c.CompanyID == companyID && !c.InWindow(now) {
		c, err = s.directory.FreshChat(ctx, id)
	}
	switch {
	case apperr.Is(err, apperr.NotFound):
		return chat.Chat{}, apperr.ChatNotFound.New()
	case err != nil:
		return chat.Chat{}, err
	case c.CompanyID != companyID:
		return chat.Chat{}, apperr.ChatNotFound.New()
	case now.After(c.WindowExpiresAt()):
		return chat.Chat{}, apperr.ChatTooOld.WithField("chatId", adviceTooOld)
	case !c.Open(now):
		return chat.Chat{}, apperr.ChatClosed.WithField("chatId", adviceClosed)
	case c.Channel == chat.ChannelPhone && !s.reachesPhones(companyID):
		return chat.Chat{}, apperr.ChannelNotConnected.New()
	}
	return c, nil
}

// nameOfSender returns the name that the company set. The default is the bot's name in a widget chat, where
// the message appears beside the bot's, and empty on other channels, which show the sender themselves.
func (s *Sender) nameOfSender(ctx context.Context, c chat.Chat, d Draft) (string, error) {
	if d.SenderName != nil {
		return *d.SenderName, nil
	}
	if c.AppID == "" {
		return "", nil
	}
	app, err := s.directory.Application(ctx, c.AppID)
	if apperr.Is(err, apperr.NotFound) {
		return "", nil
	}
	return app.BotName, err
}
