// Package conversation is a visitor's chats: their histories, and the visitor's messages.
//
// What a visitor writes: draft.go validates messages, upload.go receives files, conversation.go publishes. What a
// visitor reads: page.go loads a page of a history, page_memory.go bounds the memory of pages, chats.go lists
// earlier chats. Read cursors: receipt.go moves a cursor and reports receipts, reading.go shows how far both
// sides have read. support.go does what concerns agents: handover, offline messages, ratings; stop.go stops a
// bot that streams.
package conversation

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/idempotency"
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

// Replies reads the replies to a visitor from the stream.
type Replies interface {
	// LastReply returns the last one, and when the stream stored it.
	LastReply(ctx context.Context, appID, chatUserID string) (event.Reply, time.Time, error)
	// RepliesSince yields those that the stream has stored since a time, in order, at most MaxPage. It ends after an
	// error.
	RepliesSince(ctx context.Context, appID, chatUserID string, at time.Time) iter.Seq2[event.Reply, error]
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
	PageMemory   *PageMemory                                  // nil: unlimited
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
// every reply that was published before History was called. The page counts against the [PageMemory] until
// answer returns. Errors: Unauthenticated if the visitor does not exist or the token is revoked, NotFound
// without an open chat or without the application, Invalid if q.Before is not a message of this chat,
// Unavailable when too many pages wait for memory, or the stream of replies cannot be read.
func (s *Service) History(
	ctx context.Context,
	who credential.VisitorClaims,
	q PageQuery,
	answer func(Answer) error,
) error {
	c, err := s.currentChat(ctx, who)
	if err != nil {
		return err
	}
	return s.answerHistory(ctx, c, q, answer)
}

func (s *Service) answerHistory(ctx context.Context, c chat.Chat, q PageQuery, answer func(Answer) error) error {
	page, err := s.loadPage(ctx, c, q)
	if err != nil {
		return asNoChat(err)
	}
	defer page.slot.Release()
	a := Answer{ChatID: c.ID, Messages: page.messages, More: page.more, Slot: page.slot}
	receipts, err := s.cfg.Receipts.ChatReceipts(ctx, c.ID)
	if err != nil {
		s.cfg.Logger.WarnContext(
			ctx, "reporting deliveries failed, a later history reports them", "chatId", c.ID, "error", err,
		)
		return answer(a)
	}
	s.reportDelivered(ctx, c, receipts.Undelivered, page.messages)
	if q.Before == "" {
		a.Reading = s.readingOfPage(ctx, c, receipts.ReadUpTo, page)
	}
	return answer(a)
}

// Write accepts a valid draft, which the account pays for, and returns its message. It opens a chat when none
// is open. Errors: Unauthenticated if the visitor does not exist, NotFound if the application does not,
// TooMany if a budget is used up. The message gets the identity's id and time, or new ones if the identity is
// zero.
func (s *Service) Write(
	ctx context.Context, who credential.VisitorClaims, payer event.Account, draft Draft, identity chat.MessageIdentity,
) (chat.Message, error) {
	visitor, app, err := s.visitorAndApplication(ctx, who)
	if err != nil {
		return chat.Message{}, err
	}
	if identity.ID == "" {
		identity = chat.NewMessageIdentity(s.cfg.Now())
	}
	m := chat.Message{
		ID:           identity.ID,
		CreatedAt:    identity.At,
		Type:         draft.Type,
		Data:         draft.Data,
		NameOfSender: visitor.Name(),
	}
	chatID, sent, err := idempotency.SentBefore(ctx, s.cfg.Chats, identity)
	if err != nil {
		return chat.Message{}, err
	}
	if sent {
		return m, s.publishAndRecord(ctx, payer, visitor, chatID, m)
	}
	payer, c, err := s.chargeAndOpen(ctx, payer, visitor, app, identity.At, len(m.Data)+eventBytes)
	if err != nil {
		return chat.Message{}, err
	}
	if err := s.publishAndRecord(ctx, payer, visitor, c.ID, m); err != nil {
		return chat.Message{}, err
	}
	return m, nil
}

// chargeAndOpen charges a message of that many bytes, and then returns the visitor's open chat: a new one if none
// is open. In this order, a refused message opens no chat. The returned account has paid for the message.
func (s *Service) chargeAndOpen(
	ctx context.Context,
	payer event.Account,
	visitor chat.Visitor,
	app chat.Application,
	now time.Time,
	bytes int,
) (event.Account, chat.Chat, error) {
	payer, err := s.cfg.Publisher.Charge(ctx, payer, event.ChargedBytes(event.VisitorMessageAccepted{}, bytes))
	if err != nil {
		return payer, chat.Chat{}, err
	}
	fresh := store.NewChat{Channel: chat.ChannelWidget, Now: now, AgentsOnly: app.Support.AgentsOnly}
	c, _, err := s.cfg.Chats.OpenChat(ctx, visitor, fresh)
	return payer, c, err
}

// publishAndRecord accepts the message: once it is published, it is not lost. Then it appends the message to the
// history at once, so that the visitor's next read has it. If that fails, the message stays accepted: the
// recorder appends it from the stream, and appending is idempotent.
//
// It does so again for the message of an earlier attempt ([idempotency.SentBefore]), in the chat that was open then:
// the recorder may have stored it from an event that a power cut took before it was accepted. If the stream still has
// the event, it drops the second one, or its consumers know it by its id.
func (s *Service) publishAndRecord(
	ctx context.Context,
	payer event.Account,
	visitor chat.Visitor,
	chatID string,
	m chat.Message,
) error {
	err := s.cfg.Publisher.Publish(ctx, payer, event.VisitorMessageAccepted{
		CompanyID:  visitor.CompanyID,
		AppID:      visitor.AppID,
		ChatUserID: visitor.ID,
		ChatID:     chatID,
		Message:    m,
		Site:       event.SiteGroup(payer.Address),
	})
	if err != nil {
		return err
	}
	if err := s.cfg.Chats.AppendMessage(context.WithoutCancel(ctx), chatID, m); err != nil {
		s.cfg.Logger.WarnContext(
			ctx, "appending a message failed, the recorder appends it from the stream", "chatId", chatID,
			"messageId", m.ID, "error", err,
		)
	}
	return nil
}

// now returns the time in milliseconds, the resolution of stored chats.
func (s *Service) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Millisecond) }

// visitorAndApplication loads the visitor of the token and its application. Errors: Unauthenticated if the
// visitor does not exist, the token is revoked, or the application requires a proof of identity that the visitor
// has not given (a token from before that setting only allows registering again); NotFound if the application
// does not exist.
func (s *Service) visitorAndApplication(
	ctx context.Context,
	who credential.VisitorClaims,
) (v chat.Visitor, app chat.Application, err error) {
	v, err = s.cfg.Directory.Visitor(ctx, who.ChatUserID)
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
	app, err = s.cfg.Applications.FindWidget(ctx, v.AppID)
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
