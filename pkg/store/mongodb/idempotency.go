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

// The documents are [idempotency.Record]s. MongoDB removes them at ExpiresAt.

// InsertIdempotencyRecord implements [idempotency.Records].
func (s *Store) InsertIdempotencyRecord(
	ctx context.Context, r idempotency.Record,
) (stored idempotency.Record, inserted bool, err error) {
	inserted, err = s.insert(ctx, requestKeys, r)
	if err != nil || inserted {
		return r, inserted, err
	}
	stored, err = get[idempotency.Record](ctx, s, requestKeys, r.ID)
	return stored, false, err
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
	return findAndModify[idempotency.Record](ctx, s, requestKeys, byID(id), change, options.Before)
}

// ReplaceIdempotencyRecord implements [idempotency.Records].
func (s *Store) ReplaceIdempotencyRecord(ctx context.Context, r idempotency.Record) error {
	return s.put(ctx, requestKeys, r.ID, r)
}

// noLease ends a lease.
func noLease() bson.E { return bson.E{Key: "$unset", Value: bson.D{{Key: "leasedUntil", Value: ""}}} }

// EndIdempotencyLease implements [idempotency.Records].
func (s *Store) EndIdempotencyLease(ctx context.Context, id, answer string) (first string, err error) {
	if answer != "" {
		unanswered := bson.D{{Key: "_id", Value: id}, {Key: "answer", Value: nil}} // nil: the field is absent
		d, err := modify[idempotency.Record](ctx, s, requestKeys, unanswered,
			bson.D{{Key: "$set", Value: bson.D{{Key: "answer", Value: answer}}}, noLease()})
		if !apperr.Is(err, apperr.NotFound) {
			return d.Answer, err
		}
	}
	d, err := modify[idempotency.Record](ctx, s, requestKeys, byID(id), bson.D{noLease()})
	return d.Answer, err
}
