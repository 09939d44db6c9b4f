package idempotency

import (
	"context"
	"time"
)

// Record is the stored state of an Idempotency-Key. Only the holder of its lease may replace or delete it. It
// is also the format of store dumps, with ID as the key, and of MongoDB's documents. Times are UTC in milliseconds.
type Record struct {
	ID          string `json:"id" bson:"_id"`                  // hash of the key and its scope
	Fingerprint string `json:"fingerprint" bson:"fingerprint"` // of the request

	// fixed before the first attempt, so that every attempt publishes the same message
	MessageID string    `json:"messageId" bson:"messageId"`
	At        time.Time `json:"at" bson:"at"`

	Leases      int       `json:"leases" bson:"leases"`                     // lease requests after the first
	LeasedUntil time.Time `json:"leasedUntil" bson:"leasedUntil,omitempty"` // end of the current lease
	ExpiresAt   time.Time `json:"expiresAt" bson:"expiresAt"`               // the key may be reused from then on
	Answer      string    `json:"answer" bson:"answer,omitempty"`           // first stored answer; empty: none
}

// Records stores the records of Idempotency-Keys. Implementations remove expired records.
type Records interface {
	// InsertIdempotencyRecord adds a record, or returns the one that has its id; inserted reports which. NotFound if
	// that one is removed at the same time.
	InsertIdempotencyRecord(ctx context.Context, r Record) (stored Record, inserted bool, err error)
	// LeaseIdempotencyRecord requests the lease until the given time, after the current one has expired, and
	// returns the previous state of the record. Of concurrent callers, the one that receives the Leases that
	// all of them have read before holds the lease, unless the record has an Answer. The other calls only
	// extend the lease.
	LeaseIdempotencyRecord(ctx context.Context, id string, until time.Time) (before Record, err error)
	// ReplaceIdempotencyRecord replaces the record; only for the holder of its lease.
	ReplaceIdempotencyRecord(ctx context.Context, r Record) error
	// EndIdempotencyLease ends the lease, so that the next caller can take it at once, stores the answer unless it is
	// empty, and returns the first stored answer. It returns NotFound if the record no longer exists.
	EndIdempotencyLease(ctx context.Context, id, answer string) (first string, err error)
}
