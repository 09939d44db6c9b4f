package sqlite

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

const messageColumns = `m.created_at, m.id, m.from_support, m.type, m.sender, m.data`

// readMessage reuses strings of the previous row's message: adjacent messages mostly share type and sender.
func readMessage(r *row, before chat.Message) chat.Message {
	return chat.Message{
		CreatedAt: r.time(), ID: r.text(), IsFromSupport: r.bool(),
		Type:         chat.MessageType(r.repeated(string(before.Type))),
		NameOfSender: r.repeated(before.NameOfSender),
		Data:         json.RawMessage(r.bytes()),
	}
}

// AppendMessage implements [store.Messages].
func (s *Store) AppendMessage(ctx context.Context, chatID string, m chat.Message) error {
	if err := store.CheckMessage(m); err != nil {
		return err
	}
	return update(ctx, s, "appending a message", func(c *conn) error {
		key, err := chatKey(c, chatID)
		if apperr.Is(err, apperr.NotFound) {
			if taken, err := c.first(`SELECT 1 FROM messages WHERE id = ?`, func(*row) {}, m.ID); err != nil || taken {
				return orElse(err, apperr.MessageExists.New())
			}
		}
		if err != nil {
			return err
		}
		inserted, err := insertMessage(c, key, m)
		if err != nil {
			return err
		}
		if !inserted {
			return isIn(c, key, m.ID)
		}
		if m.IsFromSupport {
			return nil
		}
		_, err = c.exec(`UPDATE chats SET visitor_wrote_at = max(ifnull(visitor_wrote_at, ?2), ?2),
			window_started_at = max(ifnull(window_started_at, ?2), ?2) WHERE key = ?1`, key, milliseconds(m.CreatedAt))
		return err
	})
}

// orElse returns err, or other if err is nil.
func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

func chatKey(c *conn, chatID string) (key int64, err error) {
	found, err := c.first(`SELECT key FROM chats WHERE id = ?`, func(r *row) { key = r.int() }, chatID)
	if err == nil && !found {
		err = apperr.ChatNotFound.New()
	}
	return key, err
}

// insertMessage reports false if a message with its id exists.
func insertMessage(c *conn, key int64, m chat.Message) (bool, error) {
	changed, err := c.exec(
		`INSERT INTO messages (chat, created_at, id, from_support, type, sender, data) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING`,
		key,
		milliseconds(m.CreatedAt),
		m.ID,
		m.IsFromSupport,
		string(m.Type),
		m.NameOfSender,
		m.Data,
	)
	return changed > 0, err
}

// isIn returns Invalid if the existing message is in another chat.
func isIn(c *conn, key int64, messageID string) error {
	var there int64
	_, err := c.first(`SELECT chat FROM messages WHERE id = ?`, func(r *row) { there = r.int() }, messageID)
	if err == nil && there != key {
		err = apperr.MessageExists.New()
	}
	return err
}

// page is the result of History.
type page struct {
	messages []chat.Message
	more     bool
}

// History implements [store.Messages]. A page is one range scan of the table, from the cursor backwards.
func (s *Store) History(ctx context.Context, chatID string, q store.HistoryQuery) ([]chat.Message, bool, error) {
	p, err := read(ctx, s, "reading a history", func(c *conn) (page, error) {
		p, err := readPage(c, chatID, q)
		if err == nil && len(p.messages) == 0 {
			err = emptyPageError(c, chatID, q.Before)
		}
		return p, err
	})
	return p.messages, p.more, err
}

// The statements have no LIMIT: reading stops when the page is full. SQLite would reprepare a statement whenever its
// LIMIT parameter changes, which cost a quarter of a page.
const (
	lastPage = `SELECT ` + messageColumns + ` FROM messages m WHERE m.chat = (SELECT key FROM chats WHERE id = ?1)
		ORDER BY m.created_at DESC, m.id DESC`
	// The cursor's id is compared as a parameter: of two columns of text SQLite would use the index for the time only.
	pageBefore = `SELECT ` + messageColumns + ` FROM messages b CROSS JOIN messages m
		WHERE b.id = ?2 AND b.chat = (SELECT key FROM chats WHERE id = ?1) AND m.chat = b.chat AND (m.created_at, m.id) < (b.created_at, ?2)
		ORDER BY m.created_at DESC, m.id DESC`
	findMessage = `SELECT c.id, ` + messageColumns + ` FROM messages m JOIN chats c ON c.key = m.chat WHERE m.id = ?`
)

func readPage(c *conn, chatID string, q store.HistoryQuery) (p page, err error) {
	var m chat.Message
	size := 0
	collect := func(r *row) bool {
		if len(p.messages) == q.Size() {
			p.more = true
			return false
		}
		m = readMessage(r, m)
		size += len(m.Data)
		if q.MaxBytes > 0 && size > q.MaxBytes && len(p.messages) > 0 {
			p.more = true
			return false
		}
		p.messages = append(p.messages, m)
		return true
	}
	p.messages = make([]chat.Message, 0, min(q.Size(), 128))
	if q.Before == "" {
		err = c.query(lastPage, collect, chatID)
	} else {
		err = c.query(pageBefore, collect, chatID, q.Before)
	}
	slices.Reverse(p.messages)
	return p, err
}

// emptyPageError returns the error of an empty page; nil if the page is validly empty.
func emptyPageError(c *conn, chatID, before string) error {
	key, err := chatKey(c, chatID)
	if err != nil || before == "" {
		return err
	}
	found, err := c.first(`SELECT 1 FROM messages WHERE id = ? AND chat = ?`, func(*row) {}, before, key)
	if err == nil && !found {
		err = store.CursorNotInChat()
	}
	return err
}

// located is a message and its chat.
type located struct {
	chatID  string
	message chat.Message
}

// find returns a message by its id.
func (s *Store) find(ctx context.Context, id string) (located, error) {
	return one(
		ctx, s, "reading a message", findMessage,
		func(r *row) located { return located{chatID: r.text(), message: readMessage(r, chat.Message{})} },
		apperr.MessageNotFound, id,
	)
}

// FindMessage implements [store.Messages].
func (s *Store) FindMessage(ctx context.Context, id string) (string, chat.Message, error) {
	l, err := s.find(ctx, id)
	return l.chatID, l.message, err
}
