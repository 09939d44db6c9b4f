// Package record answers what a company looks up: its chats, their messages and its templates. Nothing of another company is found.
package record

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// MaxPageBytes bounds the data of one page of messages.
const MaxPageBytes = 2 << 20

// templateBatch is how many templates are read at once, and templateScan how many a page with a status looks at, at most.
const templateBatch, templateScan = 100, 1000

// Store is where the records are.
type Store interface {
	Chat(ctx context.Context, id string) (chat.Chat, error)
	Visitor(ctx context.Context, chatUserID string) (chat.Visitor, error)
	Inbox(ctx context.Context, f store.InboxFilter, p store.InboxPage) (entries []store.InboxEntry, next *store.InboxCursor, err error)
	History(ctx context.Context, chatID string, q store.HistoryQuery) (messages []chat.Message, more bool, err error)
	Templates(ctx context.Context, companyID string, p store.Page) ([]chat.MessageTemplate, error)
}

// Service reads what is stored now; it keeps no cache.
type Service struct {
	store Store
	now   func() time.Time
}

// New returns the service.
func New(s Store, now func() time.Time) *Service { return &Service{store: s, now: now} }

// Chats lists a company's chats with their visitors, the last activity first, and where the next page begins; nil: there is none. A
// page may be short and still have a next one.
func (s *Service) Chats(ctx context.Context, companyID string, f store.InboxFilter, p store.InboxPage) ([]store.InboxEntry, *store.InboxCursor, error) {
	f.CompanyID, f.Now = companyID, s.now()
	return s.store.Inbox(ctx, f, p)
}

// Chat returns a company's chat with its visitor, or NotFound.
func (s *Service) Chat(ctx context.Context, companyID, chatID string) (store.InboxEntry, error) {
	c, err := s.owned(ctx, companyID, chatID)
	if err != nil {
		return store.InboxEntry{}, err
	}
	v, err := s.store.Visitor(ctx, c.ChatUserID)
	if apperr.Is(err, apperr.NotFound) {
		err = nil
	}
	return store.InboxEntry{Chat: c, Visitor: v}, err
}

// Messages returns the id of a company's chat, a page of its messages, ascending, and whether there are earlier messages. Errors: NotFound (no such chat),
// Invalid (q.Before is no message of this chat).
func (s *Service) Messages(ctx context.Context, companyID, chatID string, q store.HistoryQuery) (id string, messages []chat.Message, more bool, err error) {
	c, err := s.owned(ctx, companyID, chatID)
	if err != nil {
		return "", nil, false, err
	}
	q.MaxBytes = MaxPageBytes
	messages, more, err = s.store.History(ctx, c.ID, q)
	return c.ID, messages, more, err
}

func (s *Service) owned(ctx context.Context, companyID, chatID string) (chat.Chat, error) {
	id, ok := chat.ParseID(chatID)
	if !ok {
		return chat.Chat{}, apperr.ChatNotFound.New()
	}
	c, err := s.store.Chat(ctx, id)
	if err == nil && c.CompanyID != companyID {
		return chat.Chat{}, apperr.ChatNotFound.New()
	}
	return c, err
}

// Templates lists a company's templates ordered by id, those with the status if it is not empty, and the id after which the next page
// begins; empty: there is none. A page may be short and still have a next one.
func (s *Service) Templates(ctx context.Context, companyID, status string, p store.Page) (found []chat.MessageTemplate, next string, err error) {
	found = []chat.MessageTemplate{}
	for scanned := 0; scanned < templateScan; scanned += templateBatch {
		batch, err := s.store.Templates(ctx, companyID, store.Page{After: p.After, Limit: templateBatch})
		if err != nil {
			return nil, "", err
		}
		for _, t := range batch {
			if len(found) == p.Limit {
				return found, p.After, nil
			}
			if p.After = t.ID; status == "" || t.Status == status {
				found = append(found, t)
			}
		}
		if len(batch) < templateBatch {
			return found, "", nil
		}
	}
	return found, p.After, nil
}

// Status is the chat's status now.
func (s *Service) Status(c chat.Chat) chat.Status { return c.Status(s.now()) }
