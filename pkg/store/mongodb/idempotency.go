package mongodb

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/store"
)

// idempotencyDocument is a [store.IdempotencyRecord]. MongoDB removes it at ExpiresAt.
type idempotencyDocument struct {
	ID          string    `bson:"_id"`
	Fingerprint string    `bson:"fingerprint"`
	MessageID   string    `bson:"messageId"`
	At          time.Time `bson:"at"`
	Leases      int       `bson:"leases"`
	LeasedUntil time.Time `bson:"leasedUntil,omitempty"`
	ExpiresAt   time.Time `bson:"expiresAt"`
	Answer      string    `bson:"answer,omitempty"`
}

func (d idempotencyDocument) record() store.IdempotencyRecord {
	d.At, d.LeasedUntil, d.ExpiresAt = store.UTC(d.At), store.UTC(d.LeasedUntil), store.UTC(d.ExpiresAt)
	return store.IdempotencyRecord(d)
}

func idempotencyDocumentOf(r store.IdempotencyRecord) idempotencyDocument {
	return idempotencyDocument(idempotencyDocument(r).record())
}

// InsertIdempotencyRecord implements [store.IdempotencyRecords].
func (s *Store) InsertIdempotencyRecord(ctx context.Context, r store.IdempotencyRecord) (bool, error) {
	return s.insert(ctx, idempotency, idempotencyDocumentOf(r))
}

// IdempotencyRecord implements [store.IdempotencyRecords].
func (s *Store) IdempotencyRecord(ctx context.Context, id string) (store.IdempotencyRecord, error) {
	d, err := get[idempotencyDocument](ctx, s, idempotency, id)
	return d.record(), err
}

// LeaseIdempotencyRecord implements [store.IdempotencyRecords].
func (s *Store) LeaseIdempotencyRecord(ctx context.Context, id string, until time.Time) (before store.IdempotencyRecord, err error) {
	change := bson.D{
		{Key: "$inc", Value: bson.D{{Key: "leases", Value: 1}}},
		{Key: "$max", Value: bson.D{{Key: "leasedUntil", Value: store.UTC(until)}}},
	}
	d, err := findAndModify[idempotencyDocument](ctx, s, idempotency, byID(id), change, options.Before)
	return d.record(), err
}

// ReplaceIdempotencyRecord implements [store.IdempotencyRecords].
func (s *Store) ReplaceIdempotencyRecord(ctx context.Context, r store.IdempotencyRecord) error {
	return s.put(ctx, idempotency, r.ID, idempotencyDocumentOf(r))
}

// noLease ends a lease.
func noLease() bson.E { return bson.E{Key: "$unset", Value: bson.D{{Key: "leasedUntil", Value: ""}}} }

// EndIdempotencyLease implements [store.IdempotencyRecords].
func (s *Store) EndIdempotencyLease(ctx context.Context, id string) error {
	_, err := s.update(ctx, idempotency, id, bson.D{noLease()})
	return err
}

// AnswerIdempotencyRecord implements [store.IdempotencyRecords].
func (s *Store) AnswerIdempotencyRecord(ctx context.Context, id, answer string) (first string, err error) {
	unanswered := bson.D{{Key: "_id", Value: id}, {Key: "answer", Value: nil}} // nil: the field is absent
	d, err := modify[idempotencyDocument](ctx, s, idempotency, unanswered,
		bson.D{{Key: "$set", Value: bson.D{{Key: "answer", Value: answer}}}, noLease()})
	if apperr.Is(err, apperr.NotFound) {
		d, err = modify[idempotencyDocument](ctx, s, idempotency, byID(id), bson.D{noLease()})
	}
	return d.Answer, err
}

// DeleteIdempotencyRecord implements [store.IdempotencyRecords].
func (s *Store) DeleteIdempotencyRecord(ctx context.Context, id string) error {
	return s.delete(ctx, idempotency, id)
}
