package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/store"
)

// kind defines how one kind of record is read and written.
type kind struct {
	table string
	key   string // the column, or indexed expression, of the record's key
	from  string // selects the columns that decode reads, up to the condition on the key
	// decode returns the record of a row. It may use the connection to read other tables.
	decode func(c *conn, r *row) (key string, value any, err error)
	write  func(c *conn, value json.RawMessage) error
}

// kinds returns the definitions of all [store.Kinds].
func (s *Store) kinds() map[store.Kind]kind {
	return map[store.Kind]kind{
		"companies": {
			table: "companies", key: "id", from: `SELECT ` + companyColumns + ` FROM companies`,
			decode: decodeWith(func(r *row) (string, store.CompanyRecord) {
				v := readCompanyRecord(r)
				return v.ID, v
			}),
			write: writeWith(putCompany),
		},
		"accessTokens": {
			table: "access_tokens", key: "hash", from: `SELECT ` + tokenColumns + ` FROM access_tokens`,
			decode: decodeWith(func(r *row) (string, store.AccessTokenRecord) {
				v := readToken(r)
				return v.Hash, store.AccessTokenRecord(v)
			}),
			write: writeWith(func(c *conn, v store.AccessTokenRecord) error { return putToken(c, chat.AccessToken(v)) }),
		},
		"applications": {
			table: "applications", key: "id", from: `SELECT ` + applicationColumns + ` FROM applications`,
			decode: decodeWith(func(r *row) (string, store.ApplicationRecord) {
				v := applicationRecord(readApplication(r))
				return v.ID, v
			}),
			write: writeWith(writeApplicationRecord),
		},
		"templates": {
			table: "templates", key: "id", from: `SELECT ` + templateColumns + ` FROM templates`,
			decode: decodeWith(func(r *row) (string, store.TemplateRecord) {
				v := templateRecord(readTemplate(r))
				return v.ID, v
			}),
			write: writeWith(func(c *conn, v store.TemplateRecord) error { return putTemplate(c, templateOf(v)) }),
		},
		"visitors": {
			table: "visitors", key: "id", from: `SELECT ` + visitorColumns + ` FROM visitors`,
			decode: decodeWith(func(r *row) (string, store.VisitorRecord) {
				v := readVisitor(r)
				return v.ID, store.VisitorRecord(v)
			}),
			write: writeWith(func(c *conn, v store.VisitorRecord) error {
				return writeVisitor(c, `INSERT OR REPLACE`, chat.Visitor(v))
			}),
		},
		"identities": {
			table: "identities", key: "key", from: `SELECT key, chat_user_id FROM identities`,
			decode: decodeWith(func(r *row) (string, store.IdentityRecord) {
				v := store.IdentityRecord{Key: r.text(), ChatUserID: r.text()}
				return v.Key, v
			}),
			write: writeWith(func(c *conn, v store.IdentityRecord) error {
				_, err := c.exec(`INSERT OR REPLACE INTO identities (key, chat_user_id) VALUES (?, ?)`, v.Key, v.ChatUserID)
				return err
			}),
		},
		"chats": {
			table: "chats", key: "id", from: `SELECT ` + chatColumns + ` FROM chats`,
			decode: decodeWith(func(r *row) (string, store.ChatRecord) {
				v := chatRecord(s.readChat(r))
				return v.ID, v
			}),
			write: writeWith(writeChatRecord),
		},
		"messages": {
			table: "messages",
			key:   "m.id",
			from:  `SELECT c.id, ` + messageColumns + ` FROM messages m JOIN chats c ON c.key = m.chat`,
			decode: decodeWith(func(r *row) (string, store.MessageRecord) {
				v := messageRecord(r.text(), readMessage(r, chat.Message{}))
				return v.ID, v
			}),
			write: writeWith(writeMessageRecord),
		},
		"statuses": {
			table: "statuses", key: "key", from: `SELECT key, company_id, message_id, ` + statusColumns + ` FROM statuses`,
			decode: decodeWith(func(r *row) (string, store.StatusRecord) {
				return r.text(), statusRecord(r.text(), r.text(), readStatus(r))
			}),
			write: writeWith(func(c *conn, v store.StatusRecord) error {
				return putStatus(c, statusKey(v.CompanyID, v.MessageID), statusOf(v))
			}),
		},
		"receipts": {
			table: "receipts", key: "chat_id", from: `SELECT chat_id, read_up_to_time, read_up_to_id, read_at FROM receipts`,
			decode: decodeReceipts, write: writeWith(writeReceiptsRecord),
		},
		"idempotency": {
			table: "idempotency_records", key: "id", from: `SELECT ` + recordColumns + ` FROM idempotency_records`,
			decode: decodeWith(func(r *row) (string, idempotency.Record) {
				v := readRecord(r)
				return v.ID, v
			}),
			write: writeWith(func(c *conn, v idempotency.Record) error {
				_, err := writeRecord(c, `INSERT OR REPLACE`, v)
				return err
			}),
		},
		"files": {
			table: "files", key: "id", from: `SELECT ` + fileColumns + ` FROM files`,
			decode: decodeWith(func(r *row) (string, store.FileRecord) {
				v := store.FileRecord{
					ID: r.text(), CompanyID: r.text(), AppID: r.text(), ChatUserID: r.text(), SenderID: r.text(), Address: r.text(),
					Size: r.int(), CreatedAt: r.time(), ExpiresAt: r.time(),
				}
				return v.ID, v
			}),
			write: writeWith(
				func(c *conn, v store.FileRecord) error { return writeFile(c, `INSERT OR REPLACE`, chat.StoredFile(v)) },
			),
		},
		"users": {
			table: "users", key: "id", from: `SELECT ` + userColumns + ` FROM users`,
			decode: decodeWith(func(r *row) (string, store.UserRecord) {
				v := store.UserRecord(readUser(r))
				return v.ID, v
			}),
			write: writeWith(func(c *conn, v store.UserRecord) error { return putUser(c, account.User(v)) }),
		},
		"audit": {
			table: "audit", key: "id", from: `SELECT ` + auditColumns + ` FROM audit`,
			decode: decodeWith(func(r *row) (string, store.AuditRecord) {
				v := readAuditRecord(r)
				return v.ID, v
			}),
			write: writeWith(func(c *conn, v store.AuditRecord) error { return writeAuditRecord(c, `INSERT OR REPLACE`, v) }),
		},
		"webhookEndpoints": {
			table: "webhook_endpoints", key: "id", from: `SELECT ` + endpointColumns + ` FROM webhook_endpoints`,
			decode: decodeWith(func(r *row) (string, store.WebhookEndpointRecord) {
				v := readEndpointRecord(r)
				return v.ID, v
			}),
			write: writeWith(putEndpoint),
		},
		"webhookDeliveries": {
			table: "webhook_deliveries", key: "id", from: `SELECT ` + deliveryColumns + ` FROM webhook_deliveries`,
			decode: decodeWith(func(r *row) (string, store.WebhookDeliveryRecord) {
				v := readDeliveryRecord(r)
				return v.ID, v
			}),
			write: writeWith(func(c *conn, v store.WebhookDeliveryRecord) error {
				_, err := writeDelivery(c, `INSERT OR REPLACE`, v)
				return err
			}),
		},
	}
}

func decodeWith[V any](decode func(*row) (string, V)) func(*conn, *row) (string, any, error) {
	return func(_ *conn, r *row) (string, any, error) {
		key, value := decode(r)
		return key, value, nil
	}
}

func writeWith[V any](write func(*conn, V) error) func(*conn, json.RawMessage) error {
	return func(c *conn, text json.RawMessage) error {
		var value V
		if err := json.Unmarshal(text, &value); err != nil {
			return fmt.Errorf("reading a record: %w", err)
		}
		return write(c, value)
	}
}

func (s *Store) kind(k store.Kind) (kind, error) {
	found, ok := s.kinds()[k]
	if !ok {
		return kind{}, fmt.Errorf("sqlite: there is no kind %q", k)
	}
	return found, nil
}

// ReadRecords implements [store.Portable].
func (s *Store) ReadRecords(ctx context.Context, of store.Kind, after string, limit int) ([]store.Record, error) {
	k, err := s.kind(of)
	if err != nil {
		return nil, err
	}
	return scan(ctx, s, "reading records", func(c *conn) ([]store.Record, error) {
		records, failed := []store.Record{}, error(nil)
		err := c.query(k.from+` WHERE `+k.key+` > ? ORDER BY `+k.key+` LIMIT ?`, func(r *row) bool {
			key, value, err := k.decode(c, r)
			if err == nil {
				var text []byte
				text, err = json.Marshal(value)
				records = append(records, store.Record{Key: key, Value: text})
			}
			failed = err
			return err == nil
		}, after, max(limit, 0))
		return records, orElse(err, failed)
	})
}

// WriteRecords implements [store.Portable] in one transaction.
func (s *Store) WriteRecords(ctx context.Context, of store.Kind, records []store.Record) error {
	k, err := s.kind(of)
	if err != nil {
		return err
	}
	return update(ctx, s, "writing records", func(c *conn) error {
		for _, r := range records {
			if err := k.write(c, r.Value); err != nil {
				return err
			}
		}
		return nil
	})
}

// CountRecords implements [store.Portable].
func (s *Store) CountRecords(ctx context.Context, of store.Kind) (int64, error) {
	k, err := s.kind(of)
	if err != nil {
		return 0, err
	}
	return scan(ctx, s, "counting records", func(c *conn) (n int64, err error) {
		_, err = c.first(`SELECT count(*) FROM `+k.table, func(r *row) { n = r.int() })
		return n, err
	})
}

func applicationRecord(a chat.Application) store.ApplicationRecord {
	return store.ApplicationRecord{
		ID:              a.ID,
		CompanyID:       a.CompanyID,
		Provider:        a.Provider,
		BotName:         a.BotName,
		Name:            a.Name,
		WidgetConfigs:   string(a.WidgetConfigs),
		AllowedOrigins:  a.AllowedOrigins,
		FileRetention:   int64(a.FileRetention / time.Second),
		Verification:    string(a.Identity.Mode),
		IdentitySecrets: secretRecords(a.Identity.Secrets), Support: store.SupportText(a.Support),
	}
}

func writeApplicationRecord(c *conn, v store.ApplicationRecord) error {
	_, err := c.exec(
		`INSERT OR REPLACE INTO applications (`+applicationColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		v.ID, v.CompanyID, v.Provider, v.BotName, v.Name, v.WidgetConfigs, listText(v.AllowedOrigins),
		v.FileRetention, v.Verification, listText(v.IdentitySecrets), v.Support,
	)
	return err
}

func templateRecord(t chat.MessageTemplate) store.TemplateRecord {
	v := store.TemplateRecord{ID: t.ID, CompanyID: t.CompanyID, Name: t.Name, Status: t.Status, Text: t.Text}
	for _, p := range t.Parameters {
		v.Parameters = append(v.Parameters, store.TemplateParameterRecord(p))
	}
	return v
}

func templateOf(v store.TemplateRecord) chat.MessageTemplate {
	t := chat.MessageTemplate{ID: v.ID, CompanyID: v.CompanyID, Name: v.Name, Status: v.Status, Text: v.Text}
	for _, p := range v.Parameters {
		t.Parameters = append(t.Parameters, chat.TemplateParameter(p))
	}
	return t
}

func chatRecord(c chat.Chat) store.ChatRecord {
	return store.ChatRecord{
		ID:              c.ID,
		CompanyID:       c.CompanyID,
		AppID:           c.AppID,
		ChatUserID:      c.ChatUserID,
		Channel:         string(c.Channel),
		CreatedAt:       c.CreatedAt,
		WindowStartedAt: c.WindowStartedAt, VisitorWroteAt: c.VisitorWroteAt, ClosedAt: c.ClosedAt,
		AgentInControl:   c.Control.Agent,
		Assignee:         c.Control.Assignee,
		ControlChangedAt: c.Control.ChangedAt,
		AgentsReadAt:     c.AgentsReadAt,
		HandoverBy:       c.Control.Handover.By,
		HandoverReason:   c.Control.Handover.Reason,
		HandoverNote:     c.Control.Handover.Note,
		HandoverAt:       c.Control.Handover.At,
		RatingScore:      c.Rating.Score, RatingComment: c.Rating.Comment, RatingFirstAt: c.Rating.FirstAt, RatingAt: c.Rating.At,
	}
}

// writeChatRecord keeps the key of an existing chat: its messages refer to it.
func writeChatRecord(c *conn, v store.ChatRecord) error {
	_, err := c.exec(
		`INSERT INTO chats (`+chatColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET
			company_id = excluded.company_id, app_id = excluded.app_id, chat_user_id = excluded.chat_user_id, channel = excluded.channel,
			created_at = excluded.created_at, window_started_at = excluded.window_started_at, visitor_wrote_at = excluded.visitor_wrote_at,
			closed_at = excluded.closed_at, agent_in_control = excluded.agent_in_control, assignee = excluded.assignee,
			control_changed_at = excluded.control_changed_at, agents_read_at = excluded.agents_read_at,
			handover_by = excluded.handover_by, handover_reason = excluded.handover_reason, handover_note = excluded.handover_note,
			handover_at = excluded.handover_at, rating_score = excluded.rating_score, rating_comment = excluded.rating_comment,
			rating_first_at = excluded.rating_first_at, rating_at = excluded.rating_at`,
		v.ID,
		v.CompanyID,
		v.AppID,
		v.ChatUserID,
		v.Channel,
		v.CreatedAt,
		v.WindowStartedAt,
		v.VisitorWroteAt,
		v.ClosedAt,
		v.AgentInControl,
		v.Assignee,
		v.ControlChangedAt,
		v.AgentsReadAt,
		v.HandoverBy,
		v.HandoverReason,
		v.HandoverNote,
		v.HandoverAt,
		v.RatingScore,
		v.RatingComment,
		v.RatingFirstAt,
		v.RatingAt,
	)
	return err
}

func messageRecord(chatID string, m chat.Message) store.MessageRecord {
	return store.MessageRecord{
		ID:            m.ID,
		ChatID:        chatID,
		CreatedAt:     m.CreatedAt,
		Type:          string(m.Type),
		Data:          string(m.Data),
		NameOfSender:  m.NameOfSender,
		IsFromSupport: m.IsFromSupport,
	}
}

// writeMessageRecord replaces by id: the position of a message is determined by its chat and time, which may differ.
func writeMessageRecord(c *conn, v store.MessageRecord) error {
	key, err := chatKey(c, v.ChatID)
	if err != nil {
		return err
	}
	if _, err := c.exec(`DELETE FROM messages WHERE id = ?`, v.ID); err != nil {
		return err
	}
	_, err = insertMessage(c, key, chat.Message{
		ID:            v.ID,
		CreatedAt:     v.CreatedAt,
		Type:          chat.MessageType(v.Type),
		Data:          json.RawMessage(v.Data),
		NameOfSender:  v.NameOfSender,
		IsFromSupport: v.IsFromSupport,
	})
	return err
}

func statusRecord(companyID, messageID string, m chat.MessageStatus) store.StatusRecord {
	return store.StatusRecord{
		CompanyID: companyID, MessageID: messageID, ChatID: m.ChatID, AcceptedAt: m.AcceptedAt, StoredAt: m.StoredAt,
		DeliveredAt: m.DeliveredAt, ReadAt: m.ReadAt, FailedAt: m.Failure.At, FailureReason: m.Failure.Reason,
	}
}

func statusOf(v store.StatusRecord) chat.MessageStatus {
	return chat.MessageStatus{
		ChatID: v.ChatID, AcceptedAt: v.AcceptedAt, StoredAt: v.StoredAt, DeliveredAt: v.DeliveredAt, ReadAt: v.ReadAt,
		Failure: chat.Failure{At: v.FailedAt, Reason: v.FailureReason},
	}
}

func decodeReceipts(c *conn, r *row) (string, any, error) {
	v := store.ReceiptsRecord{ChatID: r.text()}
	v.ReadUpTo = store.MessagePosition{CreatedAt: r.time(), MessageID: r.text()}
	v.ReadAt = r.time()
	err := c.query(
		`SELECT created_at, message_id, undelivered, unread FROM awaited_receipts WHERE chat_id = ? ORDER BY created_at, message_id`,
		func(r *row) bool {
			awaited := store.AwaitedReceipt{CreatedAt: r.time(), MessageID: r.text()}
			if r.bool() {
				v.Undelivered = append(v.Undelivered, awaited)
			}
			if r.bool() {
				v.Unread = append(v.Unread, awaited)
			}
			return true
		},
		v.ChatID,
	)
	return v.ChatID, v, err
}

func writeReceiptsRecord(c *conn, v store.ReceiptsRecord) error {
	if _, err := c.exec(`INSERT OR REPLACE INTO receipts (chat_id, read_up_to_time, read_up_to_id, read_at) VALUES (?, ?, ?, ?)`,
		v.ChatID, v.ReadUpTo.CreatedAt, v.ReadUpTo.MessageID, v.ReadAt); err != nil {
		return err
	}
	if _, err := c.exec(`DELETE FROM awaited_receipts WHERE chat_id = ?`, v.ChatID); err != nil {
		return err
	}
	for column, awaited := range map[string][]store.AwaitedReceipt{"undelivered": v.Undelivered, "unread": v.Unread} {
		for _, a := range awaited {
			if _, err := c.exec(`INSERT INTO awaited_receipts (chat_id, message_id, created_at, undelivered, unread) VALUES (?, ?, ?, ?, ?)
				ON CONFLICT (chat_id, message_id) DO UPDATE SET `+column+` = TRUE`,
				v.ChatID, a.MessageID, milliseconds(a.CreatedAt), column == "undelivered", column == "unread"); err != nil {
				return err
			}
		}
	}
	return nil
}
