package sqlite

import (
	"cmp"
	"context"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/chat"
)

// countAfter counts what a side wrote after the cursor, up to a limit. It reads only the index of that side.
const countAfter = `SELECT count(*) FROM (SELECT 1 FROM messages m
	WHERE m.chat = (SELECT key FROM chats WHERE id = ?1) AND m.from_support = ?2 AND (m.created_at, m.id) > (?3, ?4)
	LIMIT ?5)`

// CountUnread implements [store.Messages].
func (s *Store) CountUnread(
	ctx context.Context,
	chatID string,
	fromSupport bool,
	after chat.ReadCursor,
	limit int,
) (int, error) {
	at := int64(0)
	if !after.At.IsZero() {
		at = milliseconds(after.At)
	}
	last := cmp.Or(after.MessageID, string(utf8.MaxRune)) // after every id
	return read(ctx, s, "counting unread messages", func(c *conn) (n int, err error) {
		err = c.query(countAfter, func(r *row) bool {
			n = int(r.int())
			return true
		}, chatID, fromSupport, at, last, limit)
		return n, err
	})
}
