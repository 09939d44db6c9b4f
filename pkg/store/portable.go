package store

import (
	"context"
	"encoding/json"
)

// Kind is a kind of record that [Portable] moves.
type Kind string

// Kinds lists all kinds in the order in which they are copied.
func Kinds() []Kind {
	return []Kind{
		"companies", "accessTokens", "applications", "templates", "visitors", "identities", "chats", "messages",
		"statuses", "receipts", "idempotency", "files", "users", "audit", "webhookEndpoints", "webhookDeliveries",
	}
}

// Record is one record of a kind as JSON. Two stores with the same data return the same bytes: the structs of
// records.go, encoded by encoding/json.
type Record struct {
	Key   string          // unique within the kind; records are ordered by it, byte by byte
	Value json.RawMessage // the kind's record, see records.go
}

// Portable moves a deployment from one store to another, record by record.
type Portable interface {
	// ReadRecords returns at most limit records of a kind with keys after the given one, in the order of their keys.
	ReadRecords(ctx context.Context, kind Kind, after string, limit int) ([]Record, error)
	// WriteRecords writes records, replacing existing ones.
	WriteRecords(ctx context.Context, kind Kind, records []Record) error
	// CountRecords returns the number of records of a kind.
	CountRecords(ctx context.Context, kind Kind) (int64, error)
}
