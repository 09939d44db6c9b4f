package mongodb

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/parley-chat/parley/pkg/store"
)

// listQuery selects and orders the documents of a list.
type listQuery struct {
	filter, sort bson.D
	limit        int    // of the documents returned by MongoDB; 0: all
	wanted       int    // maximum number of results after filtering in Go; 0: all
	fields       bson.D // projection; nil: all
}

// byIDs is the page of a list ordered by id.
func byIDs(p store.Page) listQuery {
	q := listQuery{sort: bson.D{asc("_id")}, limit: p.Size()}
	if p.After != "" {
		q.filter = bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: p.After}}}}
	}
	return q
}

// created is the field of a document that lists by creation are ordered by.
type created struct {
	CreatedAt time.Time `bson:"createdAt"`
}

// byCreation is the page of a list of an owner's documents ordered by creation, then id. The cursor must be one of
// them; else it returns the collection's NotFound.
func (s *Store) byCreation(ctx context.Context, from collection, owner bson.E, p store.Page) (listQuery, error) {
	q := listQuery{filter: bson.D{owner}, sort: bson.D{asc("createdAt"), asc("_id")}, limit: p.Size()}
	if p.After == "" {
		return q, nil
	}
	last, err := findOne[created](ctx, s, from, append(byID(p.After), owner), "createdAt")
	if err != nil {
		return q, err
	}
	// The first condition is the range of the index; the second only separates the documents of that one millisecond.
	q.filter = append(q.filter,
		bson.E{Key: "createdAt", Value: bson.D{{Key: "$gte", Value: last.CreatedAt}}},
		bson.E{Key: "$or", Value: bson.A{
			bson.D{{Key: "createdAt", Value: bson.D{{Key: "$gt", Value: last.CreatedAt}}}},
			bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: p.After}}}},
		}},
	)
	return q, nil
}

// list reads documents in order and converts those that match.
func list[D, V any](
	ctx context.Context, s *Store, from collection, q listQuery, convert func(D) (v V, wanted bool),
) ([]V, error) {
	found := []V{}
	err := s.each(ctx, from, q, func(cursor *mongo.Cursor) (bool, error) {
		var d D
		if err := cursor.Decode(&d); err != nil {
			return false, err
		}
		if v, wanted := convert(d); wanted {
			found = append(found, v)
		}
		return q.wanted == 0 || len(found) < q.wanted, nil
	})
	return found, err
}

// examine reads documents in order until the page is full. read returns what [store.Examination.Examine] takes.
func examine[D, V any](
	ctx context.Context, s *Store, from collection, q listQuery, page *store.Examination[V],
	read func(D) (id string, v V, wanted bool, size int64),
) error {
	q.limit = store.MaxExamined + 1 // one more shows that there is a next page
	q.wanted = page.Limit
	return s.each(ctx, from, q, func(cursor *mongo.Cursor) (bool, error) {
		var d D
		if err := cursor.Decode(&d); err != nil {
			return false, err
		}
		return page.Examine(read(d)), nil
	})
}

// each calls visit with a cursor on each document until it returns false. Its duration depends on the length of the
// list; each batch must arrive within an operation's timeout. Each batch has twice as many documents as the one before:
// a caller that stops soon gets few that it does not need, and one that reads on needs few round trips.
func (s *Store) each(
	ctx context.Context,
	from collection,
	q listQuery,
	visit func(*mongo.Cursor) (proceed bool, err error),
) error {
	act := "listing " + string(from)
	batch := q.firstBatch()
	filter, o := q.filter, options.Find().SetBatchSize(int32(batch))
	if filter == nil {
		filter = bson.D{}
	}
	if q.sort != nil {
		o.SetSort(q.sort)
	}
	if q.fields != nil {
		o.SetProjection(q.fields)
	}
	if q.limit > 0 {
		o.SetLimit(int64(q.limit))
	}
	var cursor *mongo.Cursor
	err := s.do(ctx, act, func(ctx context.Context) (err error) {
		cursor, err = s.in(from).Find(ctx, filter, o)
		return err
	})
	if err != nil {
		return err
	}
	defer s.closeCursor(ctx, cursor)
	for {
		if cursor.RemainingBatchLength() == 0 {
			batch = min(2*batch, maxBatch)
			cursor.SetBatchSize(int32(batch))
		}
		if found, err := s.next(ctx, act, cursor); err != nil || !found {
			return err
		}
		if proceed, err := visit(cursor); err != nil || !proceed {
			return err
		}
	}
}

// firstBatch is the number of documents of the first response.
func (q listQuery) firstBatch() int {
	switch {
	case q.wanted > 0: // most filters match most documents
		return min(q.wanted+1, maxBatch)
	case q.limit > 0: // one more than the limit, so that the first response also closes the cursor
		return min(q.limit+1, maxBatch)
	}
	return maxBatch
}

// next advances the cursor and reports false at the end.
func (s *Store) next(ctx context.Context, act string, cursor *mongo.Cursor) (found bool, err error) {
	if cursor.RemainingBatchLength() > 0 {
		return cursor.Next(ctx), cursor.Err()
	}
	err = s.do(ctx, act, func(ctx context.Context) error {
		found = cursor.Next(ctx)
		return cursor.Err()
	})
	return found, err
}

// maxBatch bounds the documents of one response.
const maxBatch = 1000

// closeCursor closes a cursor early. The server times out one that could not be closed.
func (s *Store) closeCursor(ctx context.Context, cursor *mongo.Cursor) {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	_ = cursor.Close(closing)
}
