package idempotency

import (
	"context"
	"time"
)

// Record is the stored state of one Idempotency-Key. Only the holder of its lease may replace or delete it. It is also
// the format of a store dump; its key is ID.
type Record struct {
	ID          string    `json:"id"`          // hash of the key and its scope
	Fingerprint string    `json:"fingerprint"` // of the request
	MessageID   string    `json:"messageId"`   // fixed before the first attempt, so that every attempt publishes the same message
	At          time.Time `json:"at"`
	Leases      int       `json:"leases"`      // number of lease requests after the first; see [Records.LeaseIdempotencyRecord]
	LeasedUntil time.Time `json:"leasedUntil"` // end of the current lease
	ExpiresAt   time.Time `json:"expiresAt"`   // from then on the key may be reused
	Answer      string    `json:"answer"`      // the first stored answer; empty: none yet
}

// Records stores the answers to requests with an Idempotency-Key. Stores remove expired records themselves.
type Records interface {
	// InsertIdempotencyRecord adds a record and reports false if its id exists.
	InsertIdempotencyRecord(ctx context.Context, r Record) (bool, error)
	// IdempotencyRecord returns the record, or NotFound.
	IdempotencyRecord(ctx context.Context, id string) (Record, error)
	// LeaseIdempotencyRecord requests the lease until the given time, once the current one has expired, and returns the
	// record as it was before. Of several concurrent callers, the one that gets back the Leases that all of them have
	// read holds the lease, unless the record has an Answer now. A request that does not get the lease only extends it.
	LeaseIdempotencyRecord(ctx context.Context, id string, until time.Time) (before Record, err error)
	// ReplaceIdempotencyRecord replaces the record; only for the holder of its lease.
	ReplaceIdempotencyRecord(ctx context.Context, r Record) error
	// EndIdempotencyLease releases the lease: the next caller gets it immediately.
	EndIdempotencyLease(ctx context.Context, id string) error
	// AnswerIdempotencyRecord stores an answer, ends the lease, and returns the answer that counts: the first one
	// stored. It returns NotFound if the record no longer exists.
	AnswerIdempotencyRecord(ctx context.Context, id, answer string) (first string, err error)
	// DeleteIdempotencyRecord deletes the record; only for the holder of its lease.
	DeleteIdempotencyRecord(ctx context.Context, id string) error
}
