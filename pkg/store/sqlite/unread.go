package sqlite

import (
	"cmp"
	"context"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/chat"
)

// afterCursor scans the table in order from the cursor on; reading stops at the limit.
const afterCursor = `SELECT m.from_support FROM messages m
	WHERE m.chat = (SELECT key FROM chats WHERE id = ?1) AND (m.created_at, m.id) > (?2, ?3)`

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
		err = c.query(afterCursor, func(r *row) bool {
			if r.bool() == fromSupport {
				n++
			}
			return n < limit
		}, chatID, at, last)
		return n, err
	})
}
