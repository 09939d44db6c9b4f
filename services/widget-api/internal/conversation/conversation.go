// Package conversation is a visitor's chats: their histories, and the visitor's messages. draft.go validates
// messages, upload.go receives files, page.go and recorded.go read the history, chats.go lists earlier chats,
// support.go does what concerns agents: handover, offline messages, ratings.
package conversation

import (
	"context"
	"log/slog"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/slot"
	"github.com/parley-chat/parley/pkg/store"
)

// Applications finds the application of a widget.
type Applications interface {
	FindWidget(ctx context.Context, id string) (chat.Application, error)
}

// Directory finds visitors; its results may be cached.
type Directory interface {
	Visitor(ctx context.Context, chatUserID string) (chat.Visitor, error)
}

// Chats stores chats and their histories.
type Chats interface {
	Chat(ctx context.Context, id string) (chat.Chat, error)
	Chats(ctx context.Context, f store.ChatFilter, p store.Page) ([]chat.Chat, error)
	ChangeChat(ctx context.Context, id string, change store.ChatChange) (chat.Chat, error)
	OpenChat(ctx context.Context, v chat.Visitor, n store.NewChat) (c chat.Chat, opened bool, err error)
	AppendMessage(ctx context.Context, chatID string, m chat.Message) error
	History(ctx context.Context, chatID string, q store.HistoryQuery) (messages []chat.Message, more bool, err error)
	FindMessage(ctx context.Context, id string) (chatID string, m chat.Message, err error)
}

// eventBytes approximates the payload of an event without the data of its message.
const eventBytes = 512

// Replies returns the last reply to a visitor in the stream, and when it was stored there.
type Replies interface {
	LastReply(ctx context.Context, appID, chatUserID string) (event.Reply, time.Time, error)
}

// Config holds the dependencies of a [Service].
type Config struct {
	Applications Applications
	Directory    Directory
	Chats        Chats
	Receipts     Receipts
	Unread       Unread
	Signals      Signals
	Agents       *Agents // nil: the agents' presence is unknown
	Replies      Replies
	Bots         Bots
	Publisher    event.MeteredPublisher
	Controls     Controls
	Visitors     Visitors
	Changed      func(ctx context.Context, chatUserID string) // invalidates a visitor's profile in all caches
	Reads        *Reads                                       // nil: unlimited
	Logger       *slog.Logger
	Now          func() time.Time
}

// Service serves visitors with valid tokens.
type Service struct{ cfg Config }

// New returns the service.
func New(cfg Config) *Service { return &Service{cfg: cfg} }

// Answer is a page of the history of a visitor's chat.
type Answer struct {
	ChatID   string
	Messages []chat.Message // ascending
	More     bool           // there are earlier messages
	Slot     *slot.Slot     // the memory of the page, which the writer of the answer reports to
	Reading  *Reading       // nil on earlier pages, or if it is unknown
}

// History calls answer once with a page of the visitor's open chat, and returns its error. The last page has
// every reply that was published before History was called. The page counts against the memory of all reads
// until answer returns. Errors: Unauthenticated if the visitor does not exist or the token is revoked,
// NotFound without an open chat or without the application, Invalid if q.Before is not a message of this
// chat, Unavailable when too many reads wait.
func (d *Service) History(ctx context.Context, who credential.VisitorClaims, p Page, answer func(Answer) error) error {
	c, err := d.current(ctx, who)
	if err != nil {
		return err
	}
	return d.answerHistory(ctx, c, p, answer)
}

func (d *Service) answerHistory(ctx context.Context, c chat.Chat, p Page, answer func(Answer) error) error {
	page, err := d.recorded(ctx, c, p)
	if err != nil {
		return asNoChat(err)
	}
	defer page.held.Release()
	a := Answer{ChatID: c.ID, Messages: page.messages, More: page.more, Slot: page.held}
	receipts, err := d.cfg.Receipts.ChatReceipts(ctx, c.ID)
	if err != nil {
		d.cfg.Logger.WarnContext(
			ctx, "reporting deliveries failed, a later history reports them", "chatId", c.ID, "error", err,
		)
		return answer(a)
	}
	d.delivered(ctx, c, receipts.Undelivered, page.messages)
	if p.Before == "" {
		a.Reading = d.readingOf(ctx, c, receipts, page)
	}
	return answer(a)
}

// Write accepts a valid draft, which the account pays for, and returns its message. It opens a chat when none
// is open. Errors: Unauthenticated if the visitor does not exist, NotFound if the application does not,
// TooMany if a budget is used up. The message gets the identity's id and time, or new ones if the identity is
// zero.
func (d *Service) Write(
	ctx context.Context, who credential.VisitorClaims, payer event.Account, draft Draft, identity chat.MessageIdentity,
) (chat.Message, error) {
	visitor, app, err := d.admit(ctx, who)
	if err != nil {
		return chat.Message{}, err
	}
	if identity.ID == "" {
		identity = chat.NewMessageIdentity(d.now())
	}
	m := chat.Message{
		ID:           identity.ID,
		CreatedAt:    identity.At,
		Type:         draft.Type,
		Data:         draft.Data,
		NameOfSender: visitor.Name(),
	}
	if identity.Again { // in the chat that was open at the first attempt, which may not be today's
		_, _, err := d.cfg.Chats.FindMessage(ctx, identity.ID)
		if !apperr.Is(err, apperr.NotFound) {
			return m, err
		}
	}
	if payer, err = d.cfg.Publisher.Charge(ctx, payer, len(m.Data)+eventBytes); err != nil {
		return chat.Message{}, err
	}
	c, _, err := d.cfg.Chats.OpenChat(
		ctx,
		visitor,
		store.NewChat{Channel: chat.ChannelWidget, Now: identity.At, AgentsOnly: app.Support.AgentsOnly},
	)
	if err != nil {
		return chat.Message{}, err
	}
	err = d.cfg.Publisher.Publish(ctx, payer, event.VisitorMessageAccepted{
		CompanyID: visitor.CompanyID, AppID: visitor.AppID, ChatUserID: visitor.ID, ChatID: c.ID, Message: m,
	})
	if err != nil {
		return chat.Message{}, err
	}
	d.record(ctx, c.ID, m)
	return m, nil
}

// record appends the message to the history at once, so that the visitor's next read has it. A failure does
// not reject the message: the recorder appends it from the stream, and appending is idempotent.
func (d *Service) record(ctx context.Context, chatID string, m chat.Message) {
	if err := d.cfg.Chats.AppendMessage(context.WithoutCancel(ctx), chatID, m); err != nil {
		d.cfg.Logger.WarnContext(ctx, "appending a message failed, the recorder appends it from the stream",
			"chatId", chatID, "messageId", m.ID, "error", err)
	}
}

// now returns the time in milliseconds, the resolution of stored chats.
func (d *Service) now() time.Time { return d.cfg.Now().UTC().Truncate(time.Millisecond) }

// admit returns the visitor of the token and its application. Errors: Unauthenticated if the visitor does not
// exist, the token is revoked, or the application requires a proof of identity that the visitor has not given
// (a token from before that setting only allows registering again); NotFound if the application does not
// exist.
func (d *Service) admit(
	ctx context.Context,
	who credential.VisitorClaims,
) (v chat.Visitor, app chat.Application, err error) {
	v, err = d.cfg.Directory.Visitor(ctx, who.ChatUserID)
	switch {
	case apperr.Is(err, apperr.NotFound):
		return v, app, apperr.Unauthorized.New()
	case err != nil:
		return v, app, err
	case v.AppID != who.AppID || v.CompanyID != who.CompanyID:
		return v, app, apperr.Unauthorized.New()
	case !who.IssuedSince(v.TokensValidFrom):
		return v, app, apperr.TokenRevoked()
	}
	app, err = d.cfg.Applications.FindWidget(ctx, v.AppID)
	if err == nil && app.Identity.Required() && v.VerifiedBy == "" {
		err = apperr.Unauthorized.New()
	}
	return v, app, err
}

// asNoChat turns every NotFound into CHAT_NOT_FOUND: the visitor has asked for the chat only.
func asNoChat(err error) error {
	if apperr.Is(err, apperr.NotFound) {
		return apperr.ChatNotFound.New()
	}
	return err
}
