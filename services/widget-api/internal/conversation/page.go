package conversation

import (
	"context"
	"slices"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/slot"
	"github.com/parley-chat/parley/pkg/store"
)

// Limits of one answer; the newest messages are kept.
const (
	MaxPage      = 1000    // messages
	maxPageBytes = 2 << 20 // of data
)

// Page selects a part of a history; the zero value selects the end, up to the limits of one answer.
type Page struct {
	Limit  int    // maximum number of messages, up to MaxPage; 0: MaxPage
	Before string // the id of the message before which the page ends; empty: the end of the history
}

// page is a part of a history in memory. It counts against the memory of all reads until it is released.
type page struct {
	messages []chat.Message
	more     bool // there are earlier messages
	held     *slot.Slot
}

// read returns the page as stored now.
func (d *Service) read(ctx context.Context, c chat.Chat, p Page) (page, error) {
	limit := MaxPage
	if p.Limit > 0 {
		limit = min(p.Limit, MaxPage)
	}
	held, err := d.cfg.Reads.acquire(ctx, c.AppID, c.ChatUserID)
	if err != nil {
		return page{}, err
	}
	messages, more, err := d.cfg.Chats.History(
		ctx,
		c.ID,
		store.HistoryQuery{Before: p.Before, Limit: limit, MaxBytes: maxPageBytes},
	)
	if err != nil {
		held.Release()
		return page{}, err
	}
	held.Shrink(sizeOf(messages))
	return page{messages: messages, more: more, held: held}, nil
}

// sizeOf estimates the memory of the messages.
func sizeOf(messages []chat.Message) (bytes int64) {
	const record = 512 // without the data
	for _, m := range messages {
		bytes += int64(len(m.Data)) + record
	}
	return bytes
}

// covers reports whether the last page shows m once m is recorded: the page contains m, or starts after it.
func (p page) covers(m chat.Message) bool {
	if p.more && chat.CompareMessages(m, p.messages[0]) < 0 {
		return true
	}
	return slices.ContainsFunc(p.messages, func(have chat.Message) bool { return have.ID == m.ID })
}
