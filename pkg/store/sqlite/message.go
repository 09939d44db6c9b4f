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
		CreatedAt: r.entered(), ID: r.text(), IsFromSupport: r.bool(),
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

// totals is the number of messages of each side of a chat, up to one of them.
type totals struct{ company, visitor int64 }

// count adds a message.
func (t totals) count(m chat.Message) totals {
	if m.IsFromSupport {
		t.company++
	} else {
		t.visitor++
	}
	return t
}

const (
	// lastTotals also returns whether the last message is after a time and id.
	lastTotals = `SELECT company_total, visitor_total, (created_at, id) > (?2, ?3) FROM messages WHERE chat = ?1
		ORDER BY created_at DESC, id DESC`
	totalsUpTo = `SELECT company_total, visitor_total FROM messages WHERE chat = ?1 AND (created_at, id) <= (?2, ?3)
		ORDER BY created_at DESC, id DESC`
	addToLater = `UPDATE messages SET company_total = company_total + ?4, visitor_total = visitor_total + ?5
		WHERE chat = ?1 AND (created_at, id) > (?2, ?3)`
)

func readTotals(r *row) totals { return totals{company: r.int(), visitor: r.int()} }

// insertMessage reports false if a message with its id exists. The totals of later messages, if the message is late,
// count it too.
func insertMessage(c *conn, key int64, m chat.Message) (bool, error) {
	before, late, err := totalsBefore(c, key, m)
	if err != nil {
		return false, err
	}
	upTo := before.count(m)
	changed, err := c.exec(
		`INSERT INTO messages (chat, created_at, id, from_support, company_total, visitor_total, type, sender, data)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		key,
		microseconds(m.CreatedAt),
		m.ID,
		m.IsFromSupport,
		upTo.company,
		upTo.visitor,
		string(m.Type),
		m.NameOfSender,
		m.Data,
	)
	if err == nil && changed > 0 && late {
		err = addTotals(c, key, m, totals{}.count(m))
	}
	return changed > 0, err
}

// totalsBefore returns the totals before a new message, and whether it is late: the chat has a later one.
func totalsBefore(c *conn, key int64, m chat.Message) (before totals, late bool, err error) {
	at := microseconds(m.CreatedAt)
	_, err = c.first(lastTotals, func(r *row) {
		before = readTotals(r)
		late = r.bool()
	}, key, at, m.ID)
	if err != nil || !late {
		return before, false, err
	}
	before, err = readTotalsUpTo(c, key, at, m.ID)
	return before, true, err
}

// readTotalsUpTo returns the totals at a time and id; zero before the first message.
func readTotalsUpTo(c *conn, key, at int64, id string) (t totals, err error) {
	_, err = c.first(totalsUpTo, func(r *row) { t = readTotals(r) }, key, at, id)
	return t, err
}

// addTotals adds to the totals of the messages after m.
func addTotals(c *conn, key int64, m chat.Message, t totals) error {
	_, err := c.exec(addToLater, key, microseconds(m.CreatedAt), m.ID, t.company, t.visitor)
	return err
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
