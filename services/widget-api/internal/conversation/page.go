package conversation

import (
	"context"
	"slices"

	"github.com/parley-chat/parley/pkg/chat"
)

// Page is which part of a history is asked for; the zero value is all of it.
type Page struct {
	Limit  int    // how many messages at most; 0: all
	Before string // the id of the message before which the page ends; empty: it is the last page
}

// read returns the page as it stands, and whether there are earlier messages.
func (d *Desk) read(ctx context.Context, c chat.Chat, p Page) (messages []chat.Message, more bool, err error) {
	if p.Limit == 0 {
		messages, err = d.cfg.Chats.History(ctx, c.ID)
		return messages, false, err
	}
	return d.cfg.Chats.HistoryPage(ctx, c.ID, p.Before, p.Limit)
}

// covers reports whether a last page shows m if m is recorded: it has it, or begins behind it.
func covers(page []chat.Message, more bool, m chat.Message) bool {
	if more && chat.CompareMessages(m, page[0]) < 0 {
		return true
	}
	return slices.ContainsFunc(page, func(p chat.Message) bool { return p.ID == m.ID })
}
