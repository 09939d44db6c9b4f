package conversation

import (
	"context"
	"slices"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
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
	// recorderLag is how long a recorder that works may take. It stores the replies to one visitor in any order.
	recorderLag = 10 * time.Second
	// recorderDisorder is how much earlier than the newest reply that it has stored one may be that it has not, while
	// it makes up for an outage.
	recorderDisorder = time.Hour
	// createdAhead is how much earlier than the time in its message's id a reply may be in the stream: the process that
	// made the id has another clock.
	createdAhead = 2 * time.Second
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

// loadPage loads a page. The last one has what the recorder has not stored yet. A browser connects its socket and
// then loads the history: a reply that was sent over the socket just before must be in it, or the visitor would see
// it only at the next load.
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
	p := page{messages: messages, more: more, slot: taken}
	if q.Before == "" {
		missing, err := s.unrecorded(ctx, c, p)
		if err != nil {
			taken.Release()
			return page{}, err
		}
		p.add(missing, limit)
	}
	taken.Shrink(sizeOf(p.messages))
	return p, nil
}

// unrecorded returns the replies that are in the stream and not in the last page, nor on earlier ones, up to the
// limits of an answer. It returns Unavailable if the stream cannot be read: without it a page may lack a reply that no
// one sends again.
func (s *Service) unrecorded(ctx context.Context, c chat.Chat, last page) (missing []chat.Message, err error) {
	reply, at, err := s.cfg.Replies.LastReply(ctx, c.AppID, c.ChatUserID)
	if apperr.Is(err, apperr.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	since := s.cfg.Now().Add(-recorderLag)
	switch {
	case reply.ChatID == c.ID && !last.covers(reply.Message):
		if before := last.newestReply(c).Add(-recorderDisorder); before.Before(since) {
			since = before
		}
	case at.Before(since):
		return nil, nil
	}
	bytes := 0
	for reply, err := range s.cfg.Replies.RepliesSince(ctx, c.AppID, c.ChatUserID, since) {
		if err != nil {
			return nil, err
		}
		if bytes > maxPageBytes {
			break
		}
		bytes += len(reply.Message.Data)
		if m := reply.Message; reply.ChatID == c.ID && !last.covers(m) {
			m.IsFromSupport = true // as the recorder does
			missing = append(missing, m)
		}
	}
	return missing, nil
}

// newestReply returns the time of the newest reply on the page; without one that of the chat.
func (p page) newestReply(c chat.Chat) time.Time {
	for _, m := range slices.Backward(p.messages) {
		if m.IsFromSupport {
			return m.CreatedAt
		}
	}
	return c.CreatedAt
}

// add adds messages, and drops the oldest beyond the limits of an answer.
func (p *page) add(messages []chat.Message, limit int) {
	if len(messages) == 0 {
		return
	}
	p.messages = append(p.messages, messages...)
	slices.SortStableFunc(p.messages, chat.CompareMessages)
	p.messages = slices.CompactFunc(p.messages, func(a, b chat.Message) bool { return a.ID == b.ID })
	first := max(0, len(p.messages)-limit)
	for bytes := dataOf(p.messages[first:]); bytes > maxPageBytes && first < len(p.messages)-1; first++ {
		bytes -= len(p.messages[first].Data)
	}
	p.more = p.more || first > 0
	p.messages = slices.Delete(p.messages, 0, first)
}

// sizeOf estimates the memory of the messages.
func sizeOf(messages []chat.Message) (bytes int64) {
	const record = 512 // without the data
	return int64(dataOf(messages) + record*len(messages))
}

// dataOf returns the bytes of the messages' data.
func dataOf(messages []chat.Message) (bytes int) {
	for _, m := range messages {
		bytes += len(m.Data)
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
