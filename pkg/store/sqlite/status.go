package sqlite

import (
	"context"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

const statusColumns = `chat_id, accepted_at, stored_at, delivered_at, read_at, failed_at, failure_reason`

func readStatus(r *row) chat.MessageStatus {
	return chat.MessageStatus{
		ChatID: r.text(), AcceptedAt: r.time(), StoredAt: r.time(), DeliveredAt: r.time(), ReadAt: r.time(),
		Failure: chat.Failure{At: r.time(), Reason: r.text()},
	}
}

func statusKey(companyID, messageID string) string { return companyID + "|" + messageID }

// MessageStatus implements [store.Statuses].
func (s *Store) MessageStatus(ctx context.Context, companyID, messageID string) (chat.MessageStatus, error) {
	return read(ctx, s, "reading a message's status", func(c *conn) (chat.MessageStatus, error) {
		return status(c, statusKey(companyID, messageID))
	})
}

func status(c *conn, key string) (known chat.MessageStatus, err error) {
	found, err := c.first(
		`SELECT `+statusColumns+` FROM statuses WHERE key = ?`,
		func(r *row) { known = readStatus(r) },
		key,
	)
	if err == nil && !found {
		err = apperr.MessageNotFound.New()
	}
	return known, err
}

// JoinMessageStatus implements [store.Statuses].
func (s *Store) JoinMessageStatus(
	ctx context.Context,
	companyID, messageID string,
	more chat.MessageStatus,
) (chat.MessageStatus, error) {
	key, more := statusKey(companyID, messageID), storedStatus(more)
	return write(ctx, s, "joining a message's status", func(c *conn) (chat.MessageStatus, error) {
		known, err := status(c, key)
		there := err == nil
		if err != nil && !apperr.Is(err, apperr.NotFound) {
			return known, err
		}
		joined := known.Join(more)
		if there && joined == known {
			return joined, nil
		}
		return joined, putStatus(c, key, joined)
	})
}

// storedStatus returns a status with the precision of the stored times.
func storedStatus(m chat.MessageStatus) chat.MessageStatus {
	m.AcceptedAt = store.UTC(m.AcceptedAt)
	m.StoredAt = store.UTC(m.StoredAt)
	m.DeliveredAt = store.UTC(m.DeliveredAt)
	m.ReadAt = store.UTC(m.ReadAt)
	m.Failure.At = store.UTC(m.Failure.At)
	if m.Failure.At.IsZero() {
		m.Failure = chat.Failure{}
	}
	return m
}

func putStatus(c *conn, key string, m chat.MessageStatus) error {
	_, err := c.insert(orReplace, `statuses`, `key, `+statusColumns,
		key, m.ChatID, m.AcceptedAt, m.StoredAt, m.DeliveredAt, m.ReadAt, m.Failure.At, m.Failure.Reason)
	return err
}
