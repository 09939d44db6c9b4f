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

// Read advances the visitor's read cursor to a message of the open chat, and reports messages that wait for a
// read receipt. Errors: Unauthenticated if the visitor does not exist; NotFound if the message is not in the
// open chat, or the chat or the application does not exist.
func (d *Service) Read(ctx context.Context, who credential.VisitorClaims, messageID string) error {
	c, err := d.current(ctx, who)
	if err != nil {
		return err
	}
	return d.readUpTo(ctx, c, messageID)
}

// current returns the visitor's open chat.
func (d *Service) current(ctx context.Context, who credential.VisitorClaims) (chat.Chat, error) {
	visitor, _, err := d.admit(ctx, who)
	if err != nil {
		return chat.Chat{}, asNoChat(err)
	}
	c, err := store.CurrentChat(ctx, d.cfg.Chats, visitor, d.now())
	return c, asNoChat(err)
}

func (d *Service) readUpTo(ctx context.Context, c chat.Chat, messageID string) error {
	if id, ok := chat.ParseID(messageID); ok {
		messageID = id
	}
	m, err := d.message(ctx, c, messageID)
	if err != nil {
		return err
	}
	now := d.now()
	unread, err := d.cfg.Receipts.ReadUpTo(ctx, c.ID, m, now)
	if err != nil {
		return err
	}
	_ = d.cfg.Signals.Signal(event.ReadCursorMoved{ // best effort: the store has it, and the history shows it
		CompanyID:  c.CompanyID,
		AppID:      c.AppID,
		ChatUserID: c.ChatUserID,
		ChatID:     c.ID,
		Side:       subject.SideVisitor,
		MessageID:  m.ID,
		UpTo:       m.CreatedAt,
	})
	return d.report(ctx, c, unread, chat.StatusRead, now)
}

// message finds a message of the chat. The visitor may have received it over the socket a moment ago, before
// the recorder has written it.
func (d *Service) message(ctx context.Context, c chat.Chat, id string) (chat.Message, error) {
	m, err := d.stored(ctx, c, id)
	if !apperr.Is(err, apperr.NotFound) {
		return m, err
	}
	reply, at, lastErr := d.cfg.Replies.LastReply(ctx, c.AppID, c.ChatUserID)
	if lastErr != nil || reply.ChatID != c.ID || d.cfg.Now().Sub(at) > recorderLag {
		return m, err
	}
	if reply.Message.ID == id {
		return reply.Message, nil
	}
	waiting, stop := context.WithTimeout(ctx, recorderWait)
	defer stop()
	for pause := recorderPause; ; pause *= 2 {
		select {
		case <-time.After(pause):
		case <-waiting.Done():
			return m, err
		}
		if m, err = d.stored(ctx, c, id); !apperr.Is(err, apperr.NotFound) {
			return m, err
		}
	}
}

// stored finds a message in the history of the chat; NotFound also if it belongs to another chat.
func (d *Service) stored(ctx context.Context, c chat.Chat, id string) (chat.Message, error) {
	chatID, m, err := d.cfg.Chats.FindMessage(ctx, id)
	if err != nil {
		return chat.Message{}, err
	}
	if chatID != c.ID {
		return chat.Message{}, apperr.MessageNotFound.New()
	}
	return m, nil
}

// delivered reports the messages of a history as delivered: this is how a visitor who was offline gets them.
// A failure does not fail the request; the next history reports them again.
func (d *Service) delivered(ctx context.Context, c chat.Chat, waiting []string, history []chat.Message) {
	if len(waiting) == 0 {
		return
	}
	there := make(map[string]bool, len(history))
	for _, m := range history {
		there[m.ID] = true
	}
	waiting = slices.DeleteFunc(waiting, func(id string) bool { return !there[id] })
	if err := d.report(ctx, c, waiting, chat.StatusDelivered, d.now()); err != nil && ctx.Err() == nil {
		d.cfg.Logger.WarnContext(
			ctx, "reporting deliveries failed, a later history reports them", "chatId", c.ID, "error", err,
		)
	}
}

// report returns nil when the stream has stored every report.
func (d *Service) report(ctx context.Context, c chat.Chat, messageIDs []string, status string, at time.Time) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reportsAtOnce)
	for _, id := range messageIDs {
		group.Go(func() error {
			return d.cfg.Publisher.Publish(ctx, event.Derived(), event.MessageStatusChanged{
				CompanyID: c.CompanyID, MessageID: id, Status: status, At: at, ChatID: c.ID,
			})
		})
	}
	return group.Wait()
}
