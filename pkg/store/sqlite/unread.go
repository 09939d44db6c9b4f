package sqlite

import (
	"context"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

// CountUnread implements [store.Messages]. It subtracts the totals at the cursor from those of the last message.
func (s *Store) CountUnread(
	ctx context.Context,
	chatID string,
	fromSupport bool,
	after chat.ReadCursor,
	limit int,
) (int, error) {
	upTo, last := after.Last()
	at := microseconds(upTo)
	return read(ctx, s, "counting unread messages", func(c *conn) (int, error) {
		key, err := chatKey(c, chatID)
		if apperr.Is(err, apperr.NotFound) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		unread, err := totalsAfter(c, key, at, last)
		if fromSupport {
			return min(int(unread.company), limit), err
		}
		return min(int(unread.visitor), limit), err
	})
}

// totalsAfter returns the number of messages of each side after a time and id.
func totalsAfter(c *conn, key, at int64, id string) (totals, error) {
	var all totals
	unread := false
	_, err := c.first(lastTotals, func(r *row) {
		all = readTotals(r)
		unread = r.bool()
	}, key, at, id)
	if err != nil || !unread {
		return totals{}, err
	}
	upTo, err := readTotalsUpTo(c, key, at, id)
	return totals{company: all.company - upTo.company, visitor: all.visitor - upTo.visitor}, err
}
