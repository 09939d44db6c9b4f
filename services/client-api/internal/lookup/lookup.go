// Package lookup looks up a company's chats, their messages and its templates. It finds nothing of another company.
package lookup

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// MaxPageBytes bounds the data of one page of messages.
const MaxPageBytes = 2 << 20

const (
	// MaxTemplateBytes bounds one page of templates; the last one may be beyond it.
	MaxTemplateBytes = 1 << 20
	// templateBatch is the size of one read of templates, each of which may have 125 KiB.
	templateBatch = 16
	// templateScan is the maximum that a page with a status filter reads.
	templateScan = 1000
)

// Store reads the records.
type Store interface {
	Chat(ctx context.Context, id string) (chat.Chat, error)
	Visitor(ctx context.Context, chatUserID string) (chat.Visitor, error)
	Inbox(
		ctx context.Context,
		f store.InboxFilter,
		p store.InboxPage,
	) (entries []store.InboxEntry, next *store.InboxCursor, err error)
	History(ctx context.Context, chatID string, q store.HistoryQuery) (messages []chat.Message, more bool, err error)
	Templates(ctx context.Context, companyID string, p store.Page) ([]chat.MessageTemplate, error)
}

// Service reads from the store without a cache.
type Service struct {
	store Store
	now   func() time.Time
}

// New returns the service.
func New(s Store, now func() time.Time) *Service { return &Service{store: s, now: now} }

// Chats lists a company's chats with their visitors, the last activity first, and the cursor of the next
// page, or nil. A page may be short and still have a next one.
func (s *Service) Chats(
	ctx context.Context,
	companyID string,
	f store.InboxFilter,
	p store.InboxPage,
) ([]store.InboxEntry, *store.InboxCursor, error) {
	f.CompanyID = companyID
	f.Now = s.now()
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

// Messages returns the id of a company's chat, a page of its messages in ascending order, and whether there
// are earlier messages. Errors: NotFound (no such chat), Invalid (q.Before is not a message of this chat).
func (s *Service) Messages(
	ctx context.Context,
	companyID, chatID string,
	q store.HistoryQuery,
) (id string, messages []chat.Message, more bool, err error) {
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

// Templates lists a company's templates ordered by id, optionally only those with the status, and the id
// after which the next page starts, or "". A page may be short and still have a next one.
func (s *Service) Templates(
	ctx context.Context,
	companyID, status string,
	p store.Page,
) (found []chat.MessageTemplate, next string, err error) {
	found = []chat.MessageTemplate{}
	size := 0
	for scanned := 0; scanned < templateScan; scanned += templateBatch {
		batch, err := s.store.Templates(ctx, companyID, store.Page{After: p.After, Limit: templateBatch})
		if err != nil {
			return nil, "", err
		}
		for _, t := range batch {
			if len(found) == p.Limit || size >= MaxTemplateBytes {
				return found, p.After, nil
			}
			p.After = t.ID
			if status == "" || t.Status == status {
				found = append(found, t)
				size += store.SizeOfTemplate(t)
			}
		}
		if len(batch) < templateBatch {
			return found, "", nil
		}
	}
	return found, p.After, nil
}

// ChatStatus returns the chat's current status.
func (s *Service) ChatStatus(c chat.Chat) chat.Status { return c.Status(s.now()) }
