package conversation

import (
	"context"
	"slices"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// Bounds of one answer; the newest messages are kept.
const (
	MaxPage      = 1000    // messages
	maxPageBytes = 2 << 20 // of data
)

// Page is the part of a history that a visitor asks for; the zero value is as much of its end as one answer holds.
type Page struct {
	Limit  int    // at most so many messages, up to MaxPage; 0: MaxPage
	Before string // the id of the message before which the page ends; empty: the end of the history
}

// read returns the page as it is stored now, and whether there are earlier messages.
func (d *Desk) read(ctx context.Context, c chat.Chat, p Page) (messages []chat.Message, more bool, err error) {
	limit := MaxPage
	if p.Limit > 0 {
		limit = min(p.Limit, MaxPage)
	}
	return d.cfg.Chats.History(ctx, c.ID, store.HistoryQuery{Before: p.Before, Limit: limit, MaxBytes: maxPageBytes})
}

// covers reports whether the last page shows m if m is recorded: it contains m, or begins after it.
func covers(page []chat.Message, more bool, m chat.Message) bool {
	if more && chat.CompareMessages(m, page[0]) < 0 {
		return true
	}
	return slices.ContainsFunc(page, func(p chat.Message) bool { return p.ID == m.ID })
}
