package conversation

import (
	"context"
	"slices"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/slot"
	"github.com/parley-chat/parley/pkg/store"
)

// Limits of one answer; the newest messages are kept.
const (
	MaxPage      = 1000    // messages
	maxPageBytes = 2 << 20 // of data
)

const (
	// recorderLag is how long a reader waits for a late recorder: after that the recorder is down, or has
	// given the reply up.
	recorderLag = 10 * time.Second
	// recorderWait bounds one wait; recorderPause is the time before the second read, doubled after each.
	recorderWait  = time.Second
	recorderPause = 5 * time.Millisecond
)

// PageQuery selects a part of a history; the zero value selects the end, up to the limits of one answer.
type PageQuery struct {
	Limit   int    // maximum number of messages, up to MaxPage; 0: MaxPage
	Before  string // the id of the message before which the page ends; empty: the end of the history
	Address string // of the client, see [PageMemory]
}

// page is a part of a history in memory. It counts against the [PageMemory] until its slot is released.
type page struct {
	messages []chat.Message
	more     bool // there are earlier messages
	slot     *slot.Slot
}

// pageWithLastReply loads a page once the recorder has written the last reply. A browser connects its socket
// and then loads the history: a reply sent over the socket just before must be in it, or the visitor would see
// it only at the next load. If the last reply is unknown, or the wait takes too long, the page is returned as
// stored. Earlier pages do not wait.
func (s *Service) pageWithLastReply(ctx context.Context, c chat.Chat, q PageQuery) (page, error) {
	if q.Before != "" {
		return s.loadPage(ctx, c, q)
	}
	reply, at, err := s.cfg.Replies.LastReply(ctx, c.AppID, c.ChatUserID)
	if err != nil || reply.ChatID != c.ID || s.cfg.Now().Sub(at) > recorderLag {
		return s.loadPage(ctx, c, q)
	}
	waiting, stop := context.WithTimeout(ctx, recorderWait)
	defer stop()
	for pause := recorderPause; ; pause *= 2 {
		found, err := s.loadPage(ctx, c, q)
		if err != nil || found.covers(reply.Message) || waiting.Err() != nil {
			return found, err
		}
		found.slot.Release() // hold no memory while waiting
		select {
		case <-time.After(pause):
		case <-waiting.Done():
			if ctx.Err() != nil {
				return page{}, ctx.Err()
			}
		}
	}
}

// loadPage returns the page as stored now.
func (s *Service) loadPage(ctx context.Context, c chat.Chat, q PageQuery) (page, error) {
	limit := MaxPage
	if q.Limit > 0 {
		limit = min(q.Limit, MaxPage)
	}
	taken, err := s.cfg.PageMemory.acquire(ctx, c.AppID, c.ChatUserID, q.Address)
	if err != nil {
		return page{}, err
	}
	messages, more, err := s.cfg.Chats.History(
		ctx,
		c.ID,
		store.HistoryQuery{Before: q.Before, Limit: limit, MaxBytes: maxPageBytes},
	)
	if err != nil {
		taken.Release()
		return page{}, err
	}
	taken.Shrink(sizeOf(messages))
	return page{messages: messages, more: more, slot: taken}, nil
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
