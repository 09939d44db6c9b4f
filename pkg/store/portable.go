package store

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
)

// This file has what moves a deployment from one engine to another: package transfer reads the records of one
// engine and writes them to another.

// Kind is a kind of record that [Portable] moves.
type Kind string

// Kinds lists all kinds in the order in which they are copied: a message comes after its chat. Not moved are sessions
// (users sign in again), the marks of streams (the processor writes them again), the usage of bots (its counts begin
// again) and the log of their calls. Passages are cut again from their documents, and their embeddings made again.
func Kinds() []Kind {
	return []Kind{
		"companies", "accessTokens", "applications", "templates", "visitors", "identities", "chats", "messages",
		"statuses", "receipts", "idempotency", "files", "users", "audit", "webhookEndpoints", "webhookDeliveries",
		"bots", "modelConnections", "documents", "knowledgeSettings",
	}
}

// Record is one record of a kind. Two engines with the same data return equal records.
type Record struct {
	Key string // unique within the kind; records are ordered by it, byte by byte

	// Value is what the contract returns for the kind: [chat.Company], [chat.AccessToken], [chat.Application],
	// [chat.MessageTemplate], [chat.Visitor], [chat.Chat], [idempotency.Record], [chat.StoredFile], [account.User],
	// [account.AuditEntry], [webhook.Endpoint], [webhook.Delivery], [bots.Bot],
	// [bots.Connection], [knowledge.Document] with its text, [knowledge.Settings]; or, where the contract has no such type,
	// [IdentityRecord], [MessageRecord], [StatusRecord], [ReceiptsRecord].
	Value any
}

// IdentityRecord is an identity and the visitor that owns it.
type IdentityRecord struct {
	Key        string // see [Identity.Key]
	ChatUserID string
}

// MessageRecord is a message and its chat.
type MessageRecord struct {
	ChatID  string
	Message chat.Message
}

// StatusRecord is the status of a company's message.
type StatusRecord struct {
	CompanyID string
	MessageID string
	Status    chat.MessageStatus
}

// ReceiptsRecord is the state of a chat's receipts. The lists are ordered by time, then by id; nil if empty.
type ReceiptsRecord struct {
	ChatID      string
	ReadUpTo    chat.ReadCursor // zero: nothing read
	ReadAt      time.Time
	Undelivered []AwaitedReceipt // messages with a pending delivery report
	Unread      []AwaitedReceipt // messages with a pending read report
}

// AwaitedReceipt is a message with a pending report.
type AwaitedReceipt struct {
	CreatedAt time.Time // of the message
	MessageID string
}

// Portable moves a deployment from one engine to another, record by record. Secrets move as the engine has them:
// encrypted.
type Portable interface {
	// ReadRecords returns at most limit records of a kind with keys after the given one, in the order of their keys.
	ReadRecords(ctx context.Context, kind Kind, after string, limit int) ([]Record, error)
	// WriteRecords writes records, replacing existing ones.
	WriteRecords(ctx context.Context, kind Kind, records []Record) error
}
