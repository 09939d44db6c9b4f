package idempotency

import (
	"context"
	"time"
)

// Record is what is kept of one use of an Idempotency-Key. Only the holder of its lease may replace or delete it. It
// is also how a dump of the store shows it; its key is ID.
type Record struct {
	ID          string    `json:"id"`          // hash of the key and its scope
	Fingerprint string    `json:"fingerprint"` // of the request
	MessageID   string    `json:"messageId"`   // fixed before the first attempt, so that every attempt publishes the same message
	At          time.Time `json:"at"`
	Leases      int       `json:"leases"`      // how often the lease was requested after the first time; see [Records.LeaseIdempotencyRecord]
	LeasedUntil time.Time `json:"leasedUntil"` // until when an attempt is in progress
	ExpiresAt   time.Time `json:"expiresAt"`   // from then on the key may be used anew
	Answer      string    `json:"answer"`      // the first that was recorded; empty: none yet
}

// Records keeps the answers to requests with an Idempotency-Key. Engines remove expired records by themselves.
type Records interface {
	// InsertIdempotencyRecord adds a record and reports false when there is one with its id.
	InsertIdempotencyRecord(ctx context.Context, r Record) (bool, error)
	// IdempotencyRecord returns the record, or NotFound.
	IdempotencyRecord(ctx context.Context, id string) (Record, error)
	// LeaseIdempotencyRecord requests the lease until the given time, once the time of its holder has passed, and returns the record
	// as it was just before. Of several concurrent callers, the one whose answer has the Leases that all of them read holds the lease,
	// unless there is an Answer now. A request that does not get the lease only extends it.
	LeaseIdempotencyRecord(ctx context.Context, id string, until time.Time) (before Record, err error)
	// ReplaceIdempotencyRecord rewrites the record; for the holder of its lease.
	ReplaceIdempotencyRecord(ctx context.Context, r Record) error
	// EndIdempotencyLease gives the lease back: the next caller obtains it at once.
	EndIdempotencyLease(ctx context.Context, id string) error
	// AnswerIdempotencyRecord records an answer, ends the lease, and returns the answer that counts: the first one recorded. NotFound
	// when the record is gone.
	AnswerIdempotencyRecord(ctx context.Context, id, answer string) (first string, err error)
	// DeleteIdempotencyRecord removes the record; for the holder of its lease.
	DeleteIdempotencyRecord(ctx context.Context, id string) error
}
