package idempotency

import (
	"context"
	"time"
)

// Record is the stored state of an Idempotency-Key. Only the holder of its lease may replace or delete it. It
// is also the format of store dumps, with ID as the key.
type Record struct {
	ID          string    `json:"id"`          // hash of the key and its scope
	Fingerprint string    `json:"fingerprint"` // of the request
	MessageID   string    `json:"messageId"`   // fixed before the first attempt: every attempt publishes this message
	At          time.Time `json:"at"`          // of the message
	Leases      int       `json:"leases"`      // requests after the first; see [Records.LeaseIdempotencyRecord]
	LeasedUntil time.Time `json:"leasedUntil"` // end of the current lease
	ExpiresAt   time.Time `json:"expiresAt"`   // the key may be reused from then on
	Answer      string    `json:"answer"`      // first stored answer; empty: none
}

// Records stores the records of Idempotency-Keys. Implementations remove expired records.
type Records interface {
	// InsertIdempotencyRecord adds a record. It returns false if the id exists.
	InsertIdempotencyRecord(ctx context.Context, r Record) (bool, error)
	// IdempotencyRecord returns the record, or NotFound.
	IdempotencyRecord(ctx context.Context, id string) (Record, error)
	// LeaseIdempotencyRecord requests the lease until the given time, after the current one has expired, and
	// returns the previous state of the record. Of concurrent callers, the one that receives the Leases that
	// all of them have read before holds the lease, unless the record has an Answer. The other calls only
	// extend the lease.
	LeaseIdempotencyRecord(ctx context.Context, id string, until time.Time) (before Record, err error)
	// ReplaceIdempotencyRecord replaces the record; only for the holder of its lease.
	ReplaceIdempotencyRecord(ctx context.Context, r Record) error
	// EndIdempotencyLease releases the lease, so that the next caller can take it at once.
	EndIdempotencyLease(ctx context.Context, id string) error
	// AnswerIdempotencyRecord stores an answer, ends the lease, and returns the first stored answer. It
	// returns NotFound if the record no longer exists.
	AnswerIdempotencyRecord(ctx context.Context, id, answer string) (first string, err error)
}
