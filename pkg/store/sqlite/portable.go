package sqlite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// This file copies whole records, for package transfer. The functions that read and write a row are those of the
// contract's methods, in the file of the record.

// portable reads and writes the records of one kind.
type portable struct {
	query string // selects the key, then what read expects
	key   string // column of the key
	read  func(c *conn, r *row) (value any, err error)
	write func(c *conn, value any) error
}

// kindOf returns the portable of a table. columns are those that read expects.
func kindOf[V any](table, key, columns string, read func(*row) V, write func(*conn, V) error) portable {
	return portable{
		query: `SELECT ` + key + `, ` + columns + ` FROM ` + table,
		key:   key,
		read:  func(_ *conn, r *row) (any, error) { return read(r), nil },
		write: func(c *conn, value any) error {
			v, ok := value.(V)
			if !ok {
				return fmt.Errorf("sqlite: a record of %s is a %T", table, value)
			}
			return write(c, v)
		},
	}
}

// portables returns how each of [store.Kinds] is read and written.
func portables() map[store.Kind]portable {
	messages := kindOf("messages", "m.id", messageColumns, readMessageRecord, replaceMessage)
	messages.query = `SELECT m.id, c.id, ` + messageColumns + ` FROM messages m JOIN chats c ON c.key = m.chat`
	receipts := kindOf("receipts", "chat_id", receiptsColumns, readReceipts, writeReceipts)
	receipts.read = func(c *conn, r *row) (any, error) { return withAwaited(c, readReceipts(r)) }
	return map[store.Kind]portable{
		"companies":    kindOf("companies", "id", companyColumns, readCompany, putCompany),
		"accessTokens": kindOf("access_tokens", "hash", tokenColumns, readToken, putToken),
		"applications": kindOf("applications", "id", applicationColumns, readApplication, replaceApplication),
		"templates":    kindOf("templates", "id", templateColumns, readTemplate, putTemplate),
		"visitors":     kindOf("visitors", "id", visitorColumns, readVisitor, replaceVisitor),
		"identities":   kindOf("identities", "key", identityColumns, readIdentity, putIdentity),
		"chats":        kindOf("chats", "id", chatColumns, readChat, replaceChat),
		"messages":     messages,
		"statuses": kindOf(
			"statuses", "key", `company_id, message_id, `+statusColumns, readStatusRecord, putStatusRecord,
		),
		"receipts":          receipts,
		"idempotency":       kindOf("idempotency_records", "id", recordColumns, readRecord, replaceRecord),
		"files":             kindOf("files", "id", fileColumns, readFile, replaceFile),
		"users":             kindOf("users", "id", userColumns, readUser, putUser),
		"audit":             kindOf("audit", "id", auditColumns, readAuditEntry, replaceAuditEntry),
		"webhookEndpoints":  kindOf("webhook_endpoints", "id", endpointColumns, readEndpoint, putEndpoint),
		"webhookDeliveries": kindOf("webhook_deliveries", "id", deliveryColumns, readDelivery, replaceDelivery),
		"bots":              kindOf("bots", "id", settingColumns, readBot, replaceBot),
		"modelConnections":  kindOf("model_connections", "id", settingColumns, readConnection, replaceConnection),
		"documents":         kindOf("documents", "id", documentColumns, readDocument, copyDocument),
		"knowledgeSettings": kindOf("knowledge_settings", "id", knowledgeColumns, readKnowledge, replaceKnowledge),
	}
}

func portableOf(kind store.Kind) (portable, error) {
	p, ok := portables()[kind]
	if !ok {
		return portable{}, fmt.Errorf("sqlite: there is no kind %q", kind)
	}
	return p, nil
}

// ReadRecords implements [store.Portable].
func (s *Store) ReadRecords(ctx context.Context, kind store.Kind, after string, limit int) ([]store.Record, error) {
	p, err := portableOf(kind)
	if err != nil {
		return nil, err
	}
	sql := p.query + ` WHERE ` + p.key + ` > ? ORDER BY ` + p.key + ` LIMIT ?`
	return scan(ctx, s, "reading records", func(c *conn) ([]store.Record, error) {
		records := []store.Record{}
		var failed error
		err := c.query(sql, func(r *row) bool {
			record := store.Record{Key: r.text()}
			record.Value, failed = p.read(c, r)
			records = append(records, record)
			return failed == nil
		}, after, max(limit, 0))
		return records, orElse(err, failed)
	})
}

// documentBatch bounds the documents of one transaction, for which other writes wait: a document has up to a thousand
// passages, each with some hundred terms.
const documentBatch = 2

// WriteRecords implements [store.Portable] in one transaction, except for documents.
func (s *Store) WriteRecords(ctx context.Context, kind store.Kind, records []store.Record) error {
	p, err := portableOf(kind)
	if err != nil {
		return err
	}
	batch := max(1, len(records))
	if kind == "documents" {
		batch = documentBatch
	}
	for some := range slices.Chunk(records, batch) {
		if err := s.writeRecords(ctx, p, some); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) writeRecords(ctx context.Context, p portable, records []store.Record) error {
	return update(ctx, s, "writing records", func(c *conn) error {
		for _, r := range records {
			if err := p.write(c, r.Value); err != nil {
				return err
			}
		}
		return nil
	})
}

func readMessageRecord(r *row) store.MessageRecord {
	return store.MessageRecord{ChatID: r.text(), Message: readMessage(r, chat.Message{})}
}

// replaceMessage replaces by id: the place of a message follows from its chat and time, which may differ.
func replaceMessage(c *conn, v store.MessageRecord) error {
	key, err := chatKey(c, v.ChatID)
	if err != nil {
		return err
	}
	if err := deleteMessage(c, v.Message.ID); err != nil {
		return err
	}
	_, err = insertMessage(c, key, v.Message)
	return err
}

// deleteMessage removes a message that may exist from its chat, and from the totals of later messages.
func deleteMessage(c *conn, id string) error {
	var key int64
	var m chat.Message
	found, err := c.first(`SELECT m.chat, `+messageColumns+` FROM messages m WHERE m.id = ?`, func(r *row) {
		key = r.int()
		m = readMessage(r, chat.Message{})
	}, id)
	if err != nil || !found {
		return err
	}
	if _, err := c.exec(`DELETE FROM messages WHERE id = ?`, id); err != nil {
		return err
	}
	removed := totals{}.count(m)
	return addTotals(c, key, m, totals{company: -removed.company, visitor: -removed.visitor})
}

func readStatusRecord(r *row) store.StatusRecord {
	return store.StatusRecord{CompanyID: r.text(), MessageID: r.text(), Status: readStatus(r)}
}

func putStatusRecord(c *conn, v store.StatusRecord) error {
	return putStatus(c, statusKey(v.CompanyID, v.MessageID), v.Status)
}

const identityColumns = `key, chat_user_id`

func readIdentity(r *row) store.IdentityRecord {
	return store.IdentityRecord{Key: r.text(), ChatUserID: r.text()}
}

func putIdentity(c *conn, v store.IdentityRecord) error {
	_, err := c.insert(orReplace, `identities`, identityColumns, v.Key, v.ChatUserID)
	return err
}

const receiptsColumns = `chat_id, read_up_to_time, read_up_to_id, read_at`

func readReceipts(r *row) store.ReceiptsRecord {
	return store.ReceiptsRecord{
		ChatID:   r.text(),
		ReadUpTo: chat.ReadCursor{At: r.entered(), MessageID: r.text()},
		ReadAt:   r.time(),
	}
}

const awaitedOfChat = `SELECT created_at, message_id, undelivered, unread FROM awaited_receipts
	WHERE chat_id = ? ORDER BY created_at, message_id`

// withAwaited adds the messages with pending reports, which have their own table.
func withAwaited(c *conn, v store.ReceiptsRecord) (store.ReceiptsRecord, error) {
	err := c.query(awaitedOfChat, func(r *row) bool {
		awaited := store.AwaitedReceipt{CreatedAt: r.entered(), MessageID: r.text()}
		if r.bool() {
			v.Undelivered = append(v.Undelivered, awaited)
		}
		if r.bool() {
			v.Unread = append(v.Unread, awaited)
		}
		return true
	}, v.ChatID)
	return v, err
}

func writeReceipts(c *conn, v store.ReceiptsRecord) error {
	_, err := c.insert(
		orReplace, `receipts`, receiptsColumns,
		v.ChatID, enteredOrNull(v.ReadUpTo.At), v.ReadUpTo.MessageID, v.ReadAt,
	)
	if err != nil {
		return err
	}
	if _, err := c.exec(`DELETE FROM awaited_receipts WHERE chat_id = ?`, v.ChatID); err != nil {
		return err
	}
	for _, a := range v.Undelivered {
		if err := putAwaited(c, v.ChatID, a, "undelivered"); err != nil {
			return err
		}
	}
	for _, a := range v.Unread {
		if err := putAwaited(c, v.ChatID, a, "unread"); err != nil {
			return err
		}
	}
	return nil
}

// enteredOrNull returns the value of a column that is NULL for the zero time.
func enteredOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return microseconds(t)
}

// putAwaited sets one of the two reports of a message as pending.
func putAwaited(c *conn, chatID string, a store.AwaitedReceipt, report string) error {
	_, err := c.exec(
		`INSERT INTO awaited_receipts (chat_id, message_id, created_at, undelivered, unread) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (chat_id, message_id) DO UPDATE SET `+report+` = TRUE`,
		chatID, a.MessageID, microseconds(a.CreatedAt), report == "undelivered", report == "unread",
	)
	return err
}
