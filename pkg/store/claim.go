package store

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/parley-chat/parley/pkg/apperr"
)

// Claim is what is kept of one use of an Idempotency-Key. Whoever holds its lease, and nobody else, may rewrite or delete it.
type Claim struct {
	ID          string // a hash of the key and of whose it is
	Fingerprint string // of the request
	MessageID   string // fixed before the first try, so that every try publishes the same message
	At          time.Time
	Leases      int       // how often the lease was asked for after the first time; see [Store.LeaseClaim]
	LeasedUntil time.Time // until when somebody is at work on the request
	ExpiresAt   time.Time // from when the key is as good as new
	Answer      string    // the first that was recorded; empty: none yet
}

type claimDocument struct {
	ID          string    `bson:"_id"`
	Fingerprint string    `bson:"fingerprint"`
	MessageID   string    `bson:"messageId"`
	At          time.Time `bson:"at"`
	Leases      int       `bson:"leases"`
	LeasedUntil time.Time `bson:"leasedUntil"`
	ExpiresAt   time.Time `bson:"expiresAt"`
	Answers     []string  `bson:"answers"` // in the order in which they were recorded; the first one counts
}

func (d claimDocument) claim() Claim {
	c := Claim{
		ID: d.ID, Fingerprint: d.Fingerprint, MessageID: d.MessageID, At: utc(d.At),
		Leases: d.Leases, LeasedUntil: utc(d.LeasedUntil), ExpiresAt: utc(d.ExpiresAt),
	}
	if len(d.Answers) > 0 {
		c.Answer = d.Answers[0]
	}
	return c
}

func claimDocumentOf(c Claim) claimDocument {
	return claimDocument{
		ID: c.ID, Fingerprint: c.Fingerprint, MessageID: c.MessageID, At: utc(c.At),
		Leases: c.Leases, LeasedUntil: utc(c.LeasedUntil), ExpiresAt: utc(c.ExpiresAt), Answers: []string{},
	}
}

// InsertClaim adds a claim and reports false when there is one with its id.
func (s *Store) InsertClaim(ctx context.Context, c Claim) (bool, error) {
	return s.insert(ctx, claims, claimDocumentOf(c))
}

// Claim returns the claim, or NotFound.
func (s *Store) Claim(ctx context.Context, id string) (Claim, error) {
	d, err := get[claimDocument](ctx, s, claims, id)
	return d.claim(), err
}

// LeaseClaim asks for a claim's lease until the given time, once the time of its holder has passed, and returns the claim as it
// was just before. Of several who ask at once, the one whose answer has the Leases that all of them read has the lease, unless
// there is an Answer now. Asking in vain only makes the lease later.
func (s *Store) LeaseClaim(ctx context.Context, id string, until time.Time) (before Claim, err error) {
	change := bson.D{
		{Key: "$inc", Value: bson.D{{Key: "leases", Value: 1}}},
		{Key: "$max", Value: bson.D{{Key: "leasedUntil", Value: utc(until)}}},
	}
	var d claimDocument
	err = s.do(ctx, "leasing a claim", func(ctx context.Context) error {
		return s.in(claims).FindOneAndUpdate(ctx, byID(id), change,
			options.FindOneAndUpdate().SetReturnDocument(options.Before)).Decode(&d)
	})
	return d.claim(), missing(err, claims)
}

// ReplaceClaim rewrites the claim with that id; for the holder of its lease.
func (s *Store) ReplaceClaim(ctx context.Context, c Claim) error {
	return s.put(ctx, claims, c.ID, claimDocumentOf(c))
}

// EndLease lets the next who asks have the claim's lease at once.
func (s *Store) EndLease(ctx context.Context, id string) error {
	_, err := s.update(ctx, claims, id, bson.D{{Key: "$set", Value: bson.D{{Key: "leasedUntil", Value: time.Time{}}}}})
	return err
}

// AnswerClaim records an answer, ends the lease, and returns the answer that counts: the first that was recorded, which is
// another one where the lease had passed to somebody else. NotFound when the claim is not there any more.
func (s *Store) AnswerClaim(ctx context.Context, id, answer string) (first string, err error) {
	change := bson.D{
		{Key: "$push", Value: bson.D{{Key: "answers", Value: answer}}},
		{Key: "$set", Value: bson.D{{Key: "leasedUntil", Value: time.Time{}}}},
	}
	var after claimDocument
	err = s.do(ctx, "answering a claim", func(ctx context.Context) error {
		return s.in(claims).FindOneAndUpdate(ctx, byID(id), change,
			options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&after)
	})
	return after.claim().Answer, missing(err, claims)
}

// DeleteClaim removes the claim; for the holder of its lease.
func (s *Store) DeleteClaim(ctx context.Context, id string) error {
	return s.do(ctx, "deleting a claim", func(ctx context.Context) error {
		_, err := s.in(claims).DeleteOne(ctx, byID(id))
		return err
	})
}

// ExpireClaims lets MongoDB itself remove claims when they expire. It reports false for an engine that cannot.
func (s *Store) ExpireClaims(ctx context.Context) (bool, error) {
	index := mongo.IndexModel{Keys: bson.D{{Key: "expiresAt", Value: 1}}, Options: options.Index().SetExpireAfterSeconds(0)}
	able := true
	err := s.do(ctx, "creating the index by which claims expire", func(ctx context.Context) error {
		_, err := s.in(claims).Indexes().CreateOne(ctx, index)
		if e, ok := errors.AsType[mongo.ServerError](err); ok && e.HasErrorCode(codeNotImplemented) {
			able, err = false, nil
		}
		return err
	})
	return able && err == nil, err
}

const codeNotImplemented = 238

// ExpiredClaims returns up to limit claims that expired before now. It may read the whole collection: for a slow sweep.
func (s *Store) ExpiredClaims(ctx context.Context, now time.Time, limit int64) ([]Claim, error) {
	filter := bson.D{{Key: "expiresAt", Value: bson.D{{Key: "$lt", Value: utc(now)}}}}
	var found []claimDocument
	err := s.do(ctx, "looking for expired claims", func(ctx context.Context) error {
		cursor, err := s.in(claims).Find(ctx, filter, options.Find().SetLimit(limit))
		if err != nil {
			return err
		}
		return cursor.All(ctx, &found)
	})
	expired := make([]Claim, len(found))
	for i, d := range found {
		expired[i] = d.claim()
	}
	return expired, err
}

// HasMessage reports whether the message has a place in a history.
func (s *Store) HasMessage(ctx context.Context, id string) (bool, error) {
	_, err := get[placeDocument](ctx, s, messages, id)
	if apperr.Is(err, apperr.NotFound) {
		return false, nil
	}
	return err == nil, err
}
