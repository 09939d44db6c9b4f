package mongodb

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/store"
)

// collection names a MongoDB collection.
type collection string

// The collections and their _id.
const (
	companies    collection = "companies"      // companyId
	accessTokens collection = "accessTokens"   // hex SHA-256 of the secret
	applications collection = "applications"   // appId
	templates    collection = "templates"      // templateId
	visitors     collection = "visitors"       // chatUserId
	identities   collection = "identities"     // see store.Identity.Key
	owners       collection = "identityOwners" // chatUserId; see identity.go
	chats        collection = "chats"          // chatId
	messages     collection = "messages"       // message id
	statuses     collection = "statuses"       // {companyId}|{messageId}
	receipts     collection = "receipts"       // chatId
	requestKeys  collection = "idempotency"    // hash of an Idempotency-Key and its scope
	files        collection = "files"          // file id
	users        collection = "users"          // user id
	sessions     collection = "sessions"       // hash of the cookie's secret
	audit        collection = "audit"          // UUIDv7
	streams      collection = "streams"        // name of a NATS stream

	webhookEndpoints  collection = "webhookEndpoints"  // endpoint id
	webhookDeliveries collection = "webhookDeliveries" // webhook-id
	botSettings       collection = "bots"              // appId
	modelConnections  collection = "modelConnections"  // connection id
	botUsage          collection = "botUsage"          // {appId}|{day}|{chatUserId}
	botCalls          collection = "botCalls"          // UUIDv7
	botActions        collection = "botActions"        // id of the message that asks

	knowledgeDocuments collection = "documents"         // document id
	passages           collection = "passages"          // {version}|{number}; see document.go
	knowledgeSettings  collection = "knowledgeSettings" // company id
)

// attempts bounds how often a write alternates between update and insert. A round fails only if another
// writer inserted or deleted the document in between, which happens at most once in the life of a document.
const attempts = 8

// do runs all operations: with a deadline, with the driver's error translated, and failing fast during a known outage.
func (s *Store) do(ctx context.Context, act string, operation func(context.Context) error) error {
	if err := s.conn.check(); err != nil {
		return translate(ctx, act, err)
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return translate(ctx, act, operation(bounded))
}

func (s *Store) in(c collection) *mongo.Collection { return s.database.Collection(string(c)) }

func byID(id string) bson.D { return bson.D{{Key: "_id", Value: id}} }

// get reads the document with that id, or returns the collection's NotFound.
func get[D any](ctx context.Context, s *Store, from collection, id string) (D, error) {
	return findOne[D](ctx, s, from, byID(id))
}

// findOne reads the first document that matches the filter, or returns the collection's NotFound.
func findOne[D any](ctx context.Context, s *Store, from collection, filter bson.D, fields ...string) (D, error) {
	var d D
	o := options.FindOne()
	if len(fields) > 0 {
		o.SetProjection(fieldsOf(fields...))
	}
	err := s.do(ctx, "reading from "+string(from), func(ctx context.Context) error {
		return s.in(from).FindOne(ctx, filter, o).Decode(&d)
	})
	if errors.Is(err, mongo.ErrNoDocuments) {
		err = notFound(from)
	}
	return d, err
}

// fieldsOf is the projection of these fields, and the _id.
func fieldsOf(names ...string) bson.D {
	projection := bson.D{}
	for _, name := range names {
		projection = append(projection, bson.E{Key: name, Value: 1})
	}
	return projection
}

// insert adds a document and reports false if its id exists.
func (s *Store) insert(ctx context.Context, into collection, document any) (bool, error) {
	err := s.do(ctx, "inserting into "+string(into), func(ctx context.Context) error {
		_, err := s.in(into).InsertOne(ctx, document)
		return err
	})
	if mongo.IsDuplicateKeyError(err) {
		return false, nil
	}
	return err == nil, err
}

// insertAll adds documents in one round trip and returns the indexes of those whose id exists.
func (s *Store) insertAll(ctx context.Context, into collection, documents []any) (taken []int, err error) {
	if len(documents) == 0 {
		return nil, nil
	}
	err = s.do(ctx, "inserting into "+string(into), func(ctx context.Context) error {
		_, err := s.in(into).InsertMany(ctx, documents, options.InsertMany().SetOrdered(false))
		var others error
		taken, others = duplicates(err)
		return others
	})
	return taken, err
}

// duplicates separates duplicate keys from all other reasons for which a bulk insert failed.
func duplicates(err error) (indexes []int, others error) {
	bulk, ok := errors.AsType[mongo.BulkWriteException](err)
	if !ok {
		return nil, err
	}
	if bulk.WriteConcernError != nil {
		return nil, err
	}
	for _, e := range bulk.WriteErrors {
		if !mongo.IsDuplicateKeyError(e) {
			return nil, err
		}
		indexes = append(indexes, e.Index)
	}
	return indexes, nil
}

// update changes the document with that id and reports false if it does not exist.
func (s *Store) update(ctx context.Context, in collection, id string, change bson.D) (bool, error) {
	return s.updateOne(ctx, in, byID(id), change)
}

func (s *Store) updateOne(ctx context.Context, in collection, filter, change bson.D) (matched bool, err error) {
	err = s.do(ctx, "updating "+string(in), func(ctx context.Context) error {
		r, err := s.in(in).UpdateOne(ctx, filter, change)
		matched = err == nil && r.MatchedCount > 0
		return err
	})
	return matched, err
}

// modify changes the document that the filter selects and returns the result, or the collection's NotFound.
func modify[D any](ctx context.Context, s *Store, in collection, filter, change bson.D) (D, error) {
	return findAndModify[D](ctx, s, in, filter, change, options.After)
}

func findAndModify[D any](
	ctx context.Context, s *Store, in collection, filter, change bson.D, which options.ReturnDocument,
) (D, error) {
	var d D
	o := options.FindOneAndUpdate().SetReturnDocument(which)
	err := s.do(ctx, "updating "+string(in), func(ctx context.Context) error {
		return s.in(in).FindOneAndUpdate(ctx, filter, change, o).Decode(&d)
	})
	if errors.Is(err, mongo.ErrNoDocuments) {
		err = notFound(in)
	}
	return d, err
}

// modifyOrInsert changes the document with that id, or inserts the given one if there is none, and returns the result.
func modifyOrInsert[D any](ctx context.Context, s *Store, in collection, id string, change bson.D, fresh D) (D, error) {
	for range attempts {
		d, err := modify[D](ctx, s, in, byID(id), change)
		if !apperr.Is(err, apperr.NotFound) {
			return d, err
		}
		if inserted, err := s.insert(ctx, in, fresh); err != nil || inserted {
			return fresh, err
		}
	}
	return fresh, translate(ctx, "updating "+string(in), errContended)
}

// updateOrInsert is [modifyOrInsert] for callers that do not need the result.
func (s *Store) updateOrInsert(ctx context.Context, in collection, id string, change bson.D, fresh any) error {
	return s.alternate(ctx, in, fresh, func() (bool, error) { return s.update(ctx, in, id, change) })
}

// change changes the document with that id, or returns the collection's NotFound.
func (s *Store) change(ctx context.Context, in collection, id string, change bson.D) error {
	found, err := s.update(ctx, in, id, change)
	if err == nil && !found {
		return notFound(in)
	}
	return err
}

// movedTime moves the time of a field to the earliest ($min) or the latest ($max) value that it was given.
type movedTime struct {
	operator string
	field    string
	at       time.Time // zero: unchanged
}

// movingTimes returns the update of all times that are given; empty if there are none.
func movingTimes(times ...movedTime) (change bson.D) {
	for _, operator := range []string{"$min", "$max"} {
		fields := bson.D{}
		for _, t := range times {
			if t.operator == operator && !t.at.IsZero() {
				fields = append(fields, bson.E{Key: t.field, Value: store.UTC(t.at)})
			}
		}
		if len(fields) > 0 { // some servers reject an empty operator
			change = append(change, bson.E{Key: operator, Value: fields})
		}
	}
	return change
}

// put writes a whole document, whether or not it exists.
func (s *Store) put(ctx context.Context, into collection, id string, document any) error {
	return s.alternate(ctx, into, document, func() (matched bool, err error) {
		err = s.do(ctx, "writing to "+string(into), func(ctx context.Context) error {
			r, err := s.in(into).ReplaceOne(ctx, byID(id), document)
			matched = err == nil && r.MatchedCount > 0
			return err
		})
		return matched, err
	})
}

// replaceRevision replaces the document with that id if its revision is still the given one, else it returns Conflict
// with the reason CHANGED_MEANWHILE, or the collection's NotFound.
func (s *Store) replaceRevision(
	ctx context.Context, in collection, id string, revision int64, document any,
) error {
	current := append(byID(id), bson.E{Key: "revision", Value: revision})
	replaced := false
	err := s.do(ctx, "writing to "+string(in), func(ctx context.Context) error {
		r, err := s.in(in).ReplaceOne(ctx, current, document)
		replaced = err == nil && r.MatchedCount > 0
		return err
	})
	if err != nil || replaced {
		return err
	}
	if _, err := get[bson.Raw](ctx, s, in, id); err != nil {
		return err
	}
	return apperr.ChangedMeanwhile.New()
}

// alternate tries to change a document, and to insert it if there is none, until one of the two took effect.
func (s *Store) alternate(
	ctx context.Context,
	in collection,
	fresh any,
	change func() (matched bool, err error),
) error {
	for range attempts {
		if matched, err := change(); err != nil || matched {
			return err
		}
		if inserted, err := s.insert(ctx, in, fresh); err != nil || inserted {
			return err
		}
	}
	return translate(ctx, "writing to "+string(in), errContended)
}
