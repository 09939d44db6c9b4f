package sqlite

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// awaitReceipt adds a message with pending reports if fewer than the maximum wait in the chat; a repeat changes one.
const awaitReceipt = `
	INSERT INTO awaited_receipts (chat_id, message_id, created_at, undelivered, unread)
	SELECT ?1, ?2, ?3, ?4, TRUE
	WHERE (SELECT count(*) FROM awaited_receipts WHERE chat_id = ?1) < ?5
		OR EXISTS (SELECT 1 FROM awaited_receipts WHERE chat_id = ?1 AND message_id = ?2)
	ON CONFLICT (chat_id, message_id) DO UPDATE SET
		created_at = excluded.created_at, undelivered = max(undelivered, excluded.undelivered), unread = TRUE`

// AwaitReceipts implements [store.Receipts].
func (s *Store) AwaitReceipts(ctx context.Context, chatID string, m chat.Message, delivered bool) (time.Time, error) {
	at := microseconds(m.CreatedAt)
	return write(ctx, s, "awaiting receipts", func(c *conn) (readAt time.Time, err error) {
		if _, err = c.exec(`INSERT OR IGNORE INTO receipts (chat_id) VALUES (?)`, chatID); err != nil {
			return time.Time{}, err
		}
		read, err := c.first(`SELECT read_at FROM receipts WHERE chat_id = ? AND (read_up_to_time, read_up_to_id) >= (?, ?)`,
			func(r *row) { readAt = r.time() }, chatID, at, m.ID)
		if err != nil || read {
			return readAt, err
		}
		_, err = c.exec(awaitReceipt, chatID, m.ID, at, !delivered, store.MaxAwaited)
		return time.Time{}, err
	})
}

// ReadUpTo implements [store.Receipts].
func (s *Store) ReadUpTo(ctx context.Context, chatID string, m chat.Message, at time.Time) ([]string, error) {
	upTo := microseconds(m.CreatedAt)
	return write(ctx, s, "recording how far a visitor has read", func(c *conn) (unread []string, err error) {
		if _, err := c.exec(`INSERT INTO receipts (chat_id, read_up_to_time, read_up_to_id, read_at) VALUES (?, ?, ?, ?)
			ON CONFLICT (chat_id) DO UPDATE SET
				read_up_to_time = excluded.read_up_to_time, read_up_to_id = excluded.read_up_to_id, read_at = excluded.read_at
			WHERE read_up_to_time IS NULL
				OR (excluded.read_up_to_time, excluded.read_up_to_id, excluded.read_at) > (read_up_to_time, read_up_to_id, read_at)`,
			chatID, upTo, m.ID, milliseconds(at)); err != nil {
			return nil, err
		}
		err = c.query(
			`SELECT message_id FROM awaited_receipts WHERE chat_id = ? AND unread AND (created_at, message_id) <= (?, ?)
			ORDER BY message_id LIMIT ?`,
			appendText(&unread),
			chatID,
			upTo,
			m.ID,
			store.MaxAwaited,
		)
		return unread, err
	})
}

// ChatReceipts implements [store.Receipts].
func (s *Store) ChatReceipts(ctx context.Context, chatID string) (store.ChatReceipts, error) {
	return read(ctx, s, "reading a chat's receipts", func(c *conn) (found store.ChatReceipts, err error) {
		if _, err = c.first(`SELECT read_up_to_time, read_up_to_id FROM receipts WHERE chat_id = ?`, func(r *row) {
			found.ReadUpTo = chat.ReadCursor{At: r.entered(), MessageID: r.text()}
		}, chatID); err != nil {
			return found, err
		}
		err = c.query(
			`SELECT message_id FROM awaited_receipts WHERE chat_id = ? AND undelivered ORDER BY message_id`,
			appendText(&found.Undelivered),
			chatID,
		)
		return found, err
	})
}

func appendText(to *[]string) func(*row) bool {
	return func(r *row) bool {
		*to = append(*to, r.text())
		return true
	}
}

// NoteReceipt implements [store.Receipts].
func (s *Store) NoteReceipt(ctx context.Context, chatID, messageID string, read bool) error {
	return update(ctx, s, "recording a receipt", func(c *conn) error {
		if _, err := c.exec(`UPDATE awaited_receipts SET undelivered = FALSE, unread = unread AND NOT ?3 WHERE chat_id = ?1 AND message_id = ?2`,
			chatID, messageID, read); err != nil {
			return err
		}
		_, err := c.exec(
			`DELETE FROM awaited_receipts WHERE chat_id = ? AND message_id = ? AND NOT undelivered AND NOT unread`,
			chatID,
			messageID,
		)
		return err
	})
}
