// Package conversation is a visitor's open chat: its history, and what the visitor adds to it. draft.go has the rules for what
// may be written, upload.go takes in files; page.go and recorded.go read; support.go has what concerns agents: handover, offline messages, ratings.
package conversation

import (
	"context"
	"log/slog"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
)

// Applications finds the application of a widget.
type Applications interface {
	FindWidget(ctx context.Context, id string) (chat.Application, error)
}

// Directory finds visitors; its answers may be a moment old.
type Directory interface {
	Visitor(ctx context.Context, chatUserID string) (chat.Visitor, error)
}

// Chats keeps chats and their histories.
type Chats interface {
	CurrentChat(ctx context.Context, v chat.Visitor, now time.Time) (chat.Chat, error)
	Chat(ctx context.Context, id string) (chat.Chat, error)
	Chats(ctx context.Context, f store.ChatFilter, p store.Page) ([]chat.Chat, error)
	RateChat(ctx context.Context, id string, r chat.Rating) (chat.Chat, error)
	OpenChat(ctx context.Context, v chat.Visitor, n store.NewChat) (c chat.Chat, opened bool, err error)
	AppendMessage(ctx context.Context, chatID string, m chat.Message) error
	Message(ctx context.Context, chatID, id string) (chat.Message, error)
	History(ctx context.Context, chatID string, q store.HistoryQuery) (messages []chat.Message, more bool, err error)
	HasMessage(ctx context.Context, id string) (bool, error)
}

// Publisher returns after the event is stored for the processing layer.
type Publisher interface {
	Publish(ctx context.Context, e event.Event) error
}

// Replies finds the last reply to a visitor that the stream holds, and when the stream took it.
type Replies interface {
	LastReply(ctx context.Context, appID, chatUserID string) (event.Reply, time.Time, error)
}

// Config is what a [Service] needs.
type Config struct {
	Applications Applications
	Directory    Directory
	Chats        Chats
	Receipts     Receipts
	Unread       Unread
	Signals      Signals
	Agents       *Agents // nil: nothing is known of agents
	Replies      Replies
	Bots         Bots
	Publisher    Publisher
	Controls     Controls
	Visitors     Visitors
	Changed      func(ctx context.Context, chatUserID string) // invalidates a visitor's profile in all caches
	Files        Files
	Reads        *Reads // nil: not bounded
	Logger       *slog.Logger
	Now          func() time.Time
}

// Service serves visitors whose tokens hold.
type Service struct{ cfg Config }

// New returns the service.
func New(cfg Config) *Service { return &Service{cfg: cfg} }

// Answer is a page of the history of a visitor's open chat.
type Answer struct {
	ChatID   string
	Messages []chat.Message // ascending
	More     bool           // there are earlier ones
	Reading  *Reading       // nil on earlier pages, or if it is unknown
}

// History calls answer once with a page of the visitor's open chat, and returns its error. The last page has every reply that was
// published before History was called. The page counts against the
// memory of all reads until answer returns. It returns Unauthenticated when the token's visitor is gone or the token is revoked,
// NotFound when there is no open chat or the application is gone, Invalid when the page ends before what is not a message of this
// chat, and Unavailable when too many read at once.
func (d *Service) History(ctx context.Context, who credential.VisitorClaims, p Page, answer func(Answer) error) error {
	c, err := d.current(ctx, who)
	if err != nil {
		return err
	}
	page, err := d.recorded(ctx, c, p)
	if err != nil {
		return asNoChat(err)
	}
	defer page.release()
	a := Answer{ChatID: c.ID, Messages: page.messages, More: page.more}
	receipts, err := d.cfg.Receipts.ChatReceipts(ctx, c.ID)
	if err != nil {
		d.cfg.Logger.WarnContext(ctx, "deliveries are reported with a later history", "chatId", c.ID, "error", err)
		return answer(a)
	}
	d.delivered(ctx, c, receipts.Undelivered, page.messages)
	if p.Before == "" {
		a.Reading = d.readingOf(ctx, c, receipts, page)
	}
	return answer(a)
}

// Write accepts a valid draft and returns the record that it became. The visitor's chat is opened when none is open. It
// returns Unauthenticated when the token's visitor is gone, and NotFound when the application is. The message gets the identity's
// id and time, and new ones from the zero identity.
func (d *Service) Write(ctx context.Context, who credential.VisitorClaims, draft Draft, identity chat.MessageIdentity) (chat.Message, error) {
	visitor, err := d.visitor(ctx, who)
	if err != nil {
		return chat.Message{}, err
	}
	app, err := d.admit(ctx, visitor)
	if err != nil {
		return chat.Message{}, err
	}
	if identity.ID == "" {
		identity = chat.NewMessageIdentity(d.now())
	}
	m := chat.Message{ID: identity.ID, CreatedAt: identity.At, Type: draft.Type, Data: draft.Data, NameOfSender: visitor.Name()}
	if identity.Again { // in the chat that was open then, which need not be today's
		if written, err := d.cfg.Chats.HasMessage(ctx, identity.ID); err != nil || written {
			return m, err
		}
	}
	c, _, err := d.cfg.Chats.OpenChat(ctx, visitor, store.NewChat{Channel: chat.ChannelWidget, Now: identity.At, AgentsOnly: app.Support.AgentsOnly})
	if err != nil {
		return chat.Message{}, err
	}
	err = d.cfg.Publisher.Publish(ctx, event.VisitorMessageAccepted{
		CompanyID: visitor.CompanyID, AppID: visitor.AppID, ChatUserID: visitor.ID, ChatID: c.ID, Message: m,
	})
	if err != nil {
		return chat.Message{}, err
	}
	d.record(ctx, c.ID, m)
	return m, nil
}

// record puts the message into the history at once, so that the visitor's next look at it shows the message. The message is
// accepted whatever becomes of this: the recorder does the same again from the stream, and appending is idempotent.
func (d *Service) record(ctx context.Context, chatID string, m chat.Message) {
	if err := d.cfg.Chats.AppendMessage(context.WithoutCancel(ctx), chatID, m); err != nil {
		d.cfg.Logger.WarnContext(ctx, "the history will show a message only when the recorder has it",
			"chatId", chatID, "messageId", m.ID, "error", err)
	}
}

// now is the time as the chats' own times are: in milliseconds.
func (d *Service) now() time.Time { return d.cfg.Now().UTC().Truncate(time.Millisecond) }

// visitor returns the visitor of the token. A revoked token is Unauthenticated.
func (d *Service) visitor(ctx context.Context, who credential.VisitorClaims) (chat.Visitor, error) {
	v, err := d.cfg.Directory.Visitor(ctx, who.ChatUserID)
	switch {
	case apperr.Is(err, apperr.NotFound):
		return v, apperr.Unauthorized.New()
	case err != nil:
		return v, err
	case v.AppID != who.AppID || v.CompanyID != who.CompanyID, !who.IssuedSince(v.TokensValidFrom):
		return v, apperr.Unauthorized.New()
	}
	return v, nil
}

// admit refuses visitors of a deleted application, and visitors without a proven identity if the application requires one: a token
// from before that setting is only good for registering again.
func (d *Service) admit(ctx context.Context, v chat.Visitor) (chat.Application, error) {
	app, err := d.cfg.Applications.FindWidget(ctx, v.AppID)
	if err == nil && app.Identity.Required() && v.VerifiedBy == "" {
		return app, apperr.Unauthorized.New()
	}
	return app, err
}

// asNoChat says of whatever was not found that there is no chat: that is all that the visitor asked for.
func asNoChat(err error) error {
	if apperr.Is(err, apperr.NotFound) {
		return apperr.ChatNotFound.New()
	}
	return err
}
