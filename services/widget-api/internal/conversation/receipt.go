package conversation

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Receipts finds messages that wait for delivery and read receipts; see [store.Store].
type Receipts interface {
	ChatReceipts(ctx context.Context, chatID string) (store.ChatReceipts, error)
	ReadUpTo(ctx context.Context, chatID string, m chat.Message, at time.Time) (unread []string, err error)
}

// reportsAtOnce bounds the reports that are published concurrently.
const reportsAtOnce = 16

// MarkRead advances the visitor's read cursor to a message of the open chat, and reports messages that wait for
// a read receipt. Errors: Unauthenticated if the visitor does not exist; NotFound if the message is not in the
// open chat, or the chat or the application does not exist.
func (s *Service) MarkRead(ctx context.Context, who credential.VisitorClaims, messageID string) error {
	c, err := s.currentChat(ctx, who)
	if err != nil {
		return err
	}
	return s.markReadUpTo(ctx, c, messageID)
}

// currentChat returns the visitor's open chat.
func (s *Service) currentChat(ctx context.Context, who credential.VisitorClaims) (chat.Chat, error) {
	visitor, _, err := s.visitorAndApplication(ctx, who)
	if err != nil {
		return chat.Chat{}, asNoChat(err)
	}
	c, err := store.CurrentChat(ctx, s.cfg.Chats, visitor, s.now())
	return c, asNoChat(err)
}

func (s *Service) markReadUpTo(ctx context.Context, c chat.Chat, messageID string) error {
	if id, ok := chat.ParseID(messageID); ok {
		messageID = id
	}
	m, err := s.findMessage(ctx, c, messageID)
	if err != nil {
		return err
	}
	now := s.now()
	unread, err := s.cfg.Receipts.ReadUpTo(ctx, c.ID, m, now)
	if err != nil {
		return err
	}
	_ = s.cfg.Signals.Signal(event.ReadCursorMoved{ // best effort: the store has it, and the history shows it
		CompanyID:  c.CompanyID,
		AppID:      c.AppID,
		ChatUserID: c.ChatUserID,
		ChatID:     c.ID,
		Side:       subject.SideVisitor,
		MessageID:  m.ID,
		UpTo:       m.CreatedAt,
	})
	return s.report(ctx, c, unread, chat.StatusRead, now)
}

// findMessage finds a message of the chat. The visitor may have received it over the socket a moment ago, before
// the recorder has stored it: then it is in the stream.
func (s *Service) findMessage(ctx context.Context, c chat.Chat, id string) (chat.Message, error) {
	m, err := s.findStored(ctx, c, id)
	created, ok := chat.IDTime(id)
	if !apperr.Is(err, apperr.NotFound) || !ok {
		return m, err
	}
	for reply, readErr := range s.cfg.Replies.RepliesSince(ctx, c.AppID, c.ChatUserID, created.Add(-createdAhead)) {
		if readErr != nil {
			return m, readErr
		}
		if reply.ChatID == c.ID && reply.Message.ID == id {
			return reply.Message, nil
		}
	}
	return m, err
}

// findStored finds a message in the history of the chat; NotFound also if it belongs to another chat.
func (s *Service) findStored(ctx context.Context, c chat.Chat, id string) (chat.Message, error) {
	chatID, m, err := s.cfg.Chats.FindMessage(ctx, id)
	if err != nil {
		return chat.Message{}, err
	}
	if chatID != c.ID {
		return chat.Message{}, apperr.MessageNotFound.New()
	}
	return m, nil
}

// reportDelivered reports the messages of a history as delivered: this is how a visitor who was offline gets
// them. A failure does not fail the request; the next history reports them again.
func (s *Service) reportDelivered(ctx context.Context, c chat.Chat, waiting []string, history []chat.Message) {
	if len(waiting) == 0 {
		return
	}
	there := make(map[string]bool, len(history))
	for _, m := range history {
		there[m.ID] = true
	}
	waiting = slices.DeleteFunc(waiting, func(id string) bool { return !there[id] })
	if err := s.report(ctx, c, waiting, chat.StatusDelivered, s.now()); err != nil && ctx.Err() == nil {
		s.cfg.Logger.WarnContext(
			ctx, "reporting deliveries failed, a later history reports them", "chatId", c.ID, "error", err,
		)
	}
}

// report returns nil when the stream has stored every report.
func (s *Service) report(ctx context.Context, c chat.Chat, messageIDs []string, status string, at time.Time) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reportsAtOnce)
	for _, id := range messageIDs {
		group.Go(func() error {
			return s.cfg.Publisher.Publish(ctx, event.Derived(), event.MessageStatusChanged{
				CompanyID: c.CompanyID, MessageID: id, Status: status, At: at, ChatID: c.ID,
			})
		})
	}
	return group.Wait()
}
