package mongodb

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/store"
)

// idempotencyDocument is a [idempotency.Record]. MongoDB removes it at ExpiresAt.
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

func (d idempotencyDocument) record() idempotency.Record {
	d.At, d.LeasedUntil, d.ExpiresAt = store.UTC(d.At), store.UTC(d.LeasedUntil), store.UTC(d.ExpiresAt)
	return idempotency.Record(d)
}

func idempotencyDocumentOf(r idempotency.Record) idempotencyDocument {
	return idempotencyDocument(idempotencyDocument(r).record())
}

// InsertIdempotencyRecord implements [idempotency.Records].
func (s *Store) InsertIdempotencyRecord(ctx context.Context, r idempotency.Record) (bool, error) {
	return s.insert(ctx, requestKeys, idempotencyDocumentOf(r))
}

// IdempotencyRecord implements [idempotency.Records].
func (s *Store) IdempotencyRecord(ctx context.Context, id string) (idempotency.Record, error) {
	d, err := get[idempotencyDocument](ctx, s, requestKeys, id)
	return d.record(), err
}

// LeaseIdempotencyRecord implements [idempotency.Records].
func (s *Store) LeaseIdempotencyRecord(
	ctx context.Context,
	id string,
	until time.Time,
) (before idempotency.Record, err error) {
	change := bson.D{
		{Key: "$inc", Value: bson.D{{Key: "leases", Value: 1}}},
		{Key: "$max", Value: bson.D{{Key: "leasedUntil", Value: store.UTC(until)}}},
	}
	d, err := findAndModify[idempotencyDocument](ctx, s, requestKeys, byID(id), change, options.Before)
	return d.record(), err
}

// ReplaceIdempotencyRecord implements [idempotency.Records].
func (s *Store) ReplaceIdempotencyRecord(ctx context.Context, r idempotency.Record) error {
	return s.put(ctx, requestKeys, r.ID, idempotencyDocumentOf(r))
}

// noLease ends a lease.
func noLease() bson.E { return bson.E{Key: "$unset", Value: bson.D{{Key: "leasedUntil", Value: ""}}} }

// EndIdempotencyLease implements [idempotency.Records].
func (s *Store) EndIdempotencyLease(ctx context.Context, id string) error {
	_, err := s.update(ctx, requestKeys, id, bson.D{noLease()})
	return err
}

// AnswerIdempotencyRecord implements [idempotency.Records].
func (s *Store) AnswerIdempotencyRecord(ctx context.Context, id, answer string) (first string, err error) {
	unanswered := bson.D{{Key: "_id", Value: id}, {Key: "answer", Value: nil}} // nil: the field is absent
	d, err := modify[idempotencyDocument](ctx, s, requestKeys, unanswered,
		bson.D{{Key: "$set", Value: bson.D{{Key: "answer", Value: answer}}}, noLease()})
	if apperr.Is(err, apperr.NotFound) {
		d, err = modify[idempotencyDocument](ctx, s, requestKeys, byID(id), bson.D{noLease()})
	}
	return d.Answer, err
}
